"""Writes to memory, and NumPy's own functions where text outside of kernels calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend import array_module
from pullback.compiling import memory
from pullback.compiling.lowered.casts import clone, filled, to_dtype
from pullback.compiling.lowered.lowering_table import floating, identity, lowering
from pullback.compiling.lowered.reductions import sum
from pullback.compiling.lowering import Lowering, NotLowered, Symbol, apply, as_expression, choose
from pullback.compiling.steps import Place, is_dense, row_major
from pullback.expressions import tree
from pullback.expressions.functions import NUMPY_NAMES


def _memory_window(
    lower: Lowering, whole: Place, offset: int, shape: Any, strides: Any, dtype: Any, *, strides_of_whole: Any
) -> Place:
    if whole.dtype != dtype or not whole.size or _steps(whole.shape, whole.strides) != _steps(
        whole.shape, strides_of_whole
    ):  # fmt: skip
        raise NotLowered("memory of another form")
    return whole.windowed(tuple(shape), tuple(strides), offset)


def _fits_geometry(place: Place, geometry: Any) -> bool:
    return place.dtype == geometry.dtype and place.shape == tuple(geometry.shape) and is_dense(
        geometry.shape, geometry.strides, geometry.dtype.itemsize
    )  # fmt: skip


@lowering
def gather_strided(lower: Lowering, grad: Place, base: Any, view: Any) -> Place:
    if not _fits_geometry(grad, base) or base.offset or view.dtype != base.dtype or view.span() > base.span():
        raise NotLowered("memory of another form")
    if _steps(grad.shape, grad.strides) != _steps(base.shape, base.strides):
        grad = _laid_out(lower, grad, grad.shape, base.strides, grad.dtype)
    part = grad.windowed(tuple(view.shape), tuple(view.strides), view.offset)
    if not is_dense(view.shape, view.strides, view.dtype.itemsize):
        return lower.map(identity, part, out=lower.new(part.shape, part.dtype))
    return lower.map(identity, part, out=lower.new(part.shape, part.dtype, part.strides))


@lowering
def overwrite_strided(lower: Lowering, grad: Place, base: Any, view: Any, part: Any) -> Place:
    if not _fits_geometry(grad, base) or base.offset or view.dtype != base.dtype or view.span() > base.span():
        raise NotLowered("memory of another form")
    source = 0.0 if part is None else part
    return _written(
        lower, grad, source, view.offset, view.shape, view.strides, view.dtype, strides_of_whole=base.strides
    )  # fmt: skip


@lowering
def scatter_strided(lower: Lowering, grad: Place, base: Any, view: Any) -> Place:
    dense = is_dense(base.shape, base.strides, base.dtype.itemsize)
    if not dense or base.offset or view.overlaps() or view.span() > base.span() or grad.dtype != base.dtype:
        raise NotLowered("memory of another form")
    out = lower.new(tuple(base.shape), base.dtype, tuple(base.strides))
    lower.map(lambda: Symbol(as_expression(0.0)), out=out)
    out.storage.is_pieced = True
    lower.map(identity, grad, out=out.windowed(tuple(view.shape), tuple(view.strides), view.offset))
    return out


def _steps(shape: Any, strides: Any) -> list[int]:
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]


def _laid_out(lower: Lowering, source: Any, shape: Any, strides: Any, dtype: Any) -> Place:
    dtype = np.dtype(dtype)
    shape = tuple(shape)
    strides = row_major(shape, dtype.itemsize) if strides is None else tuple(strides)
    if not is_dense(shape, strides, dtype.itemsize):
        raise NotLowered("a layout with gaps")
    out = lower.new(shape, dtype, strides)
    if isinstance(source, Place):
        if source.dtype == dtype:
            return lower.map(identity, source, out=out)
        if dtype.char == "?" or (source.dtype.kind == "f" and dtype.kind in "iu"):
            raise NotLowered("a cast")
        return lower.map(lambda x: choose(x, 1, 0) if x.expression.kind == tree.MASK else x, source, out=out)
    if dtype.char not in "fd" or type(source) not in (int, float):
        raise NotLowered("no floating point numbers")
    return lower.map(lambda: Symbol(as_expression(source)), out=out)


def _written(
    lower: Lowering,
    whole: Place,
    source: Any,
    offset: int,
    shape: Any,
    strides: Any,
    dtype: Any,
    *,
    strides_of_whole: Any,
) -> Place:
    if whole.dtype != dtype:
        raise NotLowered("memory of another form")
    made = _laid_out(lower, whole, whole.shape, strides_of_whole, whole.dtype)
    made.storage.is_pieced = True
    target = made.windowed(tuple(shape), tuple(strides), offset)
    if isinstance(source, Place) and source.dtype == dtype:
        lower.map(identity, source, out=target)
    elif type(source) in (int, float) and made.dtype.char in "fd":
        lower.map(lambda: Symbol(as_expression(source)), out=target)
    else:
        raise NotLowered("a cast")
    return made


def _restride(lower: Lowering, array: Place, shape: Any, strides: Any, dtype: Any = None) -> Place:
    if (dtype is not None and array.dtype != dtype) or 0 in shape:
        raise NotLowered("memory of another form")
    return array.windowed(tuple(shape), tuple(strides))


def _full(lower: Lowering, shape: Any, value: Any, dtype: Any) -> Place:
    if type(value) not in (int, float):
        raise NotLowered("no number")
    return filled(lower, tuple(shape), dtype, value)


BY_FUNCTION: dict[Any, Callable[..., Any]] = {
    memory.window: _memory_window,
    memory.laid_out: _laid_out,
    memory.written: _written,
    array_module.restride: _restride,
    array_module.copy_array: clone,
    array_module.cast_array: to_dtype,
    array_module.zeros: lambda lower, shape, dtype: _full(lower, shape, 0.0, dtype),
    array_module.ones: lambda lower, shape, dtype: _full(lower, shape, 1.0, dtype),
    array_module.full: _full,
    np.add.reduce: lambda lower, array, axis=0, dtype=None, keepdims=False: sum(
        lower, array, axis, keepdims, dtype=dtype
    ),
    np.sum: lambda lower, array, axis=None, dtype=None, keepdims=False: sum(lower, array, axis, keepdims, dtype=dtype),
}
"""What is recorded outside of kernels."""

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/"}
_COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip


def lower_ufunc(lower: Lowering, name: str, operands: tuple[Any, ...], result: Any) -> Place:
    """A function of NumPy on elements, of floating point numbers of one dtype."""
    places = [place for place in operands if isinstance(place, Place)]
    floating(*places)
    if not places or any(not isinstance(o, Place) and type(o) not in (int, float) for o in operands):
        raise NotLowered("other arguments")
    if name in _COMPARISONS and len(operands) == 2:
        sign = _COMPARISONS[name]
        return lower.map(lambda x, y: _symbol(x).compare(sign, y), *operands, out=lower.new_for(result))
    if result.dtype != places[0].dtype:
        raise NotLowered("another dtype")
    out = lower.new_for(result)
    if name in _OPERATORS and len(operands) == 2:
        sign = _OPERATORS[name]
        return lower.map(
            lambda x, y: Symbol(tree.Operation(sign, (as_expression(x), as_expression(y)))), *operands, out=out
        )
    if name == "negative":
        return lower.map(lambda x: -x, *operands, out=out)
    if name == "square":
        return lower.map(lambda x: x * x, *operands, out=out)
    if name in ("sin", "cos", "tan") or name not in NUMPY_NAMES:
        raise NotLowered("a function that expressions do not have")
    word = NUMPY_NAMES[name]
    return lower.map(lambda *values: apply(word, *values), *operands, out=out)


def _symbol(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else Symbol(as_expression(value))
