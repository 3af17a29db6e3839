"""Casts, copies, fills and comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiling.lowered.lowering_table import LOWERINGS, identity, lowering
from pullback.compiling.lowering import Lowering, NotLowered, Symbol, as_expression, choose
from pullback.compiling.sizes import broadcast_shape
from pullback.compiling.steps import Place, is_dense, row_major
from pullback.expressions import tree


@lowering
def to_dtype(lower: Lowering, input: Place, dtype: Any) -> Place:
    target = np.dtype(dtype)
    if target == input.dtype:
        return input
    return _cast(lower, input, target)


def _cast(lower: Lowering, input: Place, target: Any) -> Place:
    """In C a cast of a number out of range means nothing, so floating point numbers become no integers here."""
    if input.dtype.kind == "f" and target.kind in "iu":
        raise NotLowered("a cast to integers")
    if not is_dense(input.shape, input.strides, input.dtype.itemsize):
        strides = row_major(input.shape, target.itemsize)
    else:
        strides = tuple([s // input.dtype.itemsize * target.itemsize for s in input.strides])
    out = lower.new(input.shape, target, strides)
    if target.char == "?":
        return lower.map(lambda x: x.compare("!=", 0), input, out=out)
    return lower.map(lambda x: choose(x, 1, 0) if x.expression.kind == tree.MASK else x, input, out=out)


@lowering
def to_copy(lower: Lowering, input: Place, dtype: Any) -> Place:
    return to_dtype(lower, input, dtype)


@lowering
def clone(lower: Lowering, input: Place) -> Place:
    if not is_dense(input.shape, input.strides, input.dtype.itemsize):
        raise NotLowered("a layout that NumPy chooses")
    return lower.map(identity, input, out=lower.new(input.shape, input.dtype, input.strides))


@lowering
def contiguous_copy(lower: Lowering, input: Place, order: str = "contiguous_format") -> Place:
    if order != "contiguous_format":
        raise NotLowered("another order")
    return lower.map(identity, input, out=lower.new(input.shape, input.dtype))


@lowering
def reshape(lower: Lowering, input: Place, shape: tuple[int, ...]) -> Place:
    """Where no view is possible: copied first."""
    if not is_dense(input.shape, input.strides, 0) and -1 in shape:
        raise NotLowered("an inferred size")
    copy = lower.map(identity, input, out=lower.new(input.shape, input.dtype))
    return lower.window(copy, lambda array: array.reshape(shape), shape)


unsafe_view = LOWERINGS["unsafe_view"] = reshape


def filled(lower: Lowering, shape: tuple[int, ...], dtype: Any, value: float) -> Place:
    out = lower.new(tuple(shape), dtype)
    if out.dtype.char not in "fd":
        raise NotLowered("no floating point numbers")
    return lower.map(lambda: Symbol(as_expression(value)), out=out)


@lowering
def zeros_in_shape(lower: Lowering, input: Place, shape: tuple[int, ...]) -> Place:
    return filled(lower, shape, input.dtype, 0.0)


@lowering
def zeros_in_shape_of(lower: Lowering, input: Place) -> Place:
    return filled(lower, input.shape, input.dtype, 0.0)


def _comparison(name: str, sign: str) -> None:
    def compare(lower: Lowering, input: Place, other: Any) -> Place:
        if isinstance(other, Place) and other.dtype != input.dtype:
            raise NotLowered("several dtypes")
        if not isinstance(other, Place) and (
            isinstance(other, (bool, complex)) or (input.dtype.kind != "f" and not isinstance(other, int))
        ):
            raise NotLowered("numbers of another kind")
        if input.dtype.char == "?":
            raise NotLowered("masks")
        places = [place for place in (input, other) if isinstance(place, Place)]
        shape = broadcast_shape(*[place.shape for place in places])
        strides = _strides_like(shape, 1, places)
        out = lower.new(shape, np.bool_, strides)
        return lower.map(lambda x, y: x.compare(sign, y), input, other, out=out)

    LOWERINGS[name] = compare


for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    _comparison(_name, _sign)


def _strides_like(shape: tuple[int, ...], itemsize: int, places: list[Place]) -> tuple[int, ...]:
    """NumPy lays a result out as its operands lie; where that is not row-major, the kernel itself is to say how."""
    plain = row_major(shape, itemsize)
    for place in places:
        if place.size > 1 and place.shape == shape and place.strides != row_major(shape, place.dtype.itemsize):
            raise NotLowered("a layout that NumPy chooses")
    return plain
