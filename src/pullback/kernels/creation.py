"""New arrays: from Python values, and ranges."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np

from pullback.backend.array_module import fill_array, inverse_order, memory_order, restride
from pullback.backend.dtype import (
    default_complex,
    default_float,
    number_as,
    number_dtype,
    promote_dtypes,
    scalar_type_name,
)
from pullback.backend.libm import multiply_add
from pullback.typing import Array, DType, Scalar, Shape


def array_from_values(data: Any, dtype: DType | None) -> Array:
    """An array of nested Python sequences, with PyTorch's inferred dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        if data.dtype.kind in "USOMm":
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{data.dtype.type.__name__}. The only supported types are: float64, "
                "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
                "and bool."
            )
        return np.array(data, dtype=dtype, copy=True)
    if isinstance(data, (bool, int, float, complex)):
        return _fill(np.empty((), number_dtype(data) if dtype is None else dtype), data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise _ragged(data) from error
    if array.dtype == object:
        raise _unsupported(data)
    if array.dtype.kind in "US":
        raise TypeError(f"new(): invalid data type '{_first_text(data)}'")
    if dtype is None:
        # NumPy's int64 and bool are PyTorch's too; a float64 may be of Python's floats.
        is_settled = array.dtype in (np.int64, np.bool_) or not isinstance(data, (list, tuple))
        kinds = set() if is_settled else _dtypes_in(data)
        from_numpy = any(isinstance(kind, np.dtype) for kind in kinds)
        if array.size == 0 and not from_numpy:
            dtype = default_float()
        elif from_numpy:
            dtype = _joint_dtype(kinds)
        else:
            dtype = {"f": default_float(), "c": default_complex(), "i": np.dtype(np.int64)}.get(array.dtype.kind)
            if array.dtype.kind == "u" and kinds == {int}:
                raise ValueError("Overflow when unpacking long long")
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "bcW":
        raise TypeError("must be real number, not complex")
    if dtype.kind in "iu" and array.dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        if array.max() > info.max or array.min() < (info.min if dtype.kind == "i" else -info.max):
            raise _overflow(dtype)
    return array.astype(dtype)


def _fill(array: Array, value: Scalar) -> Array:
    """One Python number in a 0-dim array, refused where the type cannot hold it; -1 in an unsigned one wraps around."""
    kind = array.dtype.kind
    if isinstance(value, complex) and kind not in "bcW":
        raise TypeError("must be real number, not complex")
    if kind in "iu":
        if isinstance(value, float) and not math.isfinite(value):
            raise RuntimeError(f"value cannot be converted to type {array.dtype} without overflow")
        whole = int(value)  # type: ignore[arg-type]  # not complex here
        info = np.iinfo(array.dtype)
        if not -(2**63) <= whole < (2**64 if kind == "u" else 2**63):
            raise ValueError("Overflow when unpacking long long")
        if whole > info.max or (whole < info.min and (kind == "i" or whole < -info.max)):
            raise RuntimeError(f"value cannot be converted to type {array.dtype} without overflow")
        value = number_as(whole, array.dtype)
    array[...] = value
    return array


_C_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "bool": "bool",
    "int32": "int",
}  # fmt: skip


def checked_number(value: Scalar, dtype: DType) -> Any:
    """A Python number as a NumPy scalar, refused where the type cannot hold it; fractions are cut off."""
    if dtype.kind == "f" and dtype.itemsize > 1 and isinstance(value, (int, float)) and -60000 < value < 60000:
        return dtype.type(value)  # the common case: even float16 holds it
    if isinstance(value, complex) and dtype.kind not in "bcW":
        if value.imag:
            raise _overflow(dtype)
        value = value.real
    if dtype.kind in "iu" and not isinstance(value, complex):
        info = np.iinfo(dtype)
        lowest = -info.max if dtype.kind == "u" and not isinstance(value, float) else info.min
        if not lowest <= value <= info.max:  # nan is not
            raise _overflow(dtype)
        return number_as(int(value), dtype)
    result = number_as(value, dtype)
    if dtype.kind not in "bcW" and math.isfinite(value) and not np.isfinite(result):  # type: ignore[arg-type]
        raise _overflow(dtype)
    return result


def _overflow(dtype: DType) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_C_NAMES.get(dtype.name, f'{dtype}_t')} without overflow")


def checked_fill(shape: Shape, value: Scalar, dtype: DType) -> Array:
    """One value in every place, refused where the type cannot hold it."""
    return fill_array(np.empty(shape, dtype), checked_number(value, dtype))


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


def _first_text(data: Any) -> str:
    items = [data]
    while items:
        item = items.pop()
        if isinstance(item, (str, bytes)):
            return type(item).__name__
        items += item if isinstance(item, (list, tuple)) else []
    return "str"


def _ragged(data: Any) -> Exception:
    depth, sequence = 0, data
    while isinstance(sequence, (list, tuple)) and sequence:
        lengths = [len(row) if isinstance(row, (list, tuple)) else None for row in sequence]
        if any(n != lengths[0] for n in lengths):
            at = next(i for i, n in enumerate(lengths) if n != lengths[0])
            if lengths[0] is None:
                return TypeError(f"must be real number, not {type(sequence[at]).__name__}")
            if lengths[at] is None:
                return TypeError("not a sequence")
            return ValueError(f"expected sequence of length {lengths[0]} at dim {depth + 1} (got {lengths[at]})")
        sequence, depth = sequence[0], depth + 1
    return ValueError("the nested sequence is not rectangular")


def _unsupported(data: Any) -> Exception:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if isinstance(data, (list, tuple)):
        return ValueError("the nested sequence is not rectangular")
    if data is None:
        return RuntimeError("Could not infer dtype of NoneType")
    if isinstance(data, int):
        return ValueError("Overflow when unpacking long long")
    return RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def arange_array(start: Any, end: Any, step: Any, dtype: DType | None) -> Array:
    """Evenly spaced values from start up to, not including, end."""
    whole = all(isinstance(v, int) for v in (start, end, step))
    if dtype is None:
        dtype = np.dtype(np.int64) if whole else default_float()
    if dtype.kind in "cb":
        raise NotImplementedError(f'"arange_cpu" not implemented for {scalar_type_name(dtype)!r}')
    if dtype.kind in "iu" and dtype != np.int64 and not whole:
        # PyTorch rounds the bounds before it counts for int64 alone.
        return _steps_from(int(start), int(step), math.ceil((end - start) / step), dtype)
    if dtype.kind in "iu":
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
        return np.arange(start, end, step).astype(dtype, copy=False)
    if whole:
        return np.arange(start, end, step).astype(dtype)
    return _steps_from(start, step, math.ceil((end - start) / step), dtype)


def _steps_from(start: Any, step: Any, count: int, dtype: DType) -> Array:
    """start + i * step, in double precision before rounding, as PyTorch computes ranges."""
    return (start + np.arange(count) * step).astype(dtype)


def closed_range_array(start: Any, end: Any, step: Any, dtype: DType) -> Array:
    """Evenly spaced values from start up to and including end."""
    count = int((end - start) / step) + 1
    if dtype.kind in "iu":
        return (int(start) + np.arange(count) * int(step)).astype(dtype)
    return _steps_from(start, step, count, dtype)


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
