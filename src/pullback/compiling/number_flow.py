"""Finds, in the text of a function, whether a number that is followed gets to where its value is read without asking.

# Note [Where numbers go]
A number that is followed is a subclass of Python's own, and much of Python reads such a number without asking it: a list
that is indexed, `range`, `type`, another library in C. So the text of each function that a followed number comes into is
read too. The number may be computed with, compared, tested, bound to names, put into tuples and lists, returned, and given
to this package and to other functions of the user, whose texts are read in turn. Anywhere else it counts as read: a place
that nobody thought of costs a recording for each value, never a wrong one. So does a float to the left of a whole number,
which computes and compares without asking it. Whole numbers among the arguments may be given to
arithmetic alone, since this package too uses others as sizes and indices.

Names are not told apart by where in a function they stand. A name holds a tensor if all that is bound to it are tensors, as
far as the text tells, or if it is bound once and held a tensor at the end of the call.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import types
from collections.abc import Iterator
from typing import Any

from pullback.compiling.function_text import PIECES, CannotSplit, definition_of_code
from pullback.compiling.numbers import Condition, Numbers, TracedInt, TracedNumber, plain_number
from pullback.facts import fact_of
from pullback.generated.registry import OPERATIONS
from pullback.modes.source_lines import PACKAGE
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor, TensorBase

SIZES = frozenset(["shape", "nbytes", "size", "numel", "nelement", "stride", "storage_offset"])
"""Attributes and methods of tensors that tell sizes."""
_COMPUTING = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow, ast.Mod)
_COMPARING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_NESTED = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp,
           ast.GeneratorExp)  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HOLDING = (ast.Tuple, ast.List, ast.Starred, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.NamedExpr, ast.Slice)
_ASKING: Any = (max, min, abs, sum, pow, isinstance, len, repr, format, round, divmod, float, int, bool, str, tuple, list,
           sorted, print, zip, enumerate, reversed)  # fmt: skip
"""Built-in functions that ask numbers for what they need, or only pass them on."""
_COMPARING_ALL: Any = (max, min, sum, pow, divmod, round, sorted)
"""Those of them in which a float beside a whole number may read it."""
_PASSING_ON: Any = (max, min, abs, sum, pow, round, divmod, tuple, list, sorted, zip, enumerate, reversed)
_LOOKING = frozenset(["locals", "vars", "eval", "exec", "_getframe", "currentframe", "dir", "globals"])
_TENSOR_METHODS = frozenset(name for name in dir(Tensor) if not name.startswith("_"))
_METHODS_OF_OTHERS = frozenset(
    name for kind in (int, float, complex, str, bytes, list, tuple, dict, set) for name in dir(kind)
)
_PLAIN_RESULTS = frozenset(["broadcast_shapes"])
_ARITHMETIC = frozenset(
    name + ending
    for name, record in OPERATIONS.items()
    if record.structure == "elementwise"
    and record.family in ("arithmetic", "comparison")
    and not fact_of(name, "returns")
    for ending in ("", "_")
)
"""What a whole number may be given to: it is an operand there, and nothing else."""
_GIVING_TENSORS = frozenset(
    name
    for name, record in OPERATIONS.items()
    if record.outputs == 1
    and (record.structure in ("elementwise", "along") or record.view)
    and not fact_of(name, "returns")
    if name not in ("unbind", "split")
)
_TENSOR_ATTRIBUTES = frozenset(["T", "mT", "H", "mH", "data", "grad"])


def asks_for_types(code: types.CodeType) -> bool:
    """Whether code may ask for the type of a number, which is another one where it is followed."""
    return not {"type", "__class__"}.isdisjoint(code.co_names)


def holds_followed(value: Any, numbers: Numbers, depth: int = 3) -> bool:
    """Whether a value is a followed number, or a container with one."""
    kind = type(value)
    if kind is TracedNumber or kind is TracedInt:
        return value._numbers is numbers
    if depth and isinstance(value, (tuple, list)):
        return any(holds_followed(part, numbers, depth - 1) for part in value)
    return bool(depth) and kind is dict and any(holds_followed(part, numbers, depth - 1) for part in value.values())


class Flow:
    """Where the numbers in some names of a function go, by its text.

    `reason` says why that is not known, None if it is; `reads` are the expressions that are read without asking.
    """

    def __init__(
        self, frame: types.FrameType, given: dict[str, Any], names: set[str], *, with_sizes: bool, is_strict: bool,
        is_whole: bool,
    ) -> None:  # fmt: skip
        code = frame.f_code
        self._is_whole = is_whole
        """Whether numbers are whole: a float to their left reads them without asking."""
        self._frame, self._given = frame, given
        self._numbers, self._with_sizes, self._is_strict = set(names), with_sizes, is_strict
        self.reason: str | None = None
        self.reads: list[ast.expr] = []
        try:
            self._definition = definition_of_code(code)
        except CannotSplit:
            self.reason = "a function whose text is not known"
            return
        self._scope_name = PIECES.get(code)
        if code.co_flags & (0x20 | 0x80 | 0x200) or (_LOOKING & set(code.co_names) and self._scope_name is None):
            self.reason = "a generator, or a function that looks at its own frame"
            return
        self._bindings = dict(self._bound_names())
        self._tensors = self._find_tensors()
        while self._spread():
            pass
        self._check(self._definition, self._definition)

    # Names.

    def _bound_names(self) -> Iterator[tuple[str, list[Any]]]:
        """Names with what is bound to them: expressions, or None where it is something else."""
        found: dict[str, list[Any]] = {}
        in_loops: set[int] = set()
        simple: set[int] = set()
        for node in ast.walk(self._definition):
            if isinstance(node, (ast.For, ast.While)):
                in_loops.update(id(inner) for inner in ast.walk(node))
        pairs: list[tuple[Any, Any]]
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
                pairs = [(node.target, node)] if isinstance(node, ast.AugAssign) else [(node.target, node.value)]
            else:
                pairs = []
            for target, value in pairs:
                if isinstance(target, ast.Name):
                    simple.add(id(target))
                    found.setdefault(target.id, []).append((value, id(node) in in_loops))
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in simple:
                found.setdefault(node.id, []).append((None, id(node) in in_loops))
            elif isinstance(node, (ast.ExceptHandler, ast.FunctionDef, ast.ClassDef)) and node.name:
                found.setdefault(node.name, []).append((None, True))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    found.setdefault(alias.asname or alias.name.partition(".")[0], []).append((None, True))
        yield from found.items()

    def _value_of(self, name: str) -> Any:
        """What a name means all the time; None if that is not known."""
        bound, is_parameter = self._bindings.get(name, []), name in self._given
        if is_parameter:
            return None if bound else self._given[name]
        if name in self._frame.f_locals:
            return self._frame.f_locals[name] if len(bound) <= 1 and not any(loops for _, loops in bound) else None
        if bound:
            return None
        return self._frame.f_globals.get(name, getattr(builtins, name, None))

    def _find_tensors(self) -> set[str]:
        names = {*self._bindings, *self._given}
        sure = {name for name in names if isinstance(self._value_of(name), TensorBase)}
        possible = {n for n in names if n not in self._given or isinstance(self._given[n], TensorBase)}
        possible = {n for n in possible if all(value is not None for value, _ in self._bindings.get(n, []))}
        self._tensors = sure | possible
        while True:
            kept = {
                n for n in self._tensors if n in sure or all(self.is_tensor(v, n) for v, _ in self._bindings.get(n, []))
            }  # fmt: skip
            if kept == self._tensors:
                return kept
            self._tensors = kept

    def _spread(self) -> bool:
        """Let names hold numbers that numbers are bound to; whether there are new ones."""
        before = len(self._numbers)
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Assign) and self.is_number(node.value):
                for target in node.targets:
                    self._bind(target)
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                if node.value is not None and self.is_number(node.value):
                    self._bind(node.target)
            elif isinstance(node, (ast.For, ast.comprehension)) and self.is_number(node.iter):
                self._bind(node.target)
        return len(self._numbers) > before

    def _bind(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name) and target.id not in self._tensors:
            self._numbers.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._bind(part)
        elif isinstance(target, ast.Starred):
            self._bind(target.value)

    # Expressions.

    def is_number(self, node: Any) -> bool:
        """Whether an expression may be a followed number, or hold one."""
        if isinstance(node, ast.Name):
            return node.id in self._numbers
        if isinstance(node, (ast.Tuple, ast.List)):
            return any(map(self.is_number, node.elts))
        if isinstance(node, ast.Dict):
            return any(map(self.is_number, node.values))
        if isinstance(node, (ast.Attribute, ast.Call)):
            return self._gives_number(node)
        if isinstance(node, ast.Subscript):
            return self._is_number_of_scope(node) if self._is_scope(node.value) else self.is_number(node.value)
        if isinstance(node, (*_HOLDING, ast.IfExp)):
            parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            if isinstance(node, ast.IfExp):
                parts = [node.body, node.orelse]
            return any(map(self.is_number, parts)) and not self.is_tensor(node)
        return False

    def _gives_number(self, node: Any) -> bool:
        if isinstance(node, ast.Attribute):
            return self._with_sizes and node.attr in SIZES
        if isinstance(node.func, ast.Attribute) and self._with_sizes and node.func.attr in SIZES:
            return True
        is_passing = any(self._callee(node.func) is function for function in _PASSING_ON)
        return is_passing and any(map(self.is_number, _arguments(node)))

    def _is_scope(self, node: ast.AST) -> bool:
        return self._scope_name is not None and isinstance(node, ast.Name) and node.id == self._scope_name

    def _is_number_of_scope(self, node: ast.Subscript) -> bool:
        """Whether a piece of a function gets a number under a name: what it is given is a dictionary of these."""
        name = str(node.slice.value) if isinstance(node.slice, ast.Constant) else None
        return f"{self._scope_name}[{name}]" in self._numbers

    def is_tensor(self, node: Any, name: str = "") -> bool:
        """Whether an expression is surely a tensor."""
        if isinstance(node, ast.Name):
            return node.id in self._tensors
        if isinstance(node, ast.AugAssign):
            return isinstance(node.target, ast.Name) and node.target.id in self._tensors
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left) or self.is_tensor(node.right)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self.is_tensor(node.operand)
        if isinstance(node, ast.IfExp):
            return self.is_tensor(node.body) and self.is_tensor(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.is_tensor(node.value)
        if isinstance(node, ast.Subscript):
            if self._is_scope(node.value) and isinstance(node.slice, ast.Constant):
                return isinstance(self._given[str(self._scope_name)].get(node.slice.value), TensorBase)
            return self.is_tensor(node.value)
        if isinstance(node, ast.Attribute):
            if node.attr in _TENSOR_ATTRIBUTES and self.is_tensor(node.value):
                return True
            return isinstance(self._callee(node), TensorBase)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVING_TENSORS:
            return self.is_tensor(node.func.value) or _is_own(self._callee(node.func))
        return False

    def _callee(self, node: ast.AST) -> Any:
        """What an expression that is called means; None if that is not known."""
        if isinstance(node, ast.Name):
            return self._value_of(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        base = self._callee(node.value)
        if isinstance(base, types.ModuleType):
            return getattr(base, node.attr, None)
        if base is None or isinstance(base, (type, TensorBase)):
            return None
        if isinstance(base, Module):
            for held in (base._parameters, base._buffers, base._modules):
                if node.attr in held:
                    return held[node.attr]
        if node.attr in getattr(base, "__dict__", {}):
            return None
        found = inspect.getattr_static(type(base), node.attr, None)
        return found if isinstance(found, types.FunctionType) else None

    def is_lasting(self, node: Any) -> bool:
        """Whether an expression has the same value at the end of a call as wherever it stands."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.Name):
            return self._value_of(node.id) is not None
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _COMPUTING) and self.is_lasting(node.left) and self.is_lasting(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_lasting(node.operand)
        if isinstance(node, ast.Subscript):
            return self.is_lasting(node.value) and self.is_lasting(node.slice)
        if isinstance(node, ast.Attribute):
            return node.attr == "shape" and isinstance(node.value, ast.Name) and self._is_one_tensor(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            is_size = node.func.attr in ("size", "numel", "stride") and isinstance(node.func.value, ast.Name)
            return is_size and self._is_one_tensor(node.func.value) and all(map(self.is_lasting, node.args))
        return False

    def _is_one_tensor(self, node: Any) -> bool:
        return isinstance(self._value_of(node.id), TensorBase)

    # Places.

    def _check(self, node: Any, parent: Any) -> None:
        """Find the places where a number is read without asking it, in what `parent`, or a part of it, consists of."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _NESTED):
                if self._is_mentioned(child):
                    self.reason = "a function inside of it"
                continue
            if isinstance(child, ast.expr) and self.is_number(child) and not self._may_stand(child, parent):
                self.reads.append(child)
            self._check(child, parent if isinstance(child, ast.keyword) else child)

    def _is_mentioned(self, scope: ast.AST) -> bool:
        """Whether a scope of its own may see a number of this one."""
        names = {inner.id for inner in ast.walk(scope) if isinstance(inner, ast.Name)}
        if names & self._numbers:
            return True
        return isinstance(scope, _COMPREHENSIONS) and any(map(self.is_number, ast.walk(scope)))

    def _may_stand(self, node: Any, parent: Any) -> bool:
        """Whether a number may stand in a place: there it is asked for all that is used of it."""
        if parent is self._definition:
            return isinstance(parent, ast.Lambda)
        if isinstance(parent, ast.BinOp):
            if node is parent.right and not self._asks_right(parent.left, parent.op):
                return False
            return isinstance(parent.op, _COMPUTING)
        if isinstance(parent, ast.Compare):
            return self._may_be_compared(parent)
        if isinstance(parent, ast.Subscript):
            return node is parent.value or (not self._is_strict and self.is_tensor(parent.value))
        if isinstance(parent, ast.Attribute):
            return parent.attr not in _METHODS_OF_OTHERS and parent.attr not in SIZES
        if isinstance(parent, ast.Call):
            return node is parent.func or self._may_be_given(parent)
        if isinstance(parent, ast.Dict):
            return node in parent.values
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return all(map(self._may_be_bound, targets))
        if isinstance(parent, ast.For):
            return self._may_be_bound(parent.target) and isinstance(parent.target, (ast.Name, ast.Tuple))
        plain = (ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Tuple, ast.List, ast.Starred, ast.Slice, ast.Return,
                 ast.Expr, ast.If, ast.While, ast.Assert, ast.FormattedValue)  # fmt: skip
        return isinstance(parent, plain)

    def _asks_right(self, left: Any, op: ast.operator | None = None) -> bool:
        """Whether what stands to the left of a number asks it: a text to be filled in does not, nor a float a whole one."""
        if self.is_tensor(left) or self.is_number(left):
            return True
        return not isinstance(op, ast.Mod) and (not self._is_whole or self._is_whole_number(left))

    def _is_whole_number(self, node: Any) -> bool:
        """Whether an expression is surely a whole number, or a tuple of some."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(self._is_whole_number(part) or self.is_number(part) for part in node.elts)
        if isinstance(node, ast.UnaryOp):
            return self._is_whole_number(node.operand)
        if isinstance(node, ast.Call):
            return self._callee(node.func) is len
        return isinstance(node, ast.Name) and type(self._value_of(node.id)) is int

    def _may_be_compared(self, comparison: ast.Compare) -> bool:
        sides = [comparison.left, *comparison.comparators]
        if any(map(self.is_number, sides[1:])) and not all(map(self._asks_right, sides[:-1])):
            return False
        if self._is_whole and any(isinstance(side, (ast.Tuple, ast.List)) for side in sides):
            return all(self._is_whole_number(side) or self.is_number(side) for side in sides)
        for op, other in zip(comparison.ops, comparison.comparators, strict=True):
            is_none = isinstance(other, ast.Constant) and other.value is None
            if not isinstance(op, _COMPARING) and not (is_none and isinstance(op, (ast.Is, ast.IsNot))):
                return False
        return True

    def _may_be_bound(self, target: Any) -> bool:
        if isinstance(target, (ast.Tuple, ast.List)):
            return all(map(self._may_be_bound, target.elts))
        if isinstance(target, ast.Starred):
            return self._may_be_bound(target.value)
        if isinstance(target, ast.Subscript):
            return not self._is_strict and self.is_tensor(target.value)
        return isinstance(target, ast.Name)

    def _may_be_given(self, call: ast.Call) -> bool:
        callee = self._callee(call.func)
        if any(callee is function for function in _COMPARING_ALL) and self._is_whole:
            return callee in (max, min) and all(self._is_whole_number(a) or self.is_number(a) for a in call.args)
        if any(callee is function for function in _ASKING):
            return True
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(callee, "__name__", "")
        if self._is_strict and name not in _ARITHMETIC and not _is_users(callee):
            return False
        if isinstance(callee, Module):
            return type(callee).__call__ is Module.__call__
        if isinstance(callee, types.FunctionType) or _is_own(callee):
            return name not in _PLAIN_RESULTS and not isinstance(callee, type)
        if callee is None and isinstance(call.func, ast.Attribute) and name in _TENSOR_METHODS:
            return name not in _METHODS_OF_OTHERS or self.is_tensor(call.func.value)
        return False


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *[keyword.value for keyword in call.keywords]]


def _is_own(value: Any) -> bool:
    """Whether a function is one of this package."""
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename.startswith(PACKAGE)
    return callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "pullback"


def _is_users(value: Any) -> bool:
    """Whether what is called is a function whose text is read in its turn."""
    if isinstance(value, Module):
        value = type(value).forward
    return isinstance(value, types.FunctionType) and not _is_own(value)


class NumberWatch:
    """Reads the texts of functions that followed numbers come into, as they are called. See Note [Where numbers go]."""

    def __init__(self, followed: Numbers | None, sizes: Numbers | None) -> None:
        self._followed, self._sizes = followed, sizes
        self._frames: dict[int, dict[str, Any]] = {}
        self._known: dict[Any, Flow] = {}
        self._outermost: int | None = None

    def enter(self, frame: types.FrameType) -> None:
        """See the arguments of a function that is called."""
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        scope = frame.f_locals
        for name in code.co_varnames[:count] if asks_for_types(code) else ():
            if type(scope.get(name)) in (TracedNumber, TracedInt):
                scope[name]._numbers.read()
                scope[name] = plain_number(scope[name])  # which Python writes to the variable
        self._frames[id(frame)] = {name: scope[name] for name in code.co_varnames[:count] if name in scope}
        if self._outermost is None:
            self._outermost = id(frame)

    def is_inside(self, frame: types.FrameType) -> bool:
        """Whether a function's call was seen, and its end was not."""
        return id(frame) in self._frames

    def leave(self, frame: types.FrameType, result: Any) -> None:
        """See that a function ends."""
        given = self._frames.pop(id(frame), None)
        if given is None:
            return
        is_outermost = id(frame) == self._outermost
        if is_outermost:
            self._outermost = None
        for numbers in (self._followed, self._sizes):
            if numbers is None or numbers.is_read:
                continue
            if not is_outermost and holds_followed(result, numbers):
                numbers.read()
                continue
            self._look(frame, given, numbers)

    def _look(self, frame: types.FrameType, given: dict[str, Any], numbers: Numbers) -> None:
        code, is_sizes = frame.f_code, numbers is self._sizes
        held: dict[str, Any] = {name: value for name, value in given.items() if holds_followed(value, numbers)}
        scope = PIECES.get(code)
        if scope is not None:
            inner = {name: v for name, v in given[scope].items() if holds_followed(v, numbers)}
            held = {f"{scope}[{name}]": value for name, value in inner.items()}
        with_sizes = is_sizes and bool(SIZES & set(code.co_names))
        whole = {name for name, value in held.items() if not is_sizes and _holds_whole(value)}
        for names, is_strict in ((set(held) - whole, False), (whole, True)):
            if (names or (with_sizes and not is_strict)) and not numbers.is_read:
                self._judge(frame, given, names, numbers, with_sizes=with_sizes and not is_strict, is_strict=is_strict)

    def _judge(
        self, frame: types.FrameType, given: dict[str, Any], names: set[str], numbers: Numbers, *, with_sizes: bool,
        is_strict: bool,
    ) -> None:  # fmt: skip
        kinds = tuple([(name, type(value)) for name, value in frame.f_locals.items()])
        key = (frame.f_code, frozenset(names), kinds, with_sizes, is_strict)
        if key not in self._known:
            is_whole = is_strict or numbers is self._sizes
            self._known[key] = Flow(frame, given, names, with_sizes=with_sizes, is_strict=is_strict, is_whole=is_whole)
        flow = self._known[key]
        for expression in flow.reads:
            if numbers is not self._sizes or not self._pin(frame, flow, expression):
                numbers.read()
        if flow.reason is not None:
            numbers.read()

    def _pin(self, frame: types.FrameType, flow: Flow, expression: ast.expr) -> bool:
        """Let a recording stand for no other value of a size that is read; False if that value cannot be found again."""
        if not flow.is_lasting(expression):
            return False
        text = compile(ast.Expression(expression), frame.f_code.co_filename, "eval")
        found = eval(text, frame.f_globals, dict(frame.f_locals))
        parts = list(found) if isinstance(found, (tuple, list)) else [found]
        for part in parts:
            if type(part) is TracedInt and part._numbers is self._sizes:
                equal = Condition((operator.eq, part._expression, int.__int__(part)), True)
                self._sizes.conditions.append(equal)
            elif type(part) is not int:
                return False
        return True


def _holds_whole(value: Any) -> bool:
    """Whether a followed value is, or holds, a whole number."""
    if isinstance(value, (tuple, list)):
        return any(map(_holds_whole, value))
    if type(value) is dict:
        return any(map(_holds_whole, value.values()))
    return type(value) is TracedInt
