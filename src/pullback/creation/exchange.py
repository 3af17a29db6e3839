"""Tensors on memory that others own: NumPy's arrays, buffers, DLPack."""

from __future__ import annotations

from os import PathLike
from typing import Any

from pullback.backend import array_module
from pullback.backend.array_module import is_array, is_number
from pullback.backend.device import usable_device
from pullback.backend.dtype import default_float, from_numpy_dtype
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.naming import display_namespace
from pullback.creation.from_values import tensor
from pullback.creation.options import dtype_option, wrap
from pullback.errors import type_name_in_c, wrong_type
from pullback.facts import declare
from pullback.kernels.exchange import array_over_buffer, array_over_file, import_dlpack
from pullback.modes.function_modes import told_to_modes
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor


@declare(found="torch")
@told_to_modes
def as_tensor(data: Any, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of `data`, sharing memory and history where nothing needs to change.

    `data` is a tensor, an array or nested sequences; a copy is made only for another `dtype` or `device`, or for
    sequences.
    """
    usable_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if is_array(data):
        wanted = dtype_option("as_tensor", dtype)
        found = from_numpy(data) if wanted is None or data.dtype == wanted else wrap(data.astype(wanted))
        return found if device is None else found.to(device)
    return tensor(data, dtype=dtype, device=device)


@declare(found="torch")
@told_to_modes
def asarray(
    obj: Any, *, dtype: Dtype | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of `obj`; shares memory unless `copy` is True or the dtype changes.

    `obj` is a tensor, a NumPy array, an object with DLPack or a buffer, a number, or nested sequences of numbers (copied).

    >>> import pullback
    >>> pullback.asarray([1, 2], dtype=pullback.float32)
    tensor([1., 2.])
    """
    usable_device(device)
    if isinstance(obj, Tensor):
        return _as_array_of_tensor(obj, dtype, copy, requires_grad)
    shared = _on_memory_of(obj, dtype)
    if shared is None and copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    wanted = dtype_option("asarray", dtype)
    if shared is None:
        result = tensor(obj, dtype=dtype)
    elif wanted is not None and shared.dtype != wanted:
        if copy is False:
            raise ValueError(f"can't alias tensor with dtype '{from_numpy_dtype(shared.dtype)}' into dtype '{dtype}'.")
        result = wrap(shared.astype(wanted))
    else:
        result = wrap(array_module.copy_array(shared) if copy else shared)
    return result.requires_grad_() if requires_grad else result


def _as_array_of_tensor(obj: Tensor, dtype: Dtype | None, copy: bool | None, requires_grad: bool | None) -> Tensor:
    changes = dtype is not None and obj.dtype is not dtype
    if changes and copy is False:
        raise ValueError(f"can't alias tensor with dtype '{obj.dtype}' into dtype '{dtype}'.")
    result = obj.to(dtype) if changes else obj.clone() if copy else obj
    if requires_grad is None and obj.requires_grad:
        warn_user(
            f"{display_namespace()}.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
            "Pass requires_grad=True or False to say which is meant."
        )
    if requires_grad is False and result.requires_grad:
        return result.detach()
    if requires_grad and not result.requires_grad:
        return (result.detach() if result is obj else result).requires_grad_()
    return result


def _on_memory_of(obj: Any, dtype: Dtype | None) -> Any:
    """An array that shares the memory of `obj`; None where there is none to share."""
    if is_array(obj):
        return from_numpy(obj)._array
    if is_number(obj) or isinstance(obj, (list, tuple, str)):
        return None
    if hasattr(obj, "__dlpack__"):
        return import_dlpack(obj)
    if hasattr(obj, "data_ptr") and hasattr(obj, "__array__"):
        return obj.__array__()
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or from_numpy_dtype(default_float()))._array


@declare(found="torch")
def from_numpy(ndarray: Any, /) -> Tensor:
    """A tensor that shares the array's memory.

    >>> import numpy, pullback
    >>> pullback.from_numpy(numpy.zeros(2))
    tensor([0., 0.], dtype=...float64)
    """
    if not is_array(ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name_in_c(type(ndarray))})")
    from_numpy_dtype(ndarray.dtype)
    if any(stride < 0 for stride in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if not ndarray.flags.writeable:
        warn_user(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to this "
            "tensor would change memory that its owner expects to stay the same: copy the array first."
        )
    return wrap(ndarray)


@declare(found="torch")
def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A one-dimensional tensor on the memory of a Python buffer.

    `count` elements (-1: all there are) from the byte `offset` on. Writes to one show in the other.

    >>> import pullback
    >>> pullback.frombuffer(bytearray([1, 2, 3]), dtype=pullback.uint8, offset=1)
    tensor([2, 3], dtype=pullback.uint8)
    """
    try:
        memory = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, size = memory.nbytes, dtype.itemsize
    if length <= 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if memory.readonly:
        warn_user(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. Writing to this "
            "tensor "
            "is not possible: copy the buffer first."
        )
    return wrap(array_over_buffer(buffer, dtype.numpy_dtype, count, offset), requires_grad)


@declare(found="torch")
@told_to_modes
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A one-dimensional tensor on the contents of a file; changes reach the file only if it is `shared`."""
    usable_device(device)
    if not isinstance(filename, (str, PathLike)):
        raise wrong_type("from_file", "filename", 1, "str", filename)
    wanted = dtype_option("from_file", dtype) or default_float()
    return wrap(array_over_file(filename, wanted, size or 0, bool(shared)), requires_grad)


@declare(found="torch")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an object that speaks DLPack, or of its capsule.

    Nothing is copied unless `copy` is True: writes to one show in the other.

    >>> import pullback
    >>> import numpy
    >>> pullback.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
    """
    usable_device(device)
    array = import_dlpack(ext_tensor)
    return wrap(array_module.copy_array(array) if copy else array)
