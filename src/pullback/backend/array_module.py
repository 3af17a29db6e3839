"""Which array library serves an array: NumPy here, CuPy for arrays that live on a GPU.

Everything above this layer makes arrays through these few functions and never imports an array library itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pullback.typing import Array, DType, Shape

ndarray = np.ndarray


def as_array(value: Any) -> Array:
    """Return `value` as an array: the NumPy scalar of a 0-dim computation becomes a 0-dim array."""
    return value if hasattr(value, "__array_ufunc__") and not isinstance(value, np.generic) else np.asarray(value)


def array_module(array: Array) -> Any:
    """The module (numpy or cupy) whose functions make arrays beside `array`."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    import cupy  # type: ignore[import-not-found, unused-ignore]  # optional: only arrays on a GPU reach this line

    return cupy


def is_array(value: object) -> bool:
    """Whether `value` is an array of a library that a Tensor can hold."""
    return isinstance(value, np.ndarray)


def is_number(value: object) -> bool:
    """Whether `value` is a Python or NumPy number (bool included)."""
    return isinstance(value, (int, float, complex, np.number, np.bool_))


def copy_array(array: Array) -> Array:
    """A fresh array with the same values, in memory order that keeps the strides' order where it is dense."""
    return np.array(array, copy=True, order="K")


def empty(shape: Shape, dtype: DType) -> Array:
    return np.empty(shape, dtype)


def zeros(shape: Shape, dtype: DType) -> Array:
    return np.zeros(shape, dtype)


def ones(shape: Shape, dtype: DType) -> Array:
    return np.ones(shape, dtype)


def full(shape: Shape, value: Any, dtype: DType) -> Array:
    return np.full(shape, value, dtype)


def memory_bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte and of one past the last byte that `array` touches."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def data_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def storage_of(array: Array) -> Array:
    """The array that owns the memory `array` is a view of."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def storage_offset(array: Array) -> int:
    """How many elements lie between the start of the storage and the first element of `array`."""
    if array.size == 0 or array.itemsize == 0:
        return 0
    return (data_address(array) - memory_bounds(storage_of(array))[0]) // array.itemsize


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides counted in elements, as PyTorch counts them."""
    size = array.itemsize
    return tuple([stride // size for stride in array.strides])


def as_strided(array: Array, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Array:
    """A view of the storage of `array` with the given geometry, in elements."""
    storage = storage_of(array)
    start = storage_offset(array) if offset is None else offset
    needed = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    if storage.dtype != array.dtype or not storage.flags.c_contiguous:
        flat = np.lib.stride_tricks.as_strided(
            storage.view(array.dtype) if storage.flags.c_contiguous else storage,
            (storage.size * storage.itemsize // array.itemsize,), (array.itemsize,)
        )
    else:
        flat = storage.reshape(-1)
    if needed and start + needed > flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and itemsize "
            f"{array.itemsize} requiring a storage size of {(start + needed) * array.itemsize} are out of bounds for "
            f"storage of size {flat.size * array.itemsize}"
        )
    byte_strides = tuple(s * array.itemsize for s in stride)
    return np.lib.stride_tricks.as_strided(flat[start:], tuple(size), byte_strides)


def may_share_memory(a: Array, b: Array) -> bool:
    return bool(np.may_share_memory(a, b))


def has_internal_overlap(array: Array) -> bool:
    """Whether two elements of `array` lie at one address (an expanded dimension)."""
    return any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))


def contains_nan(array: Array) -> bool:
    return array.dtype.kind in "fcV" and bool(np.isnan(array).any())


def cast_array(array: Array, dtype: DType) -> Array:
    """`array` with another dtype; complex to real keeps the real part. No copy where the dtype is the same."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        return cast(Array, array.real).astype(dtype)
    return array.astype(dtype)
