"""Cuts a function where it cannot be recorded: what lies between is compiled, piece by piece.

# Note [Segments]
Where a recording stopped, the statement of the function that ran then is known by its line. The function's text is
written anew: a statement at which it stopped stays as it is and runs in Python; those between become functions of the
local variables that they read, which give those that they set, and each of these is compiled as any function is. So
nothing is assumed of a piece that is not assumed of a whole function: values, writes, random numbers and gradients are
exact for the same reasons. Branches, loops and `with` blocks around a break stay, and their bodies are cut. The condition
of a branch is computed in the piece before it, and Python asks it alone. A function that is called where it breaks is
compiled on its own. What is met later, on another path, cuts the function anew. Where an object was found changed
afterwards, the text tells where that may have been: first what assigns to attributes and items, then what is called for
nothing but its effect.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import linecache
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_SCOPE, _MADE, _TEST = "__pullback_scope", "__pullback_made", "__pullback_test"
_LOCALS, _PICK, _CALL = "__pullback_locals", "__pullback_pick", "__pullback_call"
_PIECE = "__pullback_piece"
_REFUSED = frozenset(["super", "locals", "vars", "eval", "exec", "_getframe", "currentframe", "dir"])
"""Names of functions that look at the frame of their caller."""
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


def pick(scope: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Those of the names that are bound."""
    return {name: scope[name] for name in names if name in scope}


class Segmented:
    """A function written anew, with places that a break was seen at; `make_piece` compiles what lies between."""

    def __init__(
        self, function: types.FunctionType, breaks: dict[Spot, int], effects: int, make_piece: Callable[..., Any]
    ) -> None:
        self.pieces: dict[str, Any] = {}
        self._make_piece = make_piece
        self._breaks = breaks
        self._effects = effects
        self._code = function.__code__
        self._function = function
        self._definition = _as_function(_definition_of(function))
        self._check()
        self._names = set(self._code.co_varnames) | set(self._code.co_cellvars)
        self._texts: list[ast.FunctionDef] = []
        self._waiting: list[tuple[list[ast.stmt], bool, ast.Call]] = []
        self._tests = 0

    def build(self, call: Callable[[Any], Any], former: Mapping[str, Any]) -> Callable[..., Any]:
        """The function that runs the pieces; `call` chooses what stands for a function that is called at a break.

        `former` are pieces, by their text, of the function as it was cut before.
        """
        definition = self._definition
        definition.body = self._block(definition.body, in_loop=False) or [ast.Pass()]
        loads = _count_loads(definition)
        scope = {_LOCALS: builtins.locals, _PICK: pick, _CALL: call}
        for number, (statements, in_loop, place) in enumerate(self._waiting):
            text = self._piece_text(statements, in_loop, loads, place)
            lines = (statements[0].lineno, statements[-1].end_lineno)
            key = ast.dump(text, include_attributes=True)
            piece = former.get(key) or self._make_piece(_make(text, self._function, scope, None), lines)
            self.pieces[key] = piece
            scope[f"{_PIECE}{number}"] = piece
        return _make(definition, self._function, scope, self._function)

    def _check(self) -> None:
        code = self._code
        if code.co_flags & (0x20 | 0x80 | 0x200):
            raise CannotSplit("it is a generator or a coroutine")
        if _REFUSED & set(code.co_names) or "__class__" in code.co_freevars:
            raise CannotSplit("it looks at its own frame")
        names = {*code.co_names, *code.co_varnames}
        if any(name.startswith("__") and not name.endswith("__") for name in names):
            raise CannotSplit("it uses private names of a class")
        for node in ast.walk(self._definition):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                raise CannotSplit("it binds names of an outer scope")
        self._check_captured()

    def _check_captured(self) -> None:
        """Inner functions see variables, not values: one that is bound again after it was captured cannot be cut."""
        stores: dict[str, list[int]] = {}
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                stores.setdefault(node.id, []).append(node.lineno)
        for node in ast.walk(self._definition):
            if node is self._definition or not isinstance(node, (ast.Lambda, ast.FunctionDef)):
                continue
            for name in _loaded(node) & set(self._code.co_cellvars):
                bound = stores.get(name, [])
                is_parameter = name in self._code.co_varnames[: _parameter_count(self._code)]
                if len(bound) + is_parameter > 1 or any(line > node.lineno for line in bound):
                    raise CannotSplit(f"an inner function captures {name}, which is bound more than once")

    # Statements.

    def _block(self, statements: Sequence[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """Statements with calls of pieces in the place of those that can be recorded."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in statements:
            if self._stays(statement):
                before, kept = self._cut(statement, in_loop)
                run.extend(before)
                made.extend(self._flush(run, in_loop))
                run = []
                made.extend(kept)
            else:
                run.append(statement)
        return made + self._flush(run, in_loop)

    def _stays(self, statement: ast.stmt) -> bool:
        if self._level(statement) > 0 or _has_fixed(statement) or self._may_have_effects(statement):
            return True
        return _changes_container(statement)

    def _may_have_effects(self, statement: ast.stmt) -> bool:
        """Whether something outside of the function is changed here, as far as its text tells. See Note [Segments]."""
        for node in ast.walk(statement) if self._effects else ():
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                return True
            if self._effects > 1 and isinstance(node, ast.Expr):
                return True
        return False

    def _level(self, node: Any) -> int:
        """How often a break was seen in a statement: 2 where it breaks although its tensors were computed before."""
        first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        return max([level for spot, level in self._breaks.items() if first <= spot < last], default=0)

    def _cut(self, statement: ast.stmt, in_loop: bool) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What to compute before a statement that stays, and the statement."""
        if isinstance(statement, (ast.Return, ast.Assign, ast.Expr)) and isinstance(statement.value, ast.IfExp):
            return self._cut(_as_branch(statement), in_loop)
        if isinstance(statement, ast.If):
            before = self._hoist_test(statement)
            statement.body = self._block(statement.body, in_loop) or [ast.Pass()]
            statement.orelse = self._block(statement.orelse, in_loop)
            return before, [statement]
        if isinstance(statement, ast.While):
            return [], [self._cut_while(statement)]
        if isinstance(statement, ast.For):
            self._rewrite_calls(statement.iter)
            statement.body = self._block(statement.body, True) or [ast.Pass()]
            statement.orelse = self._block(statement.orelse, in_loop)
            return [], [statement]
        if isinstance(statement, ast.With):
            statement.body = self._block(statement.body, in_loop) or [ast.Pass()]
            return [], [statement]
        if isinstance(statement, ast.Try):
            for name in ("body", "orelse", "finalbody"):
                setattr(statement, name, self._block(getattr(statement, name), in_loop))
            for handler in statement.handlers:
                handler.body = self._block(handler.body, in_loop) or [ast.Pass()]
            return [], [statement]
        if isinstance(statement, ast.Return):
            return self._cut_return(statement)
        return self._cut_simple(statement)

    def _cut_while(self, loop: ast.While) -> ast.While:
        """`while test: body` as an endless loop that begins with the test, so that pieces can compute it."""
        if loop.orelse or isinstance(loop.test, ast.Constant):
            loop.body = self._block(loop.body, True) or [ast.Pass()]
            loop.orelse = self._block(loop.orelse, True)
            return loop
        leave = ast.If(ast.UnaryOp(ast.Not(), loop.test), [ast.Break()], [])
        _locate(leave, loop.test)
        before = self._hoist_test(leave)
        body = [*self._flush(before, True), leave, *self._block(loop.body, True)]
        endless = ast.While(ast.Constant(True), body, [])
        return ast.copy_location(endless, loop)

    def _hoist_test(self, statement: ast.If) -> list[ast.stmt]:
        test: ast.expr = statement.test
        level = self._level(test)
        if level != 1 or isinstance(test, ast.BoolOp):
            self._rewrite_calls(test)
            return []
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and not isinstance(test.operand, ast.BoolOp):
            assignment, test.operand = self._set_aside(test.operand)
            return [assignment]
        if not _is_working(test):
            return []
        assignment, statement.test = self._set_aside(test)
        return [assignment]

    def _set_aside(self, expression: ast.expr) -> tuple[ast.stmt, ast.expr]:
        """An assignment of an expression to a name of its own, and that name."""
        name = f"{_TEST}{self._tests}"
        self._tests += 1
        self._names.add(name)
        assignment = ast.Assign([ast.Name(name, ast.Store())], expression)
        return _locate(assignment, expression), _locate(ast.Name(name, ast.Load()), expression)

    def _cut_return(self, statement: ast.Return) -> tuple[list[ast.stmt], list[ast.stmt]]:
        if statement.value is None or not _is_working(statement.value):
            return [], [statement]
        if self._level(statement):
            return self._cut_simple(statement)
        assignment, statement.value = self._set_aside(statement.value)
        return [assignment], [statement]

    def _cut_simple(self, statement: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]]:
        before: list[ast.stmt] = []
        if self._level(statement) == 0 and _changes_container(statement):
            call = statement.value  # type: ignore[attr-defined]  # it is an expression
            if call.args and _is_working(call.args[0]) and not isinstance(call.args[0], ast.Starred):
                assignment, call.args[0] = self._set_aside(call.args[0])
                before.append(assignment)
        elif self._level(statement) == 1 and isinstance(statement, (ast.Return, ast.Assign, ast.Expr)):
            holder = _first_read(statement.value)
            if holder is not None:
                node, field, place = holder
                held = getattr(node, field)
                read = held if place is None else held[place]
                assignment, name = self._set_aside(read)
                before.append(assignment)
                if place is None:
                    setattr(node, field, name)
                else:
                    held[place] = name
        self._rewrite_calls(statement)
        return before, [statement]

    def _rewrite_calls(self, node: ast.AST) -> None:
        """Let functions that are called where the function breaks be compiled on their own."""
        if not self._level(node):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and not isinstance(inner.func, ast.Call):
                chosen = ast.Call(ast.Name(_CALL, ast.Load()), [inner.func], [])
                inner.func = _locate(chosen, inner.func)

    def _flush(self, run: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """A call of a piece for statements that compute; those before that only bind names stay."""
        first = next((place for place, statement in enumerate(run) if _is_working(statement)), None)
        if first is None:
            return run
        kept, work = run[:first], run[first:]
        number = len(self._waiting)
        scope = ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])
        place = ast.Call(ast.Name(_PICK, ast.Load()), [scope, ast.Tuple([], ast.Load())], [])
        call = ast.Call(ast.Name(f"{_PIECE}{number}", ast.Load()), [place], [])
        assignment: ast.stmt = ast.Assign([ast.Name(_MADE, ast.Store())], call)
        _locate(assignment, work[0])
        self._waiting.append((work, in_loop, place))
        taken: list[ast.stmt] = []
        for name in sorted(_stored(work) & self._names):
            key = ast.Constant(name)
            has = ast.Compare(key, [ast.In()], [ast.Name(_MADE, ast.Load())])
            value = ast.Subscript(ast.Name(_MADE, ast.Load()), key, ast.Load())
            taken.append(_locate(ast.If(has, [ast.Assign([ast.Name(name, ast.Store())], value)], []), work[-1]))
        return [*kept, assignment, *taken]

    def _piece_text(
        self, statements: list[ast.stmt], in_loop: bool, loads: dict[str, int], place: ast.Call
    ) -> ast.FunctionDef:
        """The function of a piece: from the names that it reads to those that are read later."""
        inner = _count_loads(*statements)
        read = sorted(name for name in inner if name in self._names)
        place.args[1] = _locate(ast.Tuple([ast.Constant(name) for name in read], ast.Load()), statements[0])
        # The definition does not hold these statements any more: what it reads is read outside of them, or by others.
        others = {name for work, _, _ in self._waiting if work is not statements for name in _count_loads(*work)}
        later = set(loads) | others | (set(inner) if in_loop else set())
        given = sorted(_stored(statements) & self._names & later)
        begin: list[ast.stmt] = []
        for name in read:
            key = ast.Constant(name)
            has = ast.Compare(key, [ast.In()], [ast.Name(_SCOPE, ast.Load())])
            value = ast.Subscript(ast.Name(_SCOPE, ast.Load()), key, ast.Load())
            begin.append(ast.If(has, [ast.Assign([ast.Name(name, ast.Store())], value)], []))
        scope = ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])
        names = ast.Tuple([ast.Constant(name) for name in given], ast.Load())
        end: ast.stmt = ast.Return(ast.Call(ast.Name(_PICK, ast.Load()), [scope, names], []))
        for statement in begin:
            _locate(statement, statements[0])
        _locate(end, statements[-1])
        arguments = ast.arguments([], [ast.arg(_SCOPE)], None, [], [], None, [])
        made = ast.FunctionDef(self._definition.name, arguments, [*begin, *statements, end], [], None)
        return ast.copy_location(made, statements[0])


# Texts.


def _definition_of(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The syntax of a function, with the lines of its file."""
    code = function.__code__
    tree = _parsed(code.co_filename)
    if tree is None:
        raise CannotSplit("its text is not known")
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, wanted) and _begins_at(node, code)]
    if len(found) != 1:
        raise CannotSplit("its text is not known")
    return copy.deepcopy(found[0])


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


def _as_function(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
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
    arguments.defaults = [_locate(ast.Constant(None), made) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else _locate(ast.Constant(None), made) for d in arguments.kw_defaults]
    if made.body and isinstance(made.body[0], ast.Expr) and isinstance(made.body[0].value, ast.Constant):
        made.body = made.body[1:]
    return made


def _make(text: ast.FunctionDef, like: types.FunctionType, scope: dict[str, Any], whole: Any) -> types.FunctionType:
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
    if whole is not None:
        made.__defaults__, made.__kwdefaults__ = whole.__defaults__, whole.__kwdefaults__
    return made


def _code_named(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise CannotSplit("its text is not known")


def _locate(node: Any, like: Any) -> Any:
    """Give new syntax the place of what it stands for."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.expr, ast.stmt)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)
    return node


def _as_branch(statement: Any) -> ast.If:
    """`y = a if test else b` as a branch."""
    chosen: ast.IfExp = statement.value
    branches = []
    for value in (chosen.body, chosen.orelse):
        branch = copy.copy(statement)
        branch.value = value
        ast.copy_location(branch, value)
        branches.append(branch)
    return ast.copy_location(ast.If(chosen.test, [branches[0]], [branches[1]]), statement)


def _first_read(value: Any) -> tuple[Any, str, int | None] | None:
    """Where a statement first reads a value of a computed tensor: the node that holds the tensor's expression."""
    while value is not None:
        if isinstance(value, ast.Call):
            func = value.func
            if isinstance(func, ast.Attribute):
                if func.attr in _READERS and _is_working(func.value):
                    return func, "value", None
                if _is_working(func.value):
                    value = func.value
                    continue
            if isinstance(func, ast.Name) and func.id in _CONVERTERS and value.args and _is_working(value.args[0]):
                first = value.args[0]
                if isinstance(first, (ast.JoinedStr, ast.Starred)):
                    return None
                nested = _first_read(first)
                return nested if nested is not None else (value, "args", 0)
            value = next((a for a in value.args if _is_working(a)), None)
        elif isinstance(value, ast.BinOp):
            value = value.left if _is_working(value.left) else value.right
        elif isinstance(value, ast.Compare):
            value = value.left
        elif isinstance(value, (ast.Tuple, ast.List)):
            value = next((e for e in value.elts if _is_working(e)), None)
        elif isinstance(value, ast.UnaryOp):
            value = value.operand
        else:
            return None
    return None


def _is_working(node: ast.AST) -> bool:
    """Whether something computes, and does not only bind names."""
    return any(isinstance(inner, _WORKING) for inner in ast.walk(node))


def _changes_container(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a call of a method like `append`: other pieces may hold that list too."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in CHANGING and isinstance(call.func.value, ast.Name)


def _has_fixed(node: ast.AST) -> bool:
    """Whether a statement holds something that must stand in the function itself."""
    if isinstance(node, (*_FIXED, ast.Break, ast.Continue)):
        return True
    if isinstance(node, ast.Lambda):
        return False
    for child in ast.iter_child_nodes(node):
        if isinstance(node, _LOOPS) and isinstance(child, ast.stmt) and child in node.body:
            if _has_fixed_in_loop(child):
                return True
        elif _has_fixed(child):
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


def _loaded(*nodes: ast.AST) -> set[str]:
    return {name.id for name in _names(*nodes) if isinstance(name.ctx, ast.Load)}


def _count_loads(*nodes: ast.AST) -> dict[str, int]:
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


def _stored(nodes: Sequence[ast.AST]) -> set[str]:
    found = {name.id for name in _names(*nodes) if not isinstance(name.ctx, ast.Load)}
    for node in nodes:
        found |= {inner.name for inner in ast.walk(node) if isinstance(inner, ast.ExceptHandler) and inner.name}
    return found


def _parameter_count(code: types.CodeType) -> int:
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
