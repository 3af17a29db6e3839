"""The table that the files beside this one fill: what a kernel means in steps, by its name. They share what is below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiling.lowering import Lowering, NotLowered, Symbol
from pullback.compiling.steps import Place

LOWERINGS: dict[str, Callable[..., Any]] = {}


def lowering(function: Callable[..., Any]) -> Callable[..., Any]:
    LOWERINGS[function.__name__] = function
    return function


def axes_of(place: Place, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(len(place.shape)))
    return tuple([d % max(len(place.shape), 1) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])


def floating(*places: Place | None) -> None:
    if any(place is not None and place.dtype.char not in "fd" for place in places):
        raise NotLowered("no floating point numbers")
    if len({place.dtype for place in places if place is not None}) > 1:
        raise NotLowered("several dtypes")


def reshaped(lower: Lowering, place: Place, shape: tuple[int, ...]) -> Place:
    if place.shape == shape:
        return place
    return lower.window(place, lambda array: array.reshape(shape), shape)


def copied(lower: Lowering, place: Place) -> Place:
    return lower.map(lambda x: x, place)


def identity(x: Symbol) -> Symbol:
    return x
