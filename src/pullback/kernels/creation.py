"""New arrays: from Python values, and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backend.dtype import default_complex, default_float, number_dtype
from pullback.typing import Array, DType, Scalar, Shape


def array_from_values(data: Any, dtype: DType | None) -> Array:
    """An array of nested Python sequences, with PyTorch's inferred dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data, dtype=dtype, copy=True)
    if isinstance(data, (bool, int, float, complex)):
        return _fill(np.empty((), number_dtype(data) if dtype is None else dtype), data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ValueError(_ragged_message(data)) from error
    if array.dtype == object:
        raise _unsupported(data)
    if array.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if dtype is None:
        if array.size == 0 and not _holds_arrays(data):
            dtype = default_float()
        elif not _holds_arrays(data):
            dtype = {"f": default_float(), "c": default_complex(), "i": np.dtype(np.int64)}.get(array.dtype.kind)
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise RuntimeError("value cannot be converted to type float without overflow")
    return array.astype(dtype)


def _fill(array: Array, value: Scalar) -> Array:
    if array.dtype.kind in "iu" and isinstance(value, int):
        info = np.iinfo(array.dtype)
        if not info.min <= value <= info.max:
            raise RuntimeError(f"value cannot be converted to type {array.dtype} without overflow")
    array[...] = value
    return array


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic))


def _ragged_message(data: Any) -> str:
    depth, sequence = 0, data
    while isinstance(sequence, (list, tuple)) and sequence:
        lengths = [len(row) if isinstance(row, (list, tuple)) else None for row in sequence]
        if any(n != lengths[0] for n in lengths):
            other = next(n for n in lengths if n != lengths[0])
            return f"expected sequence of length {lengths[0]} at dim {depth + 1} (got {other})"
        sequence, depth = sequence[0], depth + 1
    return "the nested sequence is not rectangular"


def _unsupported(data: Any) -> Exception:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if isinstance(data, (list, tuple)):
        return ValueError("the nested sequence is not rectangular")
    if data is None:
        return RuntimeError("Could not infer dtype of NoneType")
    if isinstance(data, int):
        return RuntimeError("Overflow when unpacking long long")
    return RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def arange_array(start: Scalar, end: Scalar, step: Scalar, dtype: DType | None) -> Array:
    """Evenly spaced values from start up to, not including, end."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for bound in (start, end):
        if isinstance(bound, float) and not math.isfinite(bound):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0 and start > end) or (step < 0 and start < end):  # type: ignore[operator]
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        dtype = np.dtype(np.int64) if all(isinstance(v, int) for v in (start, end, step)) else default_float()
    if all(isinstance(v, int) for v in (start, end, step)):
        return np.arange(start, end, step).astype(dtype)  # type: ignore[call-overload, no-any-return]
    count = math.ceil((end - start) / step)  # type: ignore[operator]
    steps = np.arange(count)
    if dtype.kind in "iu":
        return (int(start) + steps * int(step)).astype(dtype)  # type: ignore[arg-type, no-any-return]
    return (start + steps * step).astype(dtype)  # type: ignore[no-any-return, operator]


def linspace_array(start: Scalar, end: Scalar, steps: int, dtype: DType) -> Array:
    """`steps` values from start to end, both included, computed from both ends as PyTorch does."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps == 1:
        return np.full((1,), start, dtype)
    wide = np.result_type(dtype, np.float32) if dtype.kind not in "fc" else dtype
    first = np.asarray(start, wide)
    last = np.asarray(end, wide)
    step = (last - first) / np.asarray(max(steps - 1, 1), wide)
    index = np.arange(steps).astype(wide)
    half = steps // 2
    result = np.empty(steps, wide)
    result[:half] = first + step * index[:half]
    result[half:] = last - step * index[: steps - half][::-1]
    return result.astype(dtype)


def eye_array(n: int, m: int | None, dtype: DType) -> Array:
    return np.eye(n, m, dtype=dtype)


def strided_array(size: Shape, stride: tuple[int, ...], dtype: DType) -> Array:
    """Uninitialised memory seen with the given strides, in elements."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    needed = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    storage: Array = np.empty(needed, dtype)
    return np.lib.stride_tricks.as_strided(storage, size, tuple(s * dtype.itemsize for s in stride))
