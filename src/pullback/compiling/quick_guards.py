"""Guards in C: that what a program depends on is the very same as in its last call.

Nearly always it is, and asking each place in Python costs more than a small program does. Where the guard says no,
everything is looked at again, and what is equal goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.compiling.capture import hooks_of
from pullback.compiling.surroundings import Place, cell_contents, code_of, defaults_of
from pullback.native import extension

_DICT, _LIST, _ITEM, _CELL, _ATTRIBUTE, _NOTHING, _CALL = range(7)
"""The kinds of rows, as native/unchanged.c has them."""
_Row = tuple[int, Any, Any, Any]


def write_guard(
    places: Sequence[Place], tensors: Sequence[Any], arrays: Sequence[Any], *, with_grads: bool
) -> Callable[[], bool] | None:
    """Whether places hold what they hold now, and tensors have these arrays and no hooks, and no `.grad` if that is asked.

    None where there is no compiled extension.
    """
    if not hasattr(extension, "make_unchanged"):
        return None
    rows = [row for place in places for row in _rows_of(place)]
    for tensor, array in zip(tensors, arrays, strict=True):
        rows.append((_ATTRIBUTE, tensor, "_array", array))
        rows.append((_ATTRIBUTE, tensor, "_requires_grad", bool(tensor._requires_grad)))
        rows.append((_ATTRIBUTE, tensor, "_extra", None) if tensor._extra is None else _called(_has_no_hooks(tensor)))
        if with_grads:
            rows.append((_ATTRIBUTE, tensor, "_grad", None))
    made: Callable[[], bool] = extension.make_unchanged(tuple(rows))
    return made


def _called(function: Callable[[], bool]) -> _Row:
    return (_CALL, function, None, None)


def _has_no_hooks(tensor: Any) -> Callable[[], bool]:
    return lambda: hooks_of(tensor) is None


def _rows_of(place: Place) -> Iterator[_Row]:
    """What says that a place is as it is."""
    holder, values = place.holder, place.values
    if place.item is not None and type(holder) is dict:
        yield (_ITEM, holder, place.item, values[0])
    elif place.read is cell_contents:
        yield (_CELL, holder, values[0], None)
    elif place.read is code_of:
        yield (_ATTRIBUTE, holder, "__code__", values[0])
    elif place.read is defaults_of:
        yield (_ATTRIBUTE, holder, "__defaults__", values[0])
        yield (_ATTRIBUTE, holder, "__kwdefaults__", values[1])
    elif place.read in (list, dict.values) and not values:
        yield (_NOTHING, holder, None, None)
    elif place.read is dict.values and place.keys is not None and type(holder) is dict:
        yield (_DICT, holder, tuple(place.keys), tuple(values))  # an OrderedDict has an order beside that of its memory
    elif place.read is list and type(holder) is list:
        yield (_LIST, holder, tuple(values), None)
    else:
        yield _called(place.is_as_it_was)
