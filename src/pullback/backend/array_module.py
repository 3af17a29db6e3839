"""Which array library serves an array: NumPy here, CuPy for arrays that live on a GPU.

Everything above this layer makes arrays through these few functions and never imports an array library itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pullback.backend.device_array import DeviceArray
from pullback.backend.halves import cast_half
from pullback.native import by_device, native
from pullback.typing import Array, DType, Shape

ndarray = np.ndarray
_ARRAYS = (np.ndarray, DeviceArray)


def as_array(value: Any) -> Array:
    """Return `value` as an array: the NumPy scalar of a 0-dim computation becomes a 0-dim array."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    return value if hasattr(value, "__array_ufunc__") else np.asarray(value)


def is_array(value: object) -> bool:
    """Whether `value` is an array of a library that a Tensor can hold."""
    return isinstance(value, _ARRAYS)


def is_plain(array: Array) -> bool:
    """Whether an array is just that: its values may decide what is done next. (Those of traced arrays must not.)"""
    return type(array) is np.ndarray


def is_number(value: object) -> bool:
    """Whether `value` is a Python or NumPy number (bool included)."""
    return isinstance(value, (int, float, complex, np.number, np.bool_))


@by_device
def copy_array(array: Array) -> Array:
    """A fresh array with the same values, in memory order that keeps the strides' order where it is dense."""
    if array.flags.c_contiguous or 0 not in array.strides:
        return np.array(array, copy=True, order="K", subok=True)
    order = memory_order(array)
    return np.array(array.transpose(order), copy=True, order="C", subok=True).transpose(inverse_order(order))


def inverse_order(order: Sequence[int]) -> list[int]:
    """The permutation that undoes one."""
    return sorted(range(len(order)), key=order.__getitem__)


def memory_order(array: Array) -> list[int]:
    """The dimensions from the slowest to the fastest varying; repeated (stride 0) ones stay where they are."""
    return order_of_operands([array.strides], array.shape)


def order_of_operands(strides: Sequence[Sequence[int]], shape: Shape) -> list[int]:
    """The dimensions of a result from outside in, as PyTorch orders them: by the first operand whose strides can tell.

    From the last one on, each changes places with those further inside in which it has the smaller steps.
    """
    order = list(range(len(shape)))
    for dim in reversed(range(len(shape))):
        place = dim
        for at in range(dim + 1, len(shape)):
            inside = _lies_inside(strides, shape, dim, order[at])
            if inside is False:
                break
            if inside:
                order[place], order[at], place = order[at], dim, at
    return order


def _lies_inside(strides: Sequence[Sequence[int]], shape: Shape, first: int, second: int) -> bool | None:
    """Whether the first operand that can tell has the smaller steps along `first`, or equal ones along fewer elements."""
    for steps in strides:
        a, b = abs(steps[first]), abs(steps[second])
        if a and b and (a != b or shape[first] < shape[second]):
            return b >= a
    return None


@by_device
def in_memory_order(array: Array, order: Sequence[int]) -> Array:
    """The same values with the dimensions in this order in memory, from outside in: a copy unless they are."""
    return np.ascontiguousarray(array.transpose(order)).transpose(inverse_order(order))


def empty(shape: Shape, dtype: DType) -> Array:
    """Uninitialised memory."""
    return np.empty(shape, dtype)


def zeros(shape: Shape, dtype: DType) -> Array:
    """Zeros."""
    return np.zeros(shape, dtype)


def ones(shape: Shape, dtype: DType) -> Array:
    """Ones."""
    return fill_array(np.empty(shape, dtype), 1)


def full(shape: Shape, value: Any, dtype: DType) -> Array:
    """One value everywhere."""
    return fill_array(np.empty(shape, dtype), value)


def fill_array(array: Array, value: Any) -> Array:
    """Write a value to all elements."""
    if array.size < 8192 or not array.flags.c_contiguous:
        array.fill(value)
        return array
    array.reshape(-1)[:1].fill(value)
    return repeat_first(array)


@native
def repeat_first(array: Array) -> Array:
    """Write the first element to all others: NumPy's own takes half as long again."""
    array.fill(array[(0,) * array.ndim])
    return array


@by_device
def expanded_first(array: Array) -> Array:
    """The first element of a filled array, seen at every element of its shape."""
    return array if array.size < 2 else restride(array, array.shape, (0,) * array.ndim)


def copy_expanded(array: Array) -> Array:
    """A copy that repeats its elements where `array` does, and takes no more memory than the different ones."""
    if 0 not in array.strides or array.size < 2:
        return array.copy()
    once = array[tuple([slice(0, 1) if step == 0 else slice(None) for step in array.strides])].copy()
    steps = [0 if step == 0 else own for step, own in zip(array.strides, once.strides, strict=True)]
    return restride(once, array.shape, tuple(steps))


def zeros_beside(array: Array, shape: Shape, dtype: DType) -> Array:
    """Zeros on the device of `array`."""
    return np.zeros(shape, dtype)


@by_device
def ones_beside(array: Array, shape: Shape, dtype: DType) -> Array:
    """Ones on the device of `array`."""
    return ones(shape, dtype)


@by_device
def empty_beside(array: Array, shape: Shape, dtype: DType) -> Array:
    """Uninitialised memory on the device of `array`."""
    return np.empty(shape, dtype)


@native
def memory_bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte and of one past the last byte that `array` touches."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


@native
def data_address(array: Array) -> int:
    """The address of the first element."""
    return int(array.__array_interface__["data"][0])


@by_device
def storage_of(array: Array) -> Array:
    """The array that owns the memory `array` is a view of, behind the wrappers that stride tricks put between."""
    owner = array
    candidate: Any = array.base
    while candidate is not None:
        if isinstance(candidate, np.ndarray):
            owner = candidate
        candidate = candidate.obj if isinstance(candidate, memoryview) else getattr(candidate, "base", None)
    return owner


@by_device
def storage_offset(array: Array) -> int:
    """How many elements lie between the start of the storage and the first element of `array`."""
    if array.size == 0 or array.itemsize == 0:
        return 0
    return (data_address(array) - memory_bounds(storage_of(array))[0]) // array.itemsize


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides counted in elements, as PyTorch counts them; NumPy gives an empty array none, unless it is a view."""
    size = array.itemsize
    if array.size == 0 and not any(array.strides) and not _is_strided_nothing(array):
        return contiguous_strides(array.shape)
    return tuple([stride // size for stride in array.strides])


_NOTHING = np.dtype("V1")
"""The elements of the empty memory that `restride` shows: nobody else has memory of this kind."""


def _is_strided_nothing(array: Array) -> bool:
    """Whether an empty array was given its strides by `restride`, rather than none by NumPy."""
    owner = array.base
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    owner = getattr(owner, "obj", owner)
    return isinstance(owner, np.ndarray) and owner.dtype == _NOTHING


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a dense row-major tensor."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


@by_device
def restride(array: Array, shape: Shape, strides: tuple[int, ...], dtype: DType | None = None) -> Array:
    """The memory from the first element of `array` on, seen in another shape and with other strides (in bytes)."""
    if dtype is None:
        dtype = array.dtype
    if 0 in shape:
        return np.ndarray(shape, dtype, np.empty(0, _NOTHING).data, strides=strides)
    if array.dtype.kind == "W" and array.dtype == dtype:  # which stride tricks do not know
        return restride(array.view(np.uint32), shape, strides).view(dtype)
    if array.flags.c_contiguous and array.dtype.kind != "V" and type(array) is np.ndarray:
        try:
            return np.ndarray(shape, dtype, array, 0, strides)  # ten times faster than stride tricks
        except (TypeError, ValueError):
            pass  # the window reaches past the end of this view of a larger storage
    if dtype != array.dtype:
        array = _first_bytes(array, dtype)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _first_bytes(array: Array, dtype: DType) -> Array:
    """One element of another dtype that begins where `array` begins."""
    one = np.lib.stride_tricks.as_strided(array.reshape(-1)[:1] if array.ndim == 0 else array, (1,), (array.itemsize,))
    return np.lib.stride_tricks.as_strided(one.view(np.uint8), (dtype.itemsize,), (1,)).view(dtype)


@by_device
def flat_storage(array: Array) -> Array:
    """The whole storage of `array` in memory order, as a one-dimensional view in the dtype of `array`."""
    storage = storage_of(array)
    order = sorted(range(storage.ndim), key=lambda d: -abs(storage.strides[d]))
    flat = storage.reshape(-1) if storage.flags.c_contiguous else storage.transpose(order).reshape(-1)
    if flat.dtype == array.dtype:
        return flat
    usable = flat.nbytes // array.itemsize * array.itemsize
    return flat.view(np.uint8)[:usable].view(array.dtype)


@by_device
def as_strided(array: Array, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Array:
    """A view of the storage of `array` with the given geometry, in elements."""
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: sizes {list(size)}, strides {list(stride)}")
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    start = storage_offset(array) if offset is None else offset
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    needed = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    flat = flat_storage(array)
    if needed and start + needed > flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and itemsize "
            f"{array.itemsize} requiring a storage size of {(start + needed) * array.itemsize} are out of bounds for "
            f"storage of size {flat.size * array.itemsize}"
        )
    return restride(flat[start:], tuple(size), tuple([s * array.itemsize for s in stride]))


@by_device
def is_at_hand(array: Array) -> bool:
    """Whether values can be looked at without waiting for a device: kernels ask before they look for a short cut."""
    return True


@by_device
def may_share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays may lie in the same memory."""
    return bool(np.may_share_memory(a, b))


def has_internal_overlap(array: Array) -> bool:
    """Whether two elements of `array` lie at one address (an expanded dimension)."""
    if 0 not in array.strides or array.size == 0:
        return False
    return any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))


@by_device
def overlaps_in_part(written: Array, read: Array) -> bool:
    """Whether two dense arrays share some of their memory, but do not lie at the same place."""
    base, other = written.base, read.base
    if written is read or (other is not written and (base is None or (base is not other and base is not read))):
        return False
    if not (written.flags.forc and read.flags.forc) or not np.may_share_memory(written, read):
        return False
    here, there = written.__array_interface__["data"][0], read.__array_interface__["data"][0]
    return bool(here != there or written.nbytes != read.nbytes or _steps(written) != _steps(read))


def _steps(array: Array) -> list[int]:
    """The strides that are taken: those of dimensions with more than one element."""
    return [stride for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]


@by_device
def overlaps(written: Array, read: Array) -> bool:
    """Whether two dense arrays share some of their memory."""
    if not (written.size and read.size):
        return False
    return written is read or bool(written.flags.forc and read.flags.forc and np.may_share_memory(written, read))


@by_device
def contains_nan(array: Array) -> bool:
    """Whether an element is NaN."""
    return array.dtype.kind in "fcVW" and bool(np.isnan(array).any())


def _as_float8(array: Array, dtype: DType) -> Array:
    """Conversion to 8-bit floats: what is too large becomes the largest, and a type without signs has the magnitude."""
    if dtype.name == "float8_e4m3fn":
        return np.clip(array.astype(np.float32), -448.0, 448.0).astype(dtype)
    if dtype.name == "float8_e8m0fnu":
        return np.abs(array.astype(np.float32)).astype(dtype)
    return array.astype(dtype)


_HALF_PAIR = np.dtype([("real", np.float16), ("imag", np.float16)])


@by_device
def parts(array: Array) -> tuple[Array, Array]:
    """Views of the real and the imaginary part. (NumPy knows no parts of complex32.)"""
    if array.dtype.kind == "W":
        pair = np.asarray(array).view(_HALF_PAIR)
        return pair["real"], pair["imag"]
    return array.real, array.imag


@by_device
def cast_array(array: Array, dtype: DType) -> Array:
    """`array` with another dtype; complex to real keeps the real part. No copy where the dtype is the same."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind in "cW" and dtype.kind not in "cWb":
        return cast(Array, _without_repetition(parts(array)[0]).astype(dtype))
    if dtype.itemsize == 1 and dtype.kind in "fV":
        return _as_float8(array, dtype)
    source = array if array.flags.c_contiguous else _without_repetition(array)
    if dtype.kind == "b" and array.size > 1024 and array.dtype.kind in "fiu":
        return cast(Array, source != 0)  # in half of the time of a cast, where there are many
    return cast_half(source, dtype)


def _without_repetition(array: Array) -> Array:
    """A copy of an array that repeats its memory: casts of NumPy put a repeated dimension last."""
    return copy_array(array) if array.ndim and 0 in array.strides and array.size else array
