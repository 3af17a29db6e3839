"""Reads an elementwise kernel or rule's line, as syntax, into expressions of C over one element.

# Note [Rendered kernels]
The Python text is followed as Python would run it, with symbols for values: arrays become one element (REAL), Python
numbers stay double, functions that are called are followed into, and what is known of the compiled case (the dtype is
float32 or float64, never complex or half) is decided while reading. A test on something only the call knows (`alpha ==
1`, `approximate == "tanh"`) parts the ways: each way to a `return` is a variant with a loop of its own, each way to a
`raise`, or to something that C has no word for, is left to the Python kernel. A test on a size chooses between NumPy's
ways of computing one thing: it counts as false.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tools.codegen.python_sources import PythonSources

REAL, NUMBER, MASK, CONDITION = "real", "number", "mask", "condition"
_MOST_PATHS = 64


class Unrenderable(Exception):
    """Something that C has no word for, or that the Python kernel refuses."""


class _NeedsNumber(Exception):
    """A test on an operand: the kernel can be compiled only for calls in which that operand is a Python number."""


@dataclass(frozen=True)
class Value:
    """A value of the compiled call: `text` is C, `kind` its type."""

    kind: str
    text: str


class _Fact:
    """Something about an array that is known, or must not matter, when its kernel is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name


_DTYPE, _CAST, _SIZE, _NUMPY, _MATH, _F = (_Fact(n) for n in ("dtype", "cast", "size", "numpy", "math", "F"))

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
# NumPy's functions that have one word in functions.h.
_FUNCTIONS = {
    "exp": "exp_of", "expm1": "expm1_of", "log": "log_of", "log1p": "log1p_of", "tanh": "tanh_of", "sqrt": "sqrt_of",
    "abs": "abs_of", "fabs": "abs_of", "sin": "sin_of", "cos": "cos_of", "floor": "floor_of", "ceil": "ceil_of",
    "trunc": "trunc_of", "rint": "rint_of", "maximum": "maximum_of", "minimum": "minimum_of", "fmax": "fmax_of",
    "fmin": "fmin_of", "copysign": "copysign_of", "logaddexp": "logaddexp_of", "hypot": "hypot_of",
    "tan": "tan_of", "arctan2": "atan2_of", "arcsin": "asin_of", "cosh": "cosh_of",
    "log2": "log2_of", "log10": "log10_of", "exp2": "exp2_of",
}  # fmt: skip
_ANGLES = ("sin", "cos", "tan")
_QUOTIENTS = ("fmod", "remainder", "floor_divide")
# Kernels that special_functions.h has a word for, whose Python text is one of branches.
_SPECIAL = {
    "erf": "erf_of", "erfc": "erfc_of", "erfinv": "erfinv_of", "lgamma": "lgamma_of", "digamma": "digamma_of",
    "sinc": "sinc_of",
}  # fmt: skip
_COSTLY = (
    "exp_of", "expm1_of", "log_of", "log1p_of", "tanh_of", "sin_of", "cos_of", "erf_of", "erfc_of", "erfinv_of",
    "lgamma_of", "digamma_of", "logaddexp_of", "sinc_of", "tan_of", "atan2_of", "asin_of", "cosh_of",
    "log2_of", "log10_of", "exp2_of",
)  # fmt: skip
# What float32 alone has: the Python kernel serves float64.
_OF_FLOAT32 = ("digamma_of", "tan_of", "atan2_of", "asin_of", "cosh_of", "log2_of", "log10_of", "exp2_of")


@dataclass
class Variant:
    """One way through a kernel: under `conditions`, `statements` and then `result`; None where C has no word.

    Where one of the tests in `beyond` holds for an element, libm computes them all.
    """

    conditions: list[str]
    statements: list[str]
    result: str | None
    beyond: list[str]
    reason: str = ""

    @property
    def is_costly(self) -> bool:
        return self._calls(_COSTLY)

    @property
    def is_for_float32(self) -> bool:
        return self._calls(_OF_FLOAT32)

    def _calls(self, names: tuple[str, ...]) -> bool:
        return any(f"{name}(" in text for name in names for text in (*self.statements, self.result or ""))


@dataclass
class Way:
    """The state of one walk through a kernel: how tests were decided, and what was written."""

    decisions: list[bool]
    taken: list[bool] = field(default_factory=list)
    conditions: dict[str, bool] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    beyond: list[str] = field(default_factory=list)

    def decide(self, text: str) -> bool:
        """Whether this way takes the test `text` as true."""
        if text not in self.conditions:
            place = len(self.taken)
            choice = self.decisions[place] if place < len(self.decisions) else True
            self.taken.append(choice)
            self.conditions[text] = choice
        return self.conditions[text]

    def keep(self, name: str, value: Any) -> Any:
        """Give an expression over elements a name in the loop, so that it is computed once."""
        if not isinstance(value, Value) or value.kind not in (REAL, MASK) or value.text.isidentifier():
            return value
        unique, number = name, 2
        while unique in self.names:
            unique, number = f"{name}_{number}", number + 1
        self.names.add(unique)
        self.statements.append(f"const {'REAL' if value.kind == REAL else 'int'} {unique} = {value.text};")
        return Value(value.kind, unique)


def find_variants(names: set[str], evaluate: Callable[[Way], Any]) -> list[Variant]:
    """Every way through a kernel, whose operands and numbers are called `names`."""
    pending: list[list[bool]] = [[]]
    variants: list[Variant] = []
    while pending:
        decisions = pending.pop()
        way = Way(decisions, names=set(names))
        result, reason = None, ""
        try:
            result = as_real(evaluate(way))
            if result in names:
                result, reason = None, "nothing is computed"
        except Unrenderable as problem:
            reason = str(problem)
        conditions = [text if truth else f"!({text})" for text, truth in way.conditions.items()]
        variants.append(Variant(conditions, way.statements, result, way.beyond, reason))
        pending += [[*way.taken[:i], False] for i in range(len(decisions), len(way.taken))]
        if len(variants) > _MOST_PATHS:
            raise Unrenderable("too many tests")
    if all(variant.result is None for variant in variants):
        raise Unrenderable(variants[0].reason)
    return variants


def as_real(value: Any) -> str:
    """The text of a value as an element."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, tuple, _Fact)):
        raise Unrenderable(f"{value!r} is no number")
    if isinstance(value, (int, float)):
        return f"(REAL){literal(value)}"
    if isinstance(value, Value):
        if value.kind == REAL:
            return value.text
        if value.kind == NUMBER:
            return f"(REAL){value.text}"
        if value.kind == MASK:
            return f"({value.text} ? (REAL)1 : (REAL)0)"
    raise Unrenderable(f"{value!r} is no number")


def literal(value: float) -> str:
    """A Python number as C writes it."""
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if math.isnan(value):
        return "NAN"
    return repr(value) if value >= 0 else f"({value!r})"


class Reader:
    """Follows the Python text along one way."""

    def __init__(self, sources: PythonSources, way: Way) -> None:
        self.sources = sources
        self.way = way

    def call(self, module: str, function: ast.FunctionDef, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call of a Python function."""
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if len(positional) > len(names) or arguments.vararg or arguments.kwarg:
            raise Unrenderable(f"the arguments of {function.name}")
        scope: dict[str, Any] = dict(zip(names, positional, strict=False)) | keywords
        defaults = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
        defaults |= {
            a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None
        }
        for name, default in defaults.items():
            if name not in scope:
                scope[name] = self.expression(default, module, {})
        return self.body(function.body, module, {name: self.way.keep(name, value) for name, value in scope.items()})

    def body(self, statements: list[ast.stmt], module: str, scope: dict[str, Any]) -> Any:
        """The value that a function's body returns."""
        returned = self._run(statements, module, scope)
        if returned is None:
            raise Unrenderable("no value is returned")
        return returned[0]

    def _run(self, statements: list[ast.stmt], module: str, scope: dict[str, Any]) -> tuple[Any] | None:
        """Follow statements; (value,) where they return one."""
        for statement in statements:
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    return (None,)
                return (self.expression(statement.value, module, scope),)
            if isinstance(statement, ast.If):
                test = self.truth(self.expression(statement.test, module, scope))
                returned = self._run(statement.body if test else statement.orelse, module, scope)
                if returned is not None:
                    return returned
            elif isinstance(statement, ast.Try):
                return self._run(statement.body, module, scope)
            elif isinstance(statement, ast.Raise):
                raise Unrenderable("the Python kernel raises")
            else:
                self._step(statement, module, scope)
        return None

    def _step(self, statement: ast.stmt, module: str, scope: dict[str, Any]) -> None:
        """Follow an assignment, or a call that only checks."""
        if isinstance(statement, ast.Assign):
            self._assign(statement.targets[0], self.expression(statement.value, module, scope), scope)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, self.expression(statement.value, module, scope), scope)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            made = self._binary(
                statement.op, scope[statement.target.id], self.expression(statement.value, module, scope)
            )
            self._assign(statement.target, made, scope)
        elif isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Call):
                self._check(statement.value, module, scope)
            elif not isinstance(statement.value, ast.Constant):
                raise Unrenderable(ast.unparse(statement))
        else:
            raise Unrenderable(ast.unparse(statement))

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = self.way.keep(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item, scope)
        else:
            raise Unrenderable(f"assignment to {ast.unparse(target)}")

    def _check(self, call: ast.Call, module: str, scope: dict[str, Any]) -> None:
        """A statement that raises for what is not compiled anyway: a check of the dtype, or a function of such checks."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "_refuse_kinds":
            if "f" in self.expression(call.args[1], module, scope):
                raise Unrenderable("the Python kernel refuses floating dtypes")
            return
        if name == "check_broadcastable":
            return
        found = self.sources.resolve(module, name)
        if found is None:
            raise Unrenderable(ast.unparse(call))
        positional = [self.expression(a, module, scope) for a in call.args]
        names = [a.arg for a in found[1].args.args]
        self._run(found[1].body, found[0], dict(zip(names, positional, strict=False)))

    def truth(self, value: Any) -> bool:
        """Whether a test holds on this way."""
        if isinstance(value, _Fact):
            raise Unrenderable(f"a test on the {value.name} of an array")
        if not isinstance(value, Value):
            return bool(value)
        if value.kind == CONDITION:
            return self.way.decide(value.text)
        if value.kind == NUMBER:
            return self.way.decide(f"{value.text} != 0")
        raise _NeedsNumber

    def present(self, value: Any) -> Any:
        """A value that is about to be used: not None on this way."""
        if isinstance(value, _Optional):
            if self.way.decide(f"absent({value.text})"):
                raise Unrenderable("None is used as a number")
            return Value(value.kind, value.text)
        return value

    def real(self, value: Any) -> str:
        """The text of a value as an element."""
        return as_real(self.present(value))

    def expression(self, node: ast.expr, module: str, scope: dict[str, Any]) -> Any:
        """The value of an expression: a Python constant where it is known now, else a Value."""
        follow: Callable[[ast.expr], Any] = lambda part: self.expression(part, module, scope)  # noqa: E731
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node.id, module, scope)
            case ast.Tuple():
                return tuple(follow(part) for part in node.elts)
            case ast.BinOp():
                return self._binary(node.op, follow(node.left), follow(node.right))
            case ast.UnaryOp():
                return self._unary(node.op, follow(node.operand))
            case ast.Compare():
                return self._compare(node, follow)
            case ast.BoolOp():
                wanted = isinstance(node.op, ast.Or)
                value = None
                for part in node.values:
                    value = follow(part)
                    if self.truth(value) == wanted:
                        return wanted
                return not wanted
            case ast.IfExp():
                return follow(node.body if self.truth(follow(node.test)) else node.orelse)
            case ast.Attribute():
                return self._attribute(follow(node.value), node.attr)
            case ast.Call():
                return self._call(node, module, scope)
        raise Unrenderable(ast.unparse(node))

    def _name(self, name: str, module: str, scope: dict[str, Any]) -> Any:
        if name in scope:
            return scope[name]
        known = {"np": _NUMPY, "math": _MATH, "F": _F}
        if name in known:
            return known[name]
        constants = self.sources.modules[module].constants if module else {}
        if name in constants:
            return self.expression(constants[name], module, {})
        raise Unrenderable(f"the name {name}")

    def _attribute(self, base: Any, name: str) -> Any:
        if base in (_NUMPY, _MATH) and name in ("pi", "inf", "nan", "e"):
            return getattr(math, name)
        if base is _DTYPE:
            known = {"kind": "f", "itemsize": 4, "type": _CAST}
            if name in known:
                return known[name]
        if isinstance(base, Value) and base.kind == REAL:
            known = {"dtype": _DTYPE, "shape": _SIZE, "ndim": _SIZE, "size": _SIZE, "real": base}
            if name in known:
                return known[name]
        if isinstance(base, Value) and base.kind == NUMBER and name == "dtype":
            return _DTYPE
        raise Unrenderable(f".{name}")

    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        value = self.present(value)
        if isinstance(operator, ast.Not):
            return not self.truth(value)
        if isinstance(operator, ast.Invert) and isinstance(value, Value) and value.kind == MASK:
            return Value(MASK, f"(!{value.text})")
        if isinstance(operator, ast.USub):
            if isinstance(value, (int, float)):
                return -value
            if isinstance(value, Value) and value.kind in (REAL, NUMBER):
                return Value(value.kind, f"(-{value.text})")
        raise Unrenderable(f"{type(operator).__name__} of {value!r}")

    def _binary(self, operator: ast.operator, left: Any, right: Any) -> Any:
        left, right = self.present(left), self.present(right)
        numbers = [v for v in (left, right) if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if len(numbers) == 2:
            return _computed(operator, left, right)
        if isinstance(operator, (ast.BitAnd, ast.BitOr)) and _kind(left) == _kind(right) == MASK:
            return Value(MASK, f"({left.text} {'&' if isinstance(operator, ast.BitAnd) else '|'} {right.text})")
        sign = _BINARY.get(type(operator))
        if sign is None:
            raise Unrenderable(f"the operator {type(operator).__name__}")
        if {_kind(left), _kind(right)} <= {NUMBER, None}:
            texts = [v.text if isinstance(v, Value) else _double(v) for v in (left, right)]
            if sign == "/" and isinstance(right, Value) and not self.way.decide(f"{right.text} != 0"):
                raise Unrenderable("Python raises ZeroDivisionError")
            return Value(NUMBER, f"({texts[0]} {sign} {texts[1]})")
        return Value(REAL, f"({self.real(left)} {sign} {self.real(right)})")

    def _compare(self, node: ast.Compare, follow: Callable[[ast.expr], Any]) -> Any:
        values = [follow(node.left), *[follow(part) for part in node.comparators]]
        if len(values) > 2:
            return all(
                self.truth(self._compare_two(operator, a, b))
                for operator, a, b in zip(node.ops, values, values[1:], strict=False)
            )
        return self._compare_two(node.ops[0], *values)

    def _compare_two(self, operator: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(operator, (ast.Is, ast.IsNot)) and right is None:
            absent = Value(CONDITION, f"absent({left.text})") if isinstance(left, _Optional) else left is None
            return (not self.truth(absent)) if isinstance(operator, ast.IsNot) else absent
        left, right = self.present(left), self.present(right)
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(left, str) and isinstance(right, str):
            return (left in right) == isinstance(operator, ast.In)
        if _SIZE in (left, right):
            if isinstance(operator, ast.Gt) and left is _SIZE:
                return False
            raise Unrenderable("a test on the size of an array")
        sign = _COMPARISONS.get(type(operator))
        if sign is None or isinstance(left, _Fact) or isinstance(right, _Fact):
            raise Unrenderable(f"the comparison {type(operator).__name__}")
        if isinstance(left, Text) and isinstance(right, str):
            same = f"!strcmp({left.text}, {_quoted(right)})"
            return Value(CONDITION, same if sign == "==" else f"!({same})")
        if not isinstance(left, Value) and not isinstance(right, Value):
            return _computed_comparison(sign, left, right)
        if {_kind(left), _kind(right)} <= {NUMBER, None}:
            texts = [v.text if isinstance(v, Value) else _double(v) for v in (left, right)]
            return Value(CONDITION, f"{texts[0]} {sign} {texts[1]}")
        return Value(MASK, f"({self.real(left)} {sign} {self.real(right)})")

    def _call(self, node: ast.Call, module: str, scope: dict[str, Any]) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            return self._is_instance(self.expression(node.args[0], module, scope), ast.unparse(node.args[1]))
        if isinstance(node.func, ast.Name) and node.func.id in ("_natively", "_elementwise"):
            formula = self.sources.resolve(module, ast.unparse(node.args[0]))
            if formula is None:
                raise Unrenderable(ast.unparse(node))
            return self.call(*formula, [self.expression(a, module, scope) for a in node.args[1:]], {})
        if isinstance(node.func, ast.Name) and node.func.id == "_through_float64":
            values = [self.expression(a, module, scope) for a in node.args[1:]]
            return self._numpy(ast.unparse(node.args[0]).removeprefix("np."), values)
        positional = [self.expression(a, module, scope) for a in node.args]
        keywords = {str(k.arg): self.expression(k.value, module, scope) for k in node.keywords}
        if isinstance(node.func, ast.Attribute):
            base = self.expression(node.func.value, module, scope)
            return self._method(base, node.func.attr, positional, keywords)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in scope and scope[name] is _CAST:
            return Value(REAL, self.real(positional[0]))
        found = self.word(name, positional)
        if found is not None:
            return found
        target = self.sources.resolve(module, name) if module else None
        if target is None:
            raise Unrenderable(f"the function {ast.unparse(node.func)}")
        return self.call(*target, positional, keywords)

    def _is_instance(self, value: Any, types: str) -> bool:
        """A number of a compiled call is an int or a float."""
        if _kind(value) == NUMBER and types in ("complex", "bool"):
            return False
        raise Unrenderable(f"isinstance(..., {types})")

    def _method(self, base: Any, name: str, positional: list[Any], keywords: dict[str, Any]) -> Any:
        if base is _NUMPY:
            return self._numpy(name, positional)
        if base is _MATH and all(isinstance(v, (int, float)) for v in positional):
            return getattr(math, name)(*positional)
        if base is _MATH and name in ("log", "sqrt", "exp") and _kind(positional[0]) == NUMBER:
            return Value(NUMBER, f"{name}({positional[0].text})")
        if base is _F:
            found = self.word(name, positional)
            if found is not None:
                return found
            target = self.sources.public(name)
            if target is None:
                raise Unrenderable(f"F.{name}")
            return self.call(*target, positional, keywords)
        if base is _DTYPE and name == "type":
            return Value(REAL, self.real(positional[0]))
        if name == "conjugate" and isinstance(base, (Value, int, float)):
            return base
        if name == "astype" and positional == [_DTYPE]:
            return Value(REAL, self.real(base))
        raise Unrenderable(f".{name}()")

    def _numpy(self, name: str, values: list[Any]) -> Any:
        if name == "asarray":
            return values[0]
        if name == "clip" and len(values) == 3:
            raised = f"maximum_of({self.real(values[0])}, {self.real(values[1])})"
            return Value(REAL, f"minimum_of({raised}, {self.real(values[2])})")
        if name in ("where", "logical_and", "logical_or", "logical_not", "isnan", "isfinite"):
            return self.word(name, values)
        if name in ("conjugate", "positive"):
            return values[0]
        if name == "zeros_like":
            return 0.0
        if name == "iscomplexobj":
            return False
        if name == "equal":
            return self._compare_two(ast.Eq(), *values)
        if name in _QUOTIENTS:
            return self._quotient(name, *[self.way.keep("part", Value(REAL, self.real(v))) for v in values])
        if name == "square":
            kept = self.way.keep("factor", self.present(values[0]))
            return self._binary(ast.Mult(), kept, kept)
        word = _FUNCTIONS.get(name)
        if word is None:
            raise Unrenderable(f"np.{name}")
        if name in _ANGLES:
            values = [self.way.keep("angle", Value(REAL, self.real(values[0])))]
            self.way.beyond.append(f"abs_of({values[0].text}) > (REAL)LARGEST_ANGLE")
        return Value(REAL, f"{word}({', '.join(self.real(v) for v in values)})")

    def _quotient(self, name: str, dividend: Value, divisor: Value) -> Value:
        """A remainder, or the quotient rounded down: both follow from the remainder that fmod leaves."""
        a, b = dividend.text, divisor.text
        self.way.beyond.append(f"abs_of({a} / {b}) > LARGEST_QUOTIENT({a})")
        rest = Value(REAL, f"fmod_of({a}, {b})")
        if name == "fmod":
            return rest
        rest = self.way.keep("rest", rest)
        if name == "remainder":
            return Value(REAL, f"remainder_from_of({rest.text}, {b})")
        return Value(REAL, f"floor_quotient_of({a}, {b}, {rest.text})")

    def word(self, name: str, values: list[Any]) -> Any:
        """Functions whose meaning for one element is simpler than their NumPy text."""
        if name in ("where", "_select"):
            mask, first, second = values
            if _kind(mask) != MASK:
                raise Unrenderable(f"{name} of something that is no mask")
            return Value(REAL, f"({mask.text} ? {self.real(first)} : {self.real(second)})")
        if name == "keep_where":
            return self.word("where", [values[0], values[1], 0])
        if name == "drop_where":
            return self.word("where", [values[0], 0, values[1]])
        if name in ("logical_and", "logical_or") and [_kind(v) for v in values] == [MASK, MASK]:
            return Value(MASK, f"({values[0].text} {'&' if name == 'logical_and' else '|'} {values[1].text})")
        if name == "logical_not" and _kind(values[0]) == MASK:
            return Value(MASK, f"(!{values[0].text})")
        if name in ("isnan", "isfinite") and _kind(values[0]) == REAL:
            value = self.way.keep("value", values[0])
            test = f"{value.text} != {value.text}" if name == "isnan" else f"{value.text} - {value.text} == 0"
            return Value(MASK, f"({test})")
        if name in _SPECIAL:
            return Value(REAL, f"{_SPECIAL[name]}({self.real(values[0])})")
        if name == "_limit":
            if self.truth(self._compare_two(ast.Is(), values[1], None)):
                return Value(REAL, f"({'-' if values[2] < 0 else ''}largest_like({self.real(values[0])}))")
            return Value(REAL, self.real(values[1]))
        if name == "_as_mask":
            return values[1]
        if name == "checked_number":
            if _kind(values[0]) == NUMBER:
                size = f"fabs({values[0].text})"
                if self.way.decide(f"{size} > FLT_MAX && {size} <= DBL_MAX"):
                    raise Unrenderable("a number that float32 cannot hold")
            return values[0]
        if name == "is_complex_value":
            return False
        if name == "conj" or (name == "to_dtype" and values[1] is _DTYPE):
            return values[0]
        if name == "number_as":
            return Value(REAL, self.real(values[0]))
        if name == "abs" and _kind(values[0]) == NUMBER:
            return Value(NUMBER, f"fabs({values[0].text})")
        if name == "abs" and isinstance(values[0], (int, float)):
            return abs(values[0])
        if name == "abs":
            return Value(REAL, f"abs_of({self.real(values[0])})")
        return None


class Text(Value):
    """A string argument."""


class _Optional(Value):
    """A number or an array that may be None."""


def optional(kind: str, name: str) -> Value:
    """A parameter that may be None."""
    return _Optional(kind, name)


def needs_number(evaluate: Callable[[], list[Variant]]) -> list[Variant] | None:
    """The variants; None where an operand must be a Python number for a test to be decided."""
    try:
        return evaluate()
    except _NeedsNumber:
        return None


def _kind(value: Any) -> str | None:
    return value.kind if isinstance(value, Value) else None


def _double(value: float) -> str:
    return literal(float(value))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    name = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Pow: "__pow__"}
    if type(operator) not in name:
        raise Unrenderable(f"the operator {type(operator).__name__}")
    return getattr(float(left), name[type(operator)])(float(right))


def _computed_comparison(sign: str, left: Any, right: Any) -> bool:
    answers = {"==": left == right, "!=": left != right}
    if sign in answers:
        return answers[sign]
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign])
