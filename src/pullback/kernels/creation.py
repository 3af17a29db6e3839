"""New arrays: from Python values, and ranges."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np

from pullback.backend.array_module import fill_array, inverse_order, memory_order, restride
from pullback.backend.dtype import default_complex, default_float, number_dtype, promote_dtypes
from pullback.backend.libm import multiply_add
from pullback.checks import checked
from pullback.checks.numbers import element_as, filling_number
from pullback.checks.values import read_values, refuse_long_integers, require_fit, require_number_array
from pullback.native import by_device, silent
from pullback.typing import Array, DType, Scalar, Shape


@silent
def array_from_values(data: Any, dtype: DType | None) -> Array:
    """An array of nested Python sequences, with PyTorch's inferred dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        require_number_array(data)
        return np.array(data, dtype=dtype, copy=True)
    if isinstance(data, (bool, int, float, complex)):
        array: Array = np.empty((), number_dtype(data) if dtype is None else dtype)
        array[...] = element_as(data, array.dtype)
        return array
    array = read_values(data)
    if dtype is None:
        dtype = _inferred_dtype(data, array)
    if dtype is None or array.dtype == dtype:
        return array
    require_fit(array, dtype)
    return array.astype(dtype)


def _inferred_dtype(data: Any, array: Array) -> DType | None:
    """The dtype of a tensor of `data`, of which NumPy made `array`; None for NumPy's own choice."""
    # NumPy's int64 and bool are PyTorch's too; a float64 may be of Python's floats.
    is_settled = array.dtype in (np.int64, np.bool_) or not isinstance(data, (list, tuple))
    kinds = set() if is_settled else _dtypes_in(data)
    if any(isinstance(kind, np.dtype) for kind in kinds):
        return _joint_dtype(kinds)
    if array.size == 0:
        return default_float()
    refuse_long_integers(array, kinds)
    return {"f": default_float(), "c": default_complex(), "i": np.dtype(np.int64)}.get(array.dtype.kind)


@by_device
def checked_fill(shape: Shape, value: Scalar, dtype: DType) -> Array:
    """One value in every place, refused where the type cannot hold it."""
    return fill_array(np.empty(shape, dtype), filling_number(value, dtype))


def _dtypes_in(data: Any) -> set[Any]:
    """The dtypes of the arrays and NumPy scalars in nested sequences, and the types of the other elements."""
    items, kinds = data, set(map(type, data))
    while kinds and kinds <= {list, tuple}:
        items = list(chain.from_iterable(items))
        kinds = set(map(type, items))
    if kinds <= {bool, int, float, complex}:
        return kinds
    found: set[Any] = set()
    for item in items:
        if isinstance(item, (np.ndarray, np.generic)):
            found.add(item.dtype)
        else:
            found |= _dtypes_in(item) if isinstance(item, (list, tuple)) else {type(item)}
    return found


def _joint_dtype(kinds: set[Any]) -> DType:
    """What the elements of a sequence promote to, Python's numbers as the dtypes they have by themselves."""
    found: DType | None = None
    for kind in kinds:
        one = kind if isinstance(kind, np.dtype) else number_dtype(kind())
        found = one if found is None else promote_dtypes(found, one)
    return found


@checked
def arange_array(start: Any, end: Any, step: Any, dtype: DType | None) -> Array:
    """Evenly spaced values from start up to, not including, end."""
    whole = all(isinstance(v, int) for v in (start, end, step))
    if dtype is None:
        dtype = np.dtype(np.int64) if whole else default_float()
    if dtype.kind in "iu" and dtype != np.int64 and not whole:
        # PyTorch rounds the bounds before it counts for int64 alone.
        return _steps_from(int(start), int(step), math.ceil((end - start) / step), dtype)
    if dtype.kind in "iu":
        return np.arange(int(start), int(end), int(step)).astype(dtype, copy=False)
    if whole:
        return np.arange(start, end, step).astype(dtype)
    return _steps_from(start, step, math.ceil((end - start) / step), dtype)


def _steps_from(start: Any, step: Any, count: int, dtype: DType) -> Array:
    """start + i * step, in double precision before rounding, as PyTorch computes ranges."""
    return (start + np.arange(count) * step).astype(dtype)


@silent
def closed_range_array(start: Any, end: Any, step: Any, dtype: DType) -> Array:
    """Evenly spaced values from start up to and including end."""
    count = int((end - start) / step) + 1
    if dtype.kind in "iu":
        return (int(start) + np.arange(count) * int(step)).astype(dtype)
    return _steps_from(start, step, count, dtype)


@silent
def linspace_array(start: Scalar, end: Scalar, steps: int, dtype: DType, fused: bool = True) -> Array:
    """`steps` values from start to end, both included, computed from both ends as PyTorch does.

    There products are fused with sums, but not in exponents.
    """
    if dtype.kind in "iu" and steps != 1:
        start, end = int(start), int(end)  # type: ignore[arg-type]  # not complex for an integer result
    if steps == 1:
        return np.full((1,), start, dtype)
    wide = np.result_type(dtype, np.float32) if dtype.kind in "iub" else dtype
    first = np.asarray(start, wide)
    last = np.asarray(end, wide)
    step = (last - first) / np.asarray(max(steps - 1, 1), wide)
    index = np.arange(steps).astype(wide)
    half = steps // 2
    result = np.empty(steps, wide)
    if fused and dtype.kind == "f" and dtype.itemsize > 2:
        result[:half] = multiply_add(index[:half], float(step), float(first))
        result[half:] = multiply_add(index[: steps - half][::-1], -float(step), float(last))
    else:
        result[:half] = first + step * index[:half]
        result[half:] = last - step * index[: steps - half][::-1]
    return result.astype(dtype)


@silent
def logspace_array(start: Scalar, end: Scalar, steps: int, base: float, dtype: DType) -> Array:
    """`steps` powers of base, their exponents evenly spaced."""
    wide = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    if dtype.kind in "iu":
        start, end = int(start), int(end)  # type: ignore[arg-type]  # not complex for an integer result
    exponents = linspace_array(start, end, steps, wide, fused=False)
    return np.power(np.asarray(base, wide), exponents).astype(dtype)


def triangle_positions(row: int, col: int, offset: int, dtype: DType, *, lower: bool) -> Array:
    """The rows and columns of a triangle, in row-major order."""
    places = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
    return np.stack(places).astype(dtype)


def eye_array(n: int, m: int | None, dtype: DType) -> Array:
    return np.eye(n, m, dtype=dtype)


def strided_array(size: Shape, stride: tuple[int, ...], dtype: DType) -> Array:
    """Uninitialised memory seen with the given strides, in elements."""
    needed = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    storage: Array = np.empty(needed, dtype)
    return restride(storage, size, tuple([s * dtype.itemsize for s in stride]))


def permuted_array(size: Shape, order: tuple[int, ...], dtype: DType) -> Array:
    """Uninitialised memory whose dimensions lie in `order`, slowest first."""
    return np.empty([size[d] for d in order], dtype).transpose(inverse_order(order))


def channels_last_array(array: Array) -> Array:
    """The values of `array` with dimension 1 varying fastest in memory."""
    moved = np.array(np.moveaxis(array, 1, -1), order="C", copy=True)  # strides of single elements, too
    return np.moveaxis(moved, -1, 1)


def in_memory_order_of(array: Array, source: Array) -> Array:
    """The values of `array`, its dimensions in memory in the order of those of `source`."""
    order = memory_order(source)
    return np.ascontiguousarray(array.transpose(order)).transpose(inverse_order(order))
