"""Tensors without memory of their own: `torch.Tensor._make_wrapper_subclass`, for classes that hold other tensors."""

from __future__ import annotations

from typing import Any

from pullback.backend.array_module import as_strided, contiguous_strides, empty
from pullback.backend.device import usable_device
from pullback.backend.dtype import default_float
from pullback.backend.meta_array import as_meta
from pullback.backend.wrapper_array import as_wrapper
from pullback.modes.interception import dispatch
from pullback.tensor.arguments import as_numpy_dtype
from pullback.tensor.tensor import attach_methods
from pullback.tensor.tensor_base import TensorBase


def make_wrapper_subclass(
    cls: type, size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False, dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None, storage_size: Any = None,
) -> Any:  # fmt: skip
    """A tensor of class `cls` that has a shape, strides and a dtype; what its values are, `__torch_dispatch__` knows.

    >>> import pullback
    >>> class Twice(pullback.Tensor):
    ...     @staticmethod
    ...     def __new__(cls, inner):
    ...         made = pullback.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    ...         made.inner = inner
    ...         return made
    ...     @classmethod
    ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
    ...         return func(*[a.inner * 2 if isinstance(a, cls) else a for a in args], **(kwargs or {}))
    >>> Twice(pullback.ones(2)) + 1
    tensor([3., 3.])
    """
    if cls not in dispatch.types:
        raise RuntimeError(
            f"{cls.__name__} requires a __torch_dispatch__ defined: its instances have no values of their own. Define the "
            "class method __torch_dispatch__(cls, func, types, args=(), kwargs=None)."
        )
    shape = tuple([int(n) for n in size])
    wanted = as_numpy_dtype(dtype) or default_float()
    steps = contiguous_strides(shape) if strides is None else tuple([int(n) for n in strides])
    length = 1 + sum([(n - 1) * step for n, step in zip(shape, steps, strict=True)]) if all(shape) else 0
    # Nobody writes to this memory, so it costs nothing.
    array = as_strided(empty((length + int(storage_offset or 0),), wanted), shape, steps, int(storage_offset or 0))
    on_meta = device is not None and usable_device(device).type == "meta"
    array = as_meta(array) if on_meta else as_wrapper(array)
    made: Any = TensorBase.__new__(cls)
    made._array = array
    if requires_grad:
        made.requires_grad_()
    return made


attach_methods({"_make_wrapper_subclass": staticmethod(make_wrapper_subclass)})
