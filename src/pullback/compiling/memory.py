"""How programs see parts of memory and write to them: pure functions on whole arrays. See Note [Recorded memory]."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pullback.backend.array_module import data_address, empty, memory_bounds, ndarray, restride, storage_of
from pullback.backend.device import find_library


def same_geometry(one: Any, other: Any) -> bool:
    """Whether two arrays of one block begin at the same place and go through it in the same way."""
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and one.strides == other.strides
        and data_address(one) == data_address(other)
    )


def storage_key(array: Any) -> Any:
    """What tells the memory that an array is a view of from all other: its owner, or where it begins on a device."""
    owner = storage_of(array)
    return id(owner) if isinstance(owner, ndarray) else ("device", data_address(owner))


def laid_out(
    source: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: Any, place: Any = None
) -> Any:
    """A new array of the given form that holds `source`: an array that broadcasts to it, or a number.

    `place` is the device for numbers; an array is laid out on its own.
    """
    place = getattr(source, "place", place)
    made = _memory(shape, dtype, place) if strides is None else _with_strides(shape, strides, dtype, place)
    made[...] = source
    return made


def unfilled(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """A new array of the given form, whatever it holds."""
    made = _memory(shape, dtype, place)
    return made if made.strides == strides else _with_strides(shape, strides, dtype, place)


def _memory(shape: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """Memory of a device, the CPU's if `place` is None."""
    if place is None:
        return empty(shape, dtype)
    library = find_library(place.type)
    return library.on(place, lambda: library.find(empty)(shape, dtype))


def _with_strides(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """Memory for an array of the given strides."""
    if 0 in shape:
        return _memory(shape, dtype, place)
    span = sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) // dtype.itemsize + 1
    return restride(_memory((span,), dtype, place), shape, strides)


def window(whole: Any, offset: int, shape: Any, strides: Any, dtype: Any, *, strides_of_whole: Any) -> Any:
    """A view of the memory of an array whose strides were `strides_of_whole`: `offset` and `strides` are in bytes."""
    if whole.strides != strides_of_whole:
        whole = laid_out(whole, whole.shape, strides_of_whole, whole.dtype)
    return _window(whole, offset, shape, strides, dtype)


def _window(whole: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
    low, high = memory_bounds(whole)
    unit = dtype.itemsize if not offset % dtype.itemsize and whole.dtype == dtype else 1
    if unit == 1:
        raw = restride(whole, (high - low,), (1,), _BYTE)
        return restride(raw[offset:], shape, strides, dtype)
    flat = restride(whole, ((high - low) // unit,), (unit,))
    return restride(flat[offset // unit :], shape, strides)


def written(
    whole: Any, source: Any, offset: int, shape: Any, strides: Any, dtype: Any, *, strides_of_whole: Any
) -> Any:
    """A copy of `whole` in which a window holds `source`."""
    made = laid_out(whole, whole.shape, strides_of_whole, whole.dtype)
    _window(made, offset, shape, strides, dtype)[...] = source
    return made


class WrittenApart:
    """Whether arrays that are written to share no memory with others.

    Those at places that are `lasting` are mostly the same in the next call, and are not asked again then.
    """

    def __init__(self, written: Sequence[int], lasting: Sequence[bool]) -> None:
        self._written = frozenset(written)
        self._lasting = lasting
        self._known: tuple[list[Any], list[Any]] = ([None] * len(lasting), [(0, 0, False)] * len(lasting))
        """Arrays and their bounds; replaced as one, since other threads may ask."""

    def holds_for(self, arrays: Sequence[Any]) -> bool:
        """Whether it is so."""
        former, bounds = self._known
        if all(map(operator.is_, former, arrays)):
            return True
        bounds = list(bounds)
        for place, array in enumerate(arrays):
            if array is not former[place]:
                bounds[place] = (*(memory_bounds(array) if array.size else (0, 0)), place in self._written)
        if not _are_apart(bounds):
            return False
        self._known = [a if lasts else None for a, lasts in zip(arrays, self._lasting, strict=True)], bounds
        return True


def _are_apart(bounds: Sequence[tuple[int, int, bool]]) -> bool:
    """Whether no piece of memory that is written to overlaps another."""
    end = end_of_written = 0
    for low, high, is_written in sorted(bounds):
        if low < (end if is_written else end_of_written) and high > low:
            return False
        end = max(end, high)
        if is_written:
            end_of_written = max(end_of_written, high)
    return True


def copied_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives copies of its results, each with memory of its own."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if isinstance(made, (tuple, list)):
            return tuple([laid_out(part, part.shape, None, part.dtype) for part in made])
        return laid_out(made, made.shape, None, made.dtype)

    return run


_BYTE: Any = empty((0,), "uint8").dtype
