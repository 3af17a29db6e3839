"""TracedNumber: a number among the arguments of a function that changes from call to call.

# Note [Changing numbers]
The value of a number is part of what tells kinds of calls apart, until another value comes: then it is an input of the
program. While the function is recorded it is a float that writes down what is computed with it: `2 * rate` is an
expression of arguments, computed anew before each run, and a comparison is a condition under which the program holds.
Whatever else Python does with it (makes an int or a text of it, hands it to another library) needs its value: then the
argument is told apart by its value for good. So is every one where a value may have been read without asking: where an
array, or a number of another library, comes from outside of the program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

Expression = Any
"""An argument (its place among the leaves, in a list of one), a plain number, or (function, expressions ...)."""


class Condition:
    """A comparison that Python made, and how it came out."""

    __slots__ = ("expression", "outcome")

    def __init__(self, expression: Expression, outcome: bool) -> None:
        self.expression, self.outcome = expression, outcome

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Whether it comes out so for other arguments."""
        return bool(evaluate(self.expression, leaves)) is self.outcome


class Numbers:
    """The numbers of one recording."""

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self.is_read = False
        """Whether Python used a value itself."""
        self.is_open = True

    def trace(self, value: float, expression: Expression) -> TracedNumber:
        """A number that is followed."""
        made = TracedNumber(value)
        made._expression, made._numbers = expression, self
        return made

    def read(self) -> None:
        """Note that a value was used."""
        if self.is_open:
            self.is_read = True


def evaluate(expression: Expression, leaves: Sequence[Any]) -> Any:
    """What an expression is for other arguments."""
    kind = type(expression)
    if kind is list:
        return leaves[expression[0]]
    if kind is tuple:
        return expression[0](*[evaluate(part, leaves) for part in expression[1:]])
    return expression


def expression_of(value: Any) -> Expression:
    """The expression of a number, followed or not; None for what is no number."""
    kind = type(value)
    if kind is TracedNumber:
        return value._expression
    return value if kind is float or kind is int or kind is bool else None


def key_of(expression: Expression) -> Any:
    """An expression as a key: equal for equal expressions of the same arguments."""
    if type(expression) is float:
        return (float, repr(expression))
    if type(expression) is list:
        return ("argument", expression[0])
    if type(expression) is tuple:
        return (expression[0], *[key_of(part) for part in expression[1:]])
    return (type(expression), str(expression))


def _plain(value: Any) -> Any:
    return float.__float__(value) if type(value) is TracedNumber else value


def _computing(function: Callable[..., Any], *, is_reflected: bool = False) -> Any:
    def method(self: TracedNumber, *others: Any) -> Any:
        numbers = self._numbers
        given = (*others, self) if is_reflected else (self, *others)
        expressions = [expression_of(value) for value in given]
        plain = [_plain(value) for value in given]
        if not numbers.is_open:
            return function(*plain)
        if None in expressions:
            if any(isinstance(value, (float, int, complex)) for value in others):
                numbers.read()
            return NotImplemented
        made = function(*plain)
        if type(made) is not float:
            numbers.read()
            return made
        return numbers.trace(made, (function, *expressions))

    return method


def _comparing(function: Callable[..., Any]) -> Any:
    def method(self: TracedNumber, *others: Any) -> Any:
        numbers = self._numbers
        expressions = [expression_of(value) for value in (self, *others)]
        if None in expressions:
            numbers.read()
            return getattr(float, f"__{function.__name__.strip('_')}__")(float.__float__(self), *others)
        outcome = bool(function(*[_plain(value) for value in (self, *others)]))
        if numbers.is_open:
            numbers.conditions.append(Condition((function, *expressions), outcome))
        return outcome

    return method


def _reading(name: str) -> Callable[..., Any]:
    original = getattr(float, name)

    def method(self: TracedNumber, *args: Any) -> Any:
        self._numbers.read()
        return original(float.__float__(self), *args)

    method.__name__ = name
    return method


class TracedNumber(float):
    """See Note [Changing numbers]."""

    __slots__ = ("_expression", "_numbers")
    _expression: Expression
    _numbers: Numbers

    __add__, __radd__ = _computing(operator.add), _computing(operator.add, is_reflected=True)
    __sub__, __rsub__ = _computing(operator.sub), _computing(operator.sub, is_reflected=True)
    __mul__, __rmul__ = _computing(operator.mul), _computing(operator.mul, is_reflected=True)
    __truediv__, __rtruediv__ = _computing(operator.truediv), _computing(operator.truediv, is_reflected=True)
    __floordiv__, __rfloordiv__ = _computing(operator.floordiv), _computing(operator.floordiv, is_reflected=True)
    __mod__, __rmod__ = _computing(operator.mod), _computing(operator.mod, is_reflected=True)
    __pow__, __rpow__ = _computing(operator.pow), _computing(operator.pow, is_reflected=True)
    __neg__ = _computing(operator.neg)
    __pos__ = _computing(operator.pos)
    __abs__ = _computing(operator.abs)
    __lt__ = _comparing(operator.lt)
    __le__ = _comparing(operator.le)
    __gt__ = _comparing(operator.gt)
    __ge__ = _comparing(operator.ge)
    __eq__ = _comparing(operator.eq)
    __ne__ = _comparing(operator.ne)
    __bool__ = _comparing(operator.truth)


for _name in (
    "__ceil__ __divmod__ __float__ __floor__ __format__ __hash__ __int__ __rdivmod__ __reduce_ex__ __repr__ __round__ "
    "__str__ __trunc__ as_integer_ratio hex is_integer conjugate"
).split():
    setattr(TracedNumber, _name, _reading(_name))
