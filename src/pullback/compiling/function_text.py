"""Reads and writes the text of functions: finds the syntax of one, asks it questions, and makes functions of new syntax.

What is cut, and where, is said in segments.py. See Note [Segments].
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import linecache
import types
import weakref
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

from pullback.compiling.surroundings import LIBRARY
from pullback.modes.source_lines import PACKAGE
from pullback.nn.modules.module import Module
from pullback.nn.modules.module_hooks import GlobalHooks

_FIXED: Any = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Delete, ast.Match,
          ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)  # fmt: skip
"""What has a meaning in the function itself alone."""
_WORKING: Any = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Compare, ast.UnaryOp)
_LOOPS: Any = (ast.For, ast.While)
CHANGING = frozenset(
    "append appendleft extend insert pop popleft popitem remove clear sort reverse update setdefault add discard".split()
)
"""Methods that change a list, dictionary or set."""
_READERS = frozenset(["item", "tolist", "numpy"])
_CONVERTERS = frozenset(["float", "int", "bool", "print", "str"])

Spot = tuple[int, int]
"""A place in a file: line and column."""


class CannotSplit(Exception):
    """Why the text of a function cannot be cut."""


PIECES: weakref.WeakKeyDictionary[types.CodeType, str] = weakref.WeakKeyDictionary()
"""Functions that were made of a part of another: the name of their one argument, a dictionary of names."""
_made: weakref.WeakKeyDictionary[types.CodeType, ast.FunctionDef] = weakref.WeakKeyDictionary()


def definition_of(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax of a function, with the lines of its file, to be changed."""
    return copy.deepcopy(definition_of_code(function.__code__))


def definition_of_code(code: types.CodeType) -> ast.FunctionDef | ast.Lambda:
    """The syntax of a function that is left as it is."""
    if code in _made:
        return _made[code]
    tree = _parsed(code.co_filename)
    if tree is None:
        raise CannotSplit("its text is not known")
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, wanted) and _begins_at(node, code)]
    if len(found) != 1:
        raise CannotSplit("its text is not known")
    return found[0]


_trees: dict[str, tuple[int, ast.Module]] = {}


def _parsed(file: str) -> ast.Module | None:
    lines = linecache.getlines(file)
    text = "".join(lines)
    known = _trees.get(file)
    if known is not None and known[0] == hash(text):
        return known[1]
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    if not lines:
        return None
    _trees[file] = (hash(text), tree)
    return tree


def _begins_at(node: Any, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        spots = [
            (line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None
        ]
        spots = [spot for spot in spots if spot != (code.co_firstlineno, 0)]
        if not spots:
            return False
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        inner = [n for n in ast.walk(node.body) if isinstance(n, ast.expr)]
        places = {(n.lineno, n.col_offset) for n in inner}
        return start <= min(spots) and max(spots) <= end and {*spots} <= places
    first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
    return bool(node.name == code.co_name and first == code.co_firstlineno)


def as_function(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    """A definition without decorators and annotations; what defaults are is known already."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        made = ast.copy_location(ast.FunctionDef("function", node.args, body, [], None), node)
    else:
        made = node
        made.decorator_list, made.returns = [], None
    arguments = made.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [locate(ast.Constant(None), made) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else locate(ast.Constant(None), made) for d in arguments.kw_defaults]
    if made.body and isinstance(made.body[0], ast.Expr) and isinstance(made.body[0].value, ast.Constant):
        made.body = made.body[1:]
    return made


def make_function(
    text: ast.FunctionDef, like: types.FunctionType, scope: dict[str, Any], whole: Any
) -> types.FunctionType:
    """The function of a definition, with the globals and the closure of `like` and the names of `scope`."""
    code = like.__code__
    names = [*code.co_freevars, *scope]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    factory = ast.FunctionDef("factory", arguments, [text], [], None)
    module = ast.Module([ast.copy_location(factory, text)], [])
    ast.fix_missing_locations(module)
    flags = code.co_flags & 0x1FE0000  # what `from __future__ import` set
    outer = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    inner = _code_named(_code_named(outer, "factory"), text.name)
    cells = dict(zip(code.co_freevars, like.__closure__ or (), strict=True))
    cells.update({name: types.CellType(value) for name, value in scope.items()})
    closure = tuple([cells[name] for name in inner.co_freevars])
    inner = inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    made = types.FunctionType(inner, like.__globals__, code.co_name, None, closure)
    _made[inner] = text
    if whole is None:
        PIECES[inner] = text.args.args[0].arg
    else:
        made.__defaults__, made.__kwdefaults__ = whole.__defaults__, whole.__kwdefaults__
    return made


def _code_named(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise CannotSplit("its text is not known")


def locate(node: Any, like: Any) -> Any:
    """Give new syntax the place of what it stands for."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.stmt)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)
    return node


def as_branch(statement: Any) -> ast.If:
    """`y = a if test else b` as a branch."""
    chosen: ast.IfExp = statement.value
    branches = []
    for value in (chosen.body, chosen.orelse):
        branch = copy.copy(statement)
        branch.value = value
        ast.copy_location(branch, value)
        branches.append(branch)
    return ast.copy_location(ast.If(chosen.test, [branches[0]], [branches[1]]), statement)


def first_read(value: Any) -> tuple[Any, str, int | None] | None:
    """Where a statement first reads a value of a computed tensor: the node that holds the tensor's expression."""
    while value is not None:
        if isinstance(value, ast.Call):
            func = value.func
            if isinstance(func, ast.Attribute):
                if func.attr in _READERS and is_working(func.value):
                    return func, "value", None
                if is_working(func.value):
                    value = func.value
                    continue
            if isinstance(func, ast.Name) and func.id in _CONVERTERS and value.args and is_working(value.args[0]):
                first = value.args[0]
                if isinstance(first, (ast.JoinedStr, ast.Starred)):
                    return None
                nested = first_read(first)
                return nested if nested is not None else (value, "args", 0)
            value = next((a for a in value.args if is_working(a)), None)
        elif isinstance(value, ast.BinOp):
            value = value.left if is_working(value.left) else value.right
        elif isinstance(value, ast.Compare):
            value = value.left
        elif isinstance(value, (ast.Tuple, ast.List)):
            value = next((e for e in value.elts if is_working(e)), None)
        elif isinstance(value, ast.UnaryOp):
            value = value.operand
        else:
            return None
    return None


def is_working(node: ast.AST) -> bool:
    """Whether something computes, and does not only bind names."""
    return any(isinstance(inner, _WORKING) for inner in ast.walk(node))


def changes_container(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a call of a method like `append`: other pieces may hold that list too."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in CHANGING and isinstance(call.func.value, ast.Name)


def has_fixed(node: ast.AST) -> bool:
    """Whether a statement holds something that must stand in the function itself."""
    if isinstance(node, (*_FIXED, ast.Break, ast.Continue)):
        return True
    if isinstance(node, ast.Lambda):
        return False
    for child in ast.iter_child_nodes(node):
        if isinstance(node, _LOOPS) and isinstance(child, ast.stmt) and child in node.body:
            if _has_fixed_in_loop(child):
                return True
        elif has_fixed(child):
            return True
    return False


def _has_fixed_in_loop(node: ast.AST) -> bool:
    """The same where `break` and `continue` belong to a loop inside."""
    if isinstance(node, _FIXED):
        return True
    if isinstance(node, (ast.Break, ast.Continue, ast.Lambda)):
        return False
    return any(_has_fixed_in_loop(child) for child in ast.iter_child_nodes(node))


def _names(*nodes: ast.AST) -> Iterator[ast.Name]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                yield inner


def loaded_names(*nodes: ast.AST) -> set[str]:
    """The names that are read."""
    return {name.id for name in _names(*nodes) if isinstance(name.ctx, ast.Load)}


def count_loads(*nodes: ast.AST) -> dict[str, int]:
    """How often names are read, also by `x += 1`."""
    counts: dict[str, int] = {}
    for node in nodes:
        for inner in ast.walk(node):
            name = None
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                name = inner.id
            elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                name = inner.target.id
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
    return counts


def stored_names(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that are bound."""
    found = {name.id for name in _names(*nodes) if not isinstance(name.ctx, ast.Load)}
    for node in nodes:
        found |= {inner.name for inner in ast.walk(node) if isinstance(inner, ast.ExceptHandler) and inner.name}
    return found


def outer_names(definition: ast.AST) -> set[str]:
    """The names that `global` and `nonlocal` statements take from an outer scope."""
    found = [node for node in ast.walk(definition) if isinstance(node, (ast.Global, ast.Nonlocal))]
    return {name for node in found for name in node.names}


def names_in_graph(definition: ast.AST) -> set[str]:
    """Names whose place in the graph matters: gradients are asked for with respect to them, or hooks wait there."""
    found: set[str] = set()
    for node in ast.walk(definition):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("register_hook", "retain_grad") and isinstance(node.func, ast.Attribute):
            found |= loaded_names(node.func.value)
        if name in ("grad", "backward"):
            wanted = node.args[1:2] if name == "grad" else []
            found |= loaded_names(*wanted, *[k.value for k in node.keywords if k.arg == "inputs"])
    return found


def parameter_count(code: types.CodeType) -> int:
    """How many of the variables of a function are its parameters."""
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def mentions_create_graph(function: types.FunctionType) -> bool:
    """Whether a function asks for gradients that can be differentiated: what was cut off before must be able to."""
    return any(
        isinstance(constant, tuple) and "create_graph" in constant for constant in function.__code__.co_consts
    ) or bool({"hvp", "hessian", "vhp"} & set(function.__code__.co_names))


def spot_of(frame: types.FrameType) -> Spot:
    """Where in its file a frame is."""
    positions = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    line, _, column, _ = next(positions, (None, None, None, None))
    return (line or frame.f_lineno, column or 0)


def text_of(function: Any) -> FunctionType | None:
    """The function whose text may be cut: the user's, or the forward of a module; None if there is none."""
    if isinstance(function, MethodType) and function.__func__ is Module.__call__:
        function = function.__self__
    if isinstance(function, Module):
        if type(function).__call__ is not Module.__call__ or _has_hooks(function):
            return None
        function = function.forward
        if isinstance(function, MethodType):
            return function.__func__ if isinstance(function.__func__, FunctionType) else None
        return None
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        return None
    file = function.__code__.co_filename
    if file.startswith(PACKAGE):  # one that stands around the user's, as no_grad() makes it
        inner = inspect.unwrap(function).__code__.co_filename
        return None if inner.startswith((PACKAGE, *LIBRARY)) else function
    return None if file.startswith(LIBRARY) else function


def _has_hooks(module: Module) -> bool:
    own = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    everywhere = (GlobalHooks.forward, GlobalHooks.forward_pre, GlobalHooks.backward, GlobalHooks.backward_pre)
    return any(own) or any(everywhere)


def told_name(function: Any) -> str:
    """A function's name, or the class of the module that it calls."""
    if getattr(function, "__name__", "__call__") in ("__call__", "forward"):
        return type(getattr(function, "__self__", function)).__name__
    return str(function.__name__)
