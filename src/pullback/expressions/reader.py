"""Reads an elementwise kernel or rule's line, as syntax, into expressions over one element.

# Note [Rendered kernels]
The Python text is followed as Python would run it, with symbols for values: arrays become one element, Python numbers
stay double, functions that are called are followed into, and what is known of the compiled case (the dtype is float32 or
float64, never complex or half) is decided while reading. A test on something only the call knows (`alpha == 1`,
`approximate == "tanh"`) parts the ways: each way to a `return` is a variant with a loop of its own, each way to a `raise`,
or to something that expressions have no word for, is left to the Python kernel. A test on a size chooses between NumPy's
ways of computing one thing: it counts as false.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from pullback.expressions.functions import KERNEL_NAMES, NUMPY_NAMES
from pullback.expressions.python_sources import PythonSources
from pullback.expressions.tree import (
    CONDITION,
    MASK,
    NUMBER,
    REAL,
    TEXT,
    Expr,
    Number,
    Operation,
    Quoted,
    Select,
)
from pullback.expressions.ways import NeedsNumber, Optional, Refused, Unrenderable, Way, as_real, kind_of


class Fact:
    """Something about an array that is known, or must not matter, when its kernel is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name


_DTYPE, _CAST, _SIZE, _NUMPY, _MATH, _F = (Fact(n) for n in ("dtype", "cast", "size", "numpy", "math", "F"))

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_ANGLES = ("sin", "cos", "tan")
_QUOTIENTS = ("fmod", "remainder", "floor_divide")


def _function(name: str, *arguments: Expr) -> Operation:
    return Operation(name, arguments)


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
                raise Refused("the Python kernel raises")
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
        if name == "refuse_kinds":
            if "f" in self.expression(call.args[1], module, scope):
                raise Refused("the Python kernel refuses floating dtypes")
            return
        found = self.sources.resolve(module, name)
        if found is None:
            raise Unrenderable(ast.unparse(call))
        positional = [self.expression(a, module, scope) for a in call.args]
        names = [a.arg for a in found[1].args.args]
        self.call_check(*found, dict(zip(names, positional, strict=False)))

    def call_check(self, module: str, check: ast.FunctionDef, scope: dict[str, Any]) -> None:
        """Follow a function that raises or returns nothing: what it refuses is left to the Python kernel.

        What expressions have no word for are tests on shapes and dtypes, which the drivers of compiled kernels make.
        """
        for statement in check.body:
            try:
                self._run([statement], module, dict(scope))
            except Refused:
                raise
            except Unrenderable:
                continue

    def truth(self, value: Any) -> bool:
        """Whether a test holds on this way."""
        if isinstance(value, Fact):
            raise Unrenderable(f"a test on the {value.name} of an array")
        kind = kind_of(value)
        if kind is None:
            return bool(value)
        if kind == CONDITION:
            return self.way.decide(value)
        if kind == NUMBER:
            return self.way.decide(_is_not_zero(value))
        raise NeedsNumber

    def present(self, value: Any) -> Any:
        """A value that is about to be used: not None on this way."""
        if isinstance(value, Optional):
            if self.way.decide(_absent(value)):
                raise Unrenderable("None is used as a number")
            return value.load
        return value

    def real(self, value: Any) -> Expr:
        """A value as an element."""
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
        if kind_of(base) == REAL:
            known = {"dtype": _DTYPE, "shape": _SIZE, "ndim": _SIZE, "size": _SIZE, "real": base}
            if name in known:
                return known[name]
        if kind_of(base) == NUMBER and name == "dtype":
            return _DTYPE
        raise Unrenderable(f".{name}")

    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        value = self.present(value)
        if isinstance(operator, ast.Not):
            return not self.truth(value)
        if isinstance(operator, ast.Invert) and kind_of(value) == MASK:
            return Operation("!", (value,), MASK)
        if isinstance(operator, ast.USub):
            if isinstance(value, (int, float)):
                return -value
            if kind_of(value) in (REAL, NUMBER):
                return Operation("neg", (value,), value.kind)
        raise Unrenderable(f"{type(operator).__name__} of {value!r}")

    def _binary(self, operator: ast.operator, left: Any, right: Any) -> Any:
        left, right = self.present(left), self.present(right)
        numbers = [v for v in (left, right) if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if len(numbers) == 2:
            return _computed(operator, left, right)
        if isinstance(operator, (ast.BitAnd, ast.BitOr)) and kind_of(left) == kind_of(right) == MASK:
            return Operation("&" if isinstance(operator, ast.BitAnd) else "|", (left, right), MASK)
        sign = _BINARY.get(type(operator))
        if sign is None:
            raise Unrenderable(f"the operator {type(operator).__name__}")
        if {kind_of(left), kind_of(right)} <= {NUMBER, None}:
            if sign == "/" and kind_of(right) == NUMBER and not self.way.decide(_is_not_zero(right)):
                raise Unrenderable("Python raises ZeroDivisionError")
            return Operation(sign, (_as_double(left), _as_double(right)), NUMBER)
        return Operation(sign, (self.real(left), self.real(right)))

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
            absent = _absent(left) if isinstance(left, Optional) else left is None
            return (not self.truth(absent)) if isinstance(operator, ast.IsNot) else absent
        left, right = self.present(left), self.present(right)
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(left, str) and isinstance(right, str):
            return (left in right) == isinstance(operator, ast.In)
        if _SIZE in (left, right):
            if isinstance(operator, ast.Gt) and left is _SIZE:
                return False
            raise Unrenderable("a test on the size of an array")
        sign = _COMPARISONS.get(type(operator))
        if sign is None or isinstance(left, Fact) or isinstance(right, Fact):
            raise Unrenderable(f"the comparison {type(operator).__name__}")
        if kind_of(left) == TEXT and isinstance(right, str):
            same = Operation("same_text", (left, Quoted(right)), CONDITION)
            return same if sign == "==" else not self.truth(same)
        if kind_of(left) is None and kind_of(right) is None:
            return _computed_comparison(sign, left, right)
        if {kind_of(left), kind_of(right)} <= {NUMBER, None}:
            return Operation(sign, (_as_double(left), _as_double(right)), CONDITION)
        return Operation(sign, (self.real(left), self.real(right)), MASK)

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
            return self.real(positional[0])
        found = self.word(name, positional)
        if found is not None:
            return found
        target = self.sources.resolve(module, name) if module else None
        if target is None:
            raise Unrenderable(f"the function {ast.unparse(node.func)}")
        return self.call(*target, positional, keywords)

    def _is_instance(self, value: Any, types: str) -> bool:
        """A number of a compiled call is an int or a float."""
        if kind_of(value) == NUMBER and types in ("complex", "bool"):
            return False
        raise Unrenderable(f"isinstance(..., {types})")

    def _method(self, base: Any, name: str, positional: list[Any], keywords: dict[str, Any]) -> Any:
        if base is _NUMPY:
            return self._numpy(name, positional)
        if base is _MATH and all(isinstance(v, (int, float)) for v in positional):
            return getattr(math, name)(*positional)
        if base is _MATH and name in ("log", "sqrt", "exp") and kind_of(positional[0]) == NUMBER:
            return Operation(name, (positional[0],), NUMBER)
        if base is _F:
            found = self.word(name, positional)
            if found is not None:
                return found
            target = self.sources.public(name)
            if target is None:
                raise Unrenderable(f"F.{name}")
            return self.call(*target, positional, keywords)
        if base is _DTYPE and name == "type":
            return self.real(positional[0])
        if name == "conjugate" and (kind_of(base) is not None or isinstance(base, (int, float))):
            return base
        if name == "astype" and positional == [_DTYPE]:
            return self.real(base)
        raise Unrenderable(f".{name}()")

    def _numpy(self, name: str, values: list[Any]) -> Any:
        if name == "asarray":
            return values[0]
        if name == "clip" and len(values) == 3:
            raised = _function("maximum", self.real(values[0]), self.real(values[1]))
            return _function("minimum", raised, self.real(values[2]))
        if name in ("where", "logical_and", "logical_or", "logical_not", "isnan", "isfinite"):
            return self.word(name, values)
        if name in ("conjugate", "positive"):
            return values[0]
        if name in ("zeros_like", "ones_like"):
            return 0.0 if name == "zeros_like" else 1.0
        if name == "iscomplexobj":
            return False
        if name == "equal":
            return self._compare_two(ast.Eq(), *values)
        if name in _QUOTIENTS:
            return self._quotient(name, *[self.way.keep("part", self.real(v)) for v in values])
        if name == "square":
            kept = self.way.keep("factor", self.present(values[0]))
            return self._binary(ast.Mult(), kept, kept)
        function = NUMPY_NAMES.get(name)
        if function is None:
            raise Unrenderable(f"np.{name}")
        if name in _ANGLES:
            values = [self.way.keep("angle", self.real(values[0]))]
            self.way.beyond.append(Operation("beyond_angle", (values[0],), MASK))
        return Operation(function, tuple([self.real(v) for v in values]))

    def _quotient(self, name: str, dividend: Expr, divisor: Expr) -> Expr:
        """A remainder, or the quotient rounded down: both follow from the remainder that fmod leaves."""
        self.way.beyond.append(Operation("beyond_quotient", (dividend, divisor), MASK))
        rest: Expr = _function("fmod", dividend, divisor)
        if name == "fmod":
            return rest
        rest = self.way.keep("rest", rest)
        if name == "remainder":
            return _function("remainder_from", rest, divisor)
        return _function("floor_quotient", dividend, divisor, rest)

    def word(self, name: str, values: list[Any]) -> Any:
        """Functions whose meaning for one element is simpler than their NumPy text."""
        if name in ("where", "_select"):
            mask, first, second = values
            if kind_of(mask) != MASK:
                raise Unrenderable(f"{name} of something that is not a mask")
            return Select(mask, self.real(first), self.real(second))
        if name == "keep_where":
            return self.word("where", [values[0], values[1], 0])
        if name == "drop_where":
            return self.word("where", [values[0], 0, values[1]])
        if name in ("logical_and", "logical_or") and [kind_of(v) for v in values] == [MASK, MASK]:
            return Operation("&" if name == "logical_and" else "|", (values[0], values[1]), MASK)
        if name == "logical_not" and kind_of(values[0]) == MASK:
            return Operation("!", (values[0],), MASK)
        if name in ("isnan", "isfinite") and kind_of(values[0]) == REAL:
            value = self.way.keep("value", values[0])
            if name == "isnan":
                return Operation("!=", (value, value), MASK)
            return Operation("==", (Operation("-", (value, value)), as_real(0)), MASK)
        if name in KERNEL_NAMES:
            return _function(name, self.real(values[0]))
        if name == "_limit":
            if self.truth(self._compare_two(ast.Is(), values[1], None)):
                largest = _function("largest_like", self.real(values[0]))
                return Operation("neg", (largest,)) if values[2] < 0 else largest
            return self.real(values[1])
        if name == "checked_number":
            if kind_of(values[0]) == NUMBER and self.way.decide(Operation("float32_overflow", (values[0],), CONDITION)):
                raise Unrenderable("a number that float32 cannot hold")
            return values[0]
        if name == "is_complex_value":
            return False
        if name == "conj" or (name == "to_dtype" and values[1] is _DTYPE):
            return values[0]
        if name == "number_as":
            return self.real(values[0])
        if name == "abs" and kind_of(values[0]) == NUMBER:
            return Operation("abs", (values[0],), NUMBER)
        if name == "abs" and isinstance(values[0], (int, float)):
            return abs(values[0])
        if name == "abs":
            return _function("abs", self.real(values[0]))
        return None


def _as_double(value: Any) -> Expr:
    """A number of the call, or one that is known."""
    return value if kind_of(value) is not None else Number(float(value))


def _is_not_zero(value: Expr) -> Expr:
    return Operation("!=", (value, Number(0)), CONDITION)


def _absent(value: Optional) -> Expr:
    return Operation("absent", (value.load,), CONDITION)


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
