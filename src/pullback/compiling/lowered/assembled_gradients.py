"""Gradients of parts, put in their places and summed.

# Note [Parts]
The gradient of a slice is zeros with a part in them, and sums of such gradients are what programs with slices spend their
backward in. A whole that was made of parts is remembered as these parts, side by side along one dimension: a sum of two
adds what lies at the same positions, part by part, and no zero is written, read or added anywhere else. The memory of the
whole itself is filled too, by steps that nobody needs where every reader takes the parts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from pullback.compiling.lowered.casts import filled
from pullback.compiling.lowered.lowering_table import floating, identity, lowering
from pullback.compiling.lowering import Lowering, Symbol, as_expression
from pullback.compiling.steps import Place

_MOST_PARTS = 64
"""A whole of more parts is written down as one: each sum looks at all parts."""


class Assembled(NamedTuple):
    """The parts of a whole along a dimension, where each begins and the last one ends; None stands for zeros."""

    dim: int
    bounds: list[int]
    parts: list[Place | None]

    def between(self, begin: int, end: int) -> Place | None:
        """What lies at some positions, all of them of one part."""
        number = next(n for n, bound in enumerate(self.bounds[1:]) if begin < bound)
        part = self.parts[number]
        return None if part is None else _slice(part, self.dim, begin - self.bounds[number], end - self.bounds[number])


def _slice(place: Place, dim: int, begin: int, end: int) -> Place:
    if (begin, end) == (0, place.shape[dim]):
        return place
    shape = (*place.shape[:dim], end - begin, *place.shape[dim + 1 :])
    return place.windowed(shape, place.strides, begin * place.strides[dim])


def _parts_of(lower: Lowering, place: Place, dim: int) -> Assembled:
    known = lower.assembled.get(place.storage)
    if known is not None and known.dim == dim and place == place.storage.whole:
        made: Assembled = known
        return made
    return Assembled(dim, [0, place.shape[dim]], [place])


def _put(part: Place, shape: tuple[int, ...], dim: int, start: int, end: int) -> Assembled:
    """A part with zeros around it."""
    bounds, parts = [0], []
    for bound, value in ((start, None), (end, part), (shape[dim], None)):
        if bound > bounds[-1]:
            bounds.append(bound)
            parts.append(value)
    return Assembled(dim, bounds, parts)


def _assemble(lower: Lowering, made: Assembled, out: Place) -> Place:
    """Fill a whole with parts, and remember them."""
    for (begin, end), part in zip(pairwise(made.bounds), made.parts, strict=True):
        window = out.storage.piece(_slice(out, made.dim, begin, end))
        if part is None:
            lower.map(lambda: Symbol(as_expression(0.0)), out=window)
        else:
            lower.map(identity, part, out=window)
    lower.assembled[out.storage] = made
    return out


def _sum(lower: Lowering, first: Assembled, second: Assembled, *, is_plain: bool = True) -> Assembled:
    """The sum, part by part; zeros are added to a part that is alone only if `is_plain`: it takes the sign from -0.0."""
    bounds = sorted({*first.bounds, *second.bounds})
    parts: list[Place | None] = []
    for begin, end in pairwise(bounds):
        a, b = first.between(begin, end), second.between(begin, end)
        if a is not None and b is not None:
            parts.append(lower.map(lambda x, y: x + y, a, b))
        elif a is None and b is None:
            parts.append(None)
        elif b is None and not is_plain:
            parts.append(a)
        else:
            parts.append(lower.map(lambda x: x + 0.0, b if a is None else a))
    return Assembled(first.dim, bounds, parts)


def _is_run(lower: Lowering, size: int, start: int, end: int, step: int) -> bool:
    """Whether positions are neighbours, of a dimension whose size is known."""
    return not lower.has_changing_sizes() and (
        0 <= start < size if step == 0 else step == 1 and 0 <= start < end <= size
    )


@lowering
def place_part(
    lower: Lowering, part: Place, shape: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Place:
    floating(part)
    if part.size and _is_run(lower, shape[dim], start, end, step):
        part = part if step else part.with_ones([dim])
        made = _put(part, tuple(shape), dim, start, end if step else start + 1)
        return _assemble(lower, made, lower.new(tuple(shape), part.dtype))
    out = filled(lower, tuple(shape), part.dtype, 0.0)
    out.storage.is_pieced = True
    lower.map(identity, part, out=_part_of(lower, out, dim, start, end, step))
    return out


def _part_of(lower: Lowering, whole: Place, dim: int, start: int, end: int, step: int) -> Place:
    at = (*[slice(None)] * dim, slice(start, end, step) if step else start, ...)
    return lower.window(whole, lambda array: array[at])


@lowering
def add_part_on_copies(
    lower: Lowering, whole: Place, part: Place, dim: int, start: int, end: int, step: int, first: bool
) -> Place:
    """A kernel that writes to its argument is recorded as one that gives what it has written."""
    floating(whole, part)
    out = lower.new(whole.shape, whole.dtype)
    before = _parts_of(lower, whole, dim)
    if part.size and _is_run(lower, whole.shape[dim], start, end, step) and len(before.parts) < _MOST_PARTS:
        part = part if step else part.with_ones([dim])
        added = _put(part, whole.shape, dim, start, end if step else start + 1)
        return _assemble(lower, _sum(lower, before, added, is_plain=first), out)
    lower.map(lambda x: x + 0.0 if first else x, whole, out=out)
    out.storage.is_pieced = True
    place = dim, start, end, step
    lower.map(lambda x, y: x + y, _part_of(lower, whole, *place), part, out=_part_of(lower, out, *place))
    return out


@lowering
def select_back(lower: Lowering, input: Place, shape: tuple[int, ...], dim: int, index: int) -> Place:
    return place_part(lower, input, shape, dim, index, 0, 0)


@lowering
def slice_back(
    lower: Lowering, input: Place, shape: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Place:
    return place_part(lower, input, shape, dim, start, end, step)


@lowering
def add(lower: Lowering, input: Place, other: Any, alpha: Any = 1) -> Place | None:
    """Sums of wholes; all else is read from the kernel's text."""
    if not isinstance(input, Place) or not isinstance(other, Place) or alpha != 1 or input.shape != other.shape:
        return None
    first, second = (lower.assembled.get(place.storage) for place in (input, other))
    if first is None or second is None or first.dim != second.dim or input.dtype != other.dtype:
        return None
    if input != input.storage.whole or other != other.storage.whole:
        return None
    if len(first.parts) + len(second.parts) > _MOST_PARTS:
        return None
    return _assemble(lower, _sum(lower, first, second), lower.new(input.shape, input.dtype))
