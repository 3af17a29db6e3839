"""Sized and SizedFloat: numbers of a plan that stand for sizes that change, so that C text does not depend on them.

# Note [Sizes in text]
A plan is made for one shape, with plain numbers, and is right for that shape whatever its text says. Where a program was
written down by a template (Note [Templates]), the numbers in it that depend on changing sizes know how they came about: what
is computed with them does too, and in the text of a loop they are parameters with the values of this plan. Plans for other
sizes then have the same texts, which are compiled once. A number whose origin was lost on the way is a number in the text:
that costs a compilation, and nothing else.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.tensor.size import Size

_keys: dict[Any, str] = {}
"""Short names of how numbers came about, by that."""


def _key(*parts: Any) -> str:
    return _keys.setdefault(parts, f"k{len(_keys)}")


class Sized(int):
    """A whole number that depends on changing sizes."""

    key: str

    def __repr__(self) -> str:
        return f"@{self.key}={int(self)}@"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return repr(self)


class SizedFloat(float):
    """A number that was computed from changing sizes."""

    __slots__ = ("key",)
    key: str

    def __repr__(self) -> str:
        return f"@{self.key}={float(self).hex()}@"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return repr(self)


def sized(value: Any, *origin: Any) -> Any:
    """A number that came about in a way that `origin` tells."""
    made: Any = Sized(value) if isinstance(value, int) else SizedFloat(value)
    made.key = _key(*origin)
    return made


class SizedScalar:
    """A number of NumPy's kind that was computed from changing sizes."""

    def __init__(self, scalar: Any, number: Any) -> None:
        self.scalar, self.number = scalar, number

    def __repr__(self) -> str:
        return repr(self.number)


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is SizedScalar:
        return value.scalar
    return int(value) if kind is Sized else float(value) if kind is SizedFloat else value


def without_sizes(given: Any) -> Any:
    """Arguments with Python's own numbers."""
    kind = type(given)
    if kind is tuple or kind is list:
        return kind([without_sizes(part) for part in given])
    if kind is dict:
        return {key: without_sizes(part) for key, part in given.items()}
    if kind is Size:
        return Size(tuple([_plain(part) for part in given]))
    if kind is slice:
        return slice(_plain(given.start), _plain(given.stop), _plain(given.step))
    return _plain(given)


def _computing(function: Callable[..., Any], *, is_reflected: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        given = (other, self) if is_reflected else (self, other)
        made = function(*map(_plain, given))
        if isinstance(made, complex):
            return made
        return sized(made, function.__name__, *[getattr(value, "key", value) for value in given])

    return method


for _class in (Sized, SizedFloat):
    for _name in "add sub mul truediv floordiv mod".split():
        _function = getattr(operator, _name)
        setattr(_class, f"__{_name}__", _computing(_function))
        setattr(_class, f"__r{_name}__", _computing(_function, is_reflected=True))


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to, each size as it came; ValueError where they do not."""
    made: list[int] = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for place in range(1, len(shape) + 1):
            size = shape[-place]
            if made[-place] == 1:
                made[-place] = size
            elif size not in (1, made[-place]):
                raise ValueError(f"shapes {shapes} do not broadcast")
    return tuple(made)


def sized_among(rows: Iterable[Sequence[int]]) -> dict[int, Sized]:
    """The sized numbers among shapes, or among strides, by what they are in this plan."""
    return {int(number): number for row in rows for number in row if type(number) is Sized}


_TOKEN = re.compile(r"@(\w+)=([^@]+)@")
MARK = "    SIZES\n"
"""A line of a loop in whose place its parameters are declared."""


def with_parameters(text: str, at: int) -> tuple[str, list[float]]:
    """A loop's text with names in place of sized numbers, and their values; `at` is where the loop finds these."""
    names: dict[str, int] = {}
    values: list[float] = []
    kinds: list[str] = []

    def name(match: re.Match[str]) -> str:
        key, value = match[1], match[2]
        if key not in names:
            names[key] = len(values)
            is_whole = "x" not in value and "n" not in value
            kinds.append("ptrdiff_t" if is_whole else "double")
            values.append(float(int(value)) if is_whole else float.fromhex(value))
        return f"s{names[key]}"

    text = _TOKEN.sub(name, text)
    lines = [f"    const {kind} s{n} = ({kind})sizes[{n}];\n" for n, kind in enumerate(kinds)]
    head = f"    const double *restrict sizes = (const double *)places[at[{at}]];\n" if values else ""
    return text.replace(MARK, head + "".join(lines)), values
