"""TracedNumber: a number among the arguments of a function that changes from call to call; TracedInt: a size.

# Note [Changing numbers]
The value of a number is part of what tells kinds of calls apart, until another value comes: then it is an input of the
program. While the function is recorded it is a float that writes down what is computed with it: `2 * rate` is an
expression of arguments, computed anew before each run, and a comparison is a condition under which the program holds.
Whatever else Python does with it (makes an int or a text of it, hands it to another library) needs its value: then the
argument is told apart by its value for good. So is every one where a value may have been read without asking: where an
array, or a number of another library, comes from outside of the program, and where the text of a function lets it get to
such a place (Note [Where numbers go]). Whole numbers are followed as well, by a function whose text is known: one that is
used as a size, an index or a count is told apart by its value. Until a number had two values in recordings that are equal,
the program holds for the one value that it had.

# Note [Followed sizes]
What the user's code learns of sizes is followed in the same way: `x.shape[0]` is a TracedInt of an expression, and a
comparison is a condition. Inside of this package sizes are plain numbers: what becomes of them there is found by comparing
recordings (Note [Templates]).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.modes.source_lines import PACKAGE
from pullback.tensor.tensor import TensorBase

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


def is_this_number(value: Any, wanted: str) -> bool:
    """Whether a number has the value that a text shows."""
    return repr(value) == wanted


def only_for(place: int, value: Any) -> Condition:
    """The condition that a number among the arguments has one value."""
    return Condition((is_this_number, [place], repr(value)), True)


class Numbers:
    """The numbers of one recording."""

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self.is_read = False
        """Whether Python used a value itself."""
        self.is_open = True
        self.is_used = False
        """Whether there is a number that is followed."""

    def trace(self, value: Any, expression: Expression) -> Any:
        """A number that is followed."""
        self.is_used = True
        made: Any = int.__new__(TracedInt, value) if type(value) is int else float.__new__(TracedNumber, value)
        made._expression, made._numbers = expression, self
        return made

    def is_followed_here(self) -> bool:
        """Whether the code that computes with a number now is to see one that is followed."""
        return self.is_open

    def read(self) -> None:
        """Note that a value was used."""
        if self.is_open:
            self.is_read = True


class Sizes(Numbers):
    """The sizes that the user's code learned in one recording. See Note [Followed sizes]."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []
        """What it learned, in order; expressions name the places in this list."""
        self.computed: list[tuple[Any, Expression]] = []
        """What it computed of that, in order."""

    def see(self, sizes: Sequence[int]) -> list[TracedInt]:
        """Sizes as the user's code gets them."""
        first = len(self.seen)
        self.seen.extend(sizes)
        return [super(Sizes, self).trace(size, [first + place]) for place, size in enumerate(sizes)]

    def trace(self, value: Any, expression: Expression) -> Any:
        """A number that was computed of sizes."""
        self.computed.append((value, expression))
        return super().trace(value, expression)

    def is_followed_here(self) -> bool:
        """Whether the user's code asks, and not this package."""
        return self.is_open and not is_called_from_package(2)


def is_called_from_package(depth: int) -> bool:
    """Whether the function that called, so many frames above the one that asks, belongs to this package."""
    return sys._getframe(depth + 1).f_code.co_filename.startswith(PACKAGE)


def evaluate(expression: Expression, leaves: Sequence[Any]) -> Any:
    """What an expression is for other arguments."""
    kind = type(expression)
    if kind is list:
        return leaves[expression[0]]
    if kind is tuple:
        return expression[0](*[evaluate(part, leaves) for part in expression[1:]])
    return expression


def expression_of(value: Any) -> Expression:
    """The expression of a number, followed or not; None for what is not a number."""
    kind = type(value)
    if kind is TracedNumber or kind is TracedInt:
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


def plain_number(value: Any) -> Any:
    """A number that is followed as Python's own."""
    kind = type(value)
    return float.__float__(value) if kind is TracedNumber else int.__int__(value) if kind is TracedInt else value


def _are_of_one_kind(numbers: Numbers, values: Sequence[Any]) -> bool:
    """Whether no number among some is followed for another reason; what is computed of both is followed no more."""
    others = [v._numbers for v in values if type(v) in (TracedNumber, TracedInt) and v._numbers is not numbers]
    for other in others:
        other.read()
        numbers.read()
    return not others


def _computing(function: Callable[..., Any], *, is_reflected: bool = False) -> Any:
    def method(self: Any, *others: Any) -> Any:
        numbers = self._numbers
        given = (*others, self) if is_reflected else (self, *others)
        expressions = [expression_of(value) for value in given]
        plain = [plain_number(value) for value in given]
        if None in expressions:
            if numbers.is_followed_here() and not all(isinstance(value, (TensorBase, ndarray)) for value in others):
                numbers.read()  # `"a" * number` does not ask it
            return NotImplemented
        if not numbers.is_followed_here() or not _are_of_one_kind(numbers, given):
            return function(*plain)
        made = function(*plain)
        if type(made) is not float and type(made) is not int:
            numbers.read()
            return made
        return numbers.trace(made, (function, *expressions))

    return method


def _comparing(function: Callable[..., Any]) -> Any:
    def method(self: Any, *others: Any) -> Any:
        numbers = self._numbers
        expressions = [expression_of(value) for value in (self, *others)]
        plain = plain_number(self)
        if None in expressions:
            if numbers.is_followed_here():
                numbers.read()
            return getattr(type(plain), f"__{function.__name__.strip('_')}__")(plain, *others)
        outcome = bool(function(plain, *[plain_number(value) for value in others]))
        if numbers.is_followed_here() and _are_of_one_kind(numbers, others):
            numbers.conditions.append(Condition((function, *expressions), outcome))
        return outcome

    return method


def _reading(name: str, kind: type) -> Callable[..., Any]:
    original = getattr(kind, name)

    def method(self: Any, *args: Any) -> Any:
        if self._numbers.is_followed_here():
            self._numbers.read()
        return original(plain_number(self), *args)

    method.__name__ = name
    return method


class TracedNumber(float):
    """See Note [Changing numbers]. Called as a class, as `type(number)(2)` does, it gives Python's own."""

    __slots__ = ("_expression", "_numbers")
    _expression: Expression
    _numbers: Numbers

    def __new__(cls, *args: Any) -> Any:
        """A number that is not followed."""
        return float(*args)


class TracedInt(int):
    """A whole number that is followed."""

    _expression: Expression
    _numbers: Numbers

    def __new__(cls, *args: Any) -> Any:
        """A number that is not followed."""
        return int(*args)


TracedNumber.__name__, TracedInt.__name__ = "float", "int"  # Python's errors name the types of operands
for _class in (TracedNumber, TracedInt):
    for _name in "add sub mul truediv floordiv mod pow".split():
        _function = getattr(operator, _name)
        setattr(_class, f"__{_name}__", _computing(_function))
        setattr(_class, f"__r{_name}__", _computing(_function, is_reflected=True))
    for _name in "neg pos abs".split():
        setattr(_class, f"__{_name}__", _computing(getattr(operator, _name)))
    for _function in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        setattr(_class, f"__{_function.__name__}__", _comparing(_function))
    setattr(_class, "__bool__", _comparing(operator.truth))  # noqa: B010  # as the others
for _name in (
    "__ceil__ __divmod__ __float__ __floor__ __format__ __hash__ __int__ __rdivmod__ __reduce_ex__ __repr__ __round__ "
    "__str__ __trunc__ as_integer_ratio conjugate"
).split():
    setattr(TracedNumber, _name, _reading(_name, float))
    setattr(TracedInt, _name, _reading(_name, int))
for _name in "hex is_integer".split():
    setattr(TracedNumber, _name, _reading(_name, float))
for _name in "__and__ __or__ __xor__ __rand__ __ror__ __rxor__ __lshift__ __rshift__ __invert__ bit_length".split():
    setattr(TracedInt, _name, _reading(_name, int))
