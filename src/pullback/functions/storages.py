"""Storages: the memory behind tensors, as bytes or, in PyTorch's older form, as elements of one dtype."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import as_array, cast_array, copy_array, data_address, empty, zeros
from pullback.backend.device import CPU
from pullback.backend.device import device as Device
from pullback.backend.dtype import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from pullback.backend.dtype import bool_ as bool_dtype
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.naming import display_namespace
from pullback.backend.shared_memory import mapping_of
from pullback.kernels.exchange import array_over_file

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """The bytes that one or several tensors are views of."""

    is_cuda = False
    is_sparse = False

    def __init__(self, data: Any = 0, *, device: Any = None, resize: Callable[[int], Any] | None = None) -> None:
        """Hold an array of bytes, or make a storage of so many bytes, or of these; `resize` lets tensors follow."""
        if isinstance(data, builtins.int):
            data = zeros((data,), uint8.numpy_dtype)
        elif isinstance(data, Sequence):
            data = cast_array(as_array(list(data)), uint8.numpy_dtype)
        self._data = data
        self._resize = resize

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_resize": None}

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", *, dtype: Dtype, count: int = -1, offset: int = 0
    ) -> UntypedStorage:
        """A copy of `count` elements of a buffer, which has them in the order "native", "little" or "big"."""
        kept = memoryview(buffer).cast("B")[offset : None if count < 0 else offset + count * dtype.itemsize]
        storage = UntypedStorage(list(kept))
        if byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return storage

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file; changes reach it only if it is `shared`."""
        return UntypedStorage(array_over_file(filename, uint8.numpy_dtype, nbytes, shared))

    def byteswap(self, dtype: Dtype) -> None:
        """Turn the bytes of each element around; the two parts of a complex one are elements."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        self._data[...] = self._data.reshape(-1, size)[:, ::-1].reshape(-1)

    @property
    def _cdata(self) -> int:
        """What is the same for two storages only if they are one."""
        return self.data_ptr()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """The bytes as an array on the same memory."""
        return copy_array(self._elements) if copy else self._elements

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return data_address(self._data) if self._data.size else 0

    def nbytes(self) -> int:
        """The number of bytes."""
        return builtins.int(self._data.size)

    def size(self) -> int:
        """The number of elements, which are bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.size()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """Bytes per element: one."""
        return 1

    @property
    def device(self) -> Device:
        """Where the memory lies."""
        return CPU

    @property
    def _elements(self) -> Any:
        return self._data

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._elements.tolist()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        return UntypedStorage(self._data[index]) if isinstance(index, slice) else self._data[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def clone(self) -> Any:
        """A copy."""
        return UntypedStorage(copy_array(self._data))

    def copy_(self, source: Any, non_blocking: Any = None) -> Any:
        """Take over the elements of another storage."""
        self._elements[...] = source._elements
        return self

    def fill_(self, value: Any) -> Any:
        """Set every element."""
        self._elements[...] = value
        return self

    def resize_(self, size: int) -> Any:
        """Have another number of elements, and tensors follow. See Note [Storages of another size]."""
        wanted = size * self.element_size()
        if wanted == self.nbytes():
            return self
        if self._resize is not None:
            self._data = self._resize(wanted)
            return self
        kept = self._data[:wanted]
        self._data = zeros((wanted,), uint8.numpy_dtype)
        self._data[: kept.size] = kept
        return self

    def cpu(self) -> Any:
        """Itself: it lies on the CPU.

        The tensor itself where it is there already; otherwise a copy, through which gradients flow.

        >>> import pullback
        >>> pullback.ones(2).cpu().device
        device(type='cpu')
        """
        return self

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self

    def share_memory_(self) -> Any:
        """Do nothing: forked processes see the memory as it is."""
        return self

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return mapping_of(self._data) is not None

    def pin_memory(self, device: Any = None) -> Any:
        """Itself: without a GPU nothing needs pinning."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is locked for transfers to a GPU."""
        return False

    def _described(self, kind: str) -> str:
        rows = "\n".join(f" {value}" for value in self.tolist()) or " "
        return f"{rows}\n[{display_namespace()}.storage.{kind} of size {self.size()}]"

    def __repr__(self) -> str:
        return self._described("UntypedStorage(device=cpu)")


class TypedStorage(UntypedStorage):
    """A storage that knows the type of its elements (PyTorch's older form)."""

    def __init__(
        self, data: Any = 0, dtype: Dtype | None = None, *, wrap_storage: Any = None, device: Any = None,
        resize: Callable[[builtins.int], Any] | None = None,
    ) -> None:  # fmt: skip
        """Hold an array of bytes or another storage, or make a storage of so many elements, or of these."""
        self.dtype = get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            data, resize = wrap_storage._data, wrap_storage._resize
        elif isinstance(data, builtins.int):
            data = empty((data * self.dtype.itemsize,), uint8.numpy_dtype)
        elif isinstance(data, Sequence):
            data = cast_array(as_array(list(data)), self.dtype.numpy_dtype).view(uint8.numpy_dtype)
        super().__init__(data, resize=resize)

    @property
    def _elements(self) -> Any:
        return self._data.view(self.dtype.numpy_dtype)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def __getitem__(self, index: Any) -> Any:
        return self._elements[index].item()

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return UntypedStorage(self._data, resize=self._resize)

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(copy_array(self._data), self.dtype)

    def type(self, dtype: Any = None) -> Any:
        """The name of its class; with a dtype, a storage of elements of that dtype."""
        return (
            f"{display_namespace()}.{_storage_class(self.dtype).__name__}" if dtype is None else self._converted(dtype)
        )

    def _converted(self, dtype: Dtype) -> TypedStorage:
        if dtype is self.dtype:
            return self
        return TypedStorage(self._elements.astype(dtype.numpy_dtype).view(uint8.numpy_dtype), dtype)

    def float(self) -> TypedStorage:
        """The elements as float32."""
        return self._converted(float32)

    def double(self) -> TypedStorage:
        """The elements as float64."""
        return self._converted(float64)

    def half(self) -> TypedStorage:
        """The elements as float16."""
        return self._converted(float16)

    def bfloat16(self) -> TypedStorage:
        """The elements as bfloat16."""
        return self._converted(bfloat16)

    def long(self) -> TypedStorage:
        """The elements as int64."""
        return self._converted(int64)

    def int(self) -> TypedStorage:
        """The elements as int32."""
        return self._converted(int32)

    def bool(self) -> TypedStorage:
        """The elements as truth values."""
        return self._converted(bool_dtype)

    def pickle_storage_type(self) -> str:
        """The name that checkpoints have for it."""
        return _storage_class(self.dtype).__name__

    def __repr__(self) -> str:
        return self._described(f"TypedStorage(dtype={self.dtype}, device=cpu)")


class _StorageOfOneDtype(type):
    """The classes `FloatStorage` and its like: calling one makes a `TypedStorage`, which then is an instance."""

    dtype: Dtype

    def __call__(cls, *args: Any, **options: Any) -> TypedStorage:
        data = args[0] if args else 0
        return TypedStorage(data if not isinstance(data, UntypedStorage) else data.tolist(), cls.dtype, **options)

    def __instancecheck__(cls, instance: object) -> builtins.bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


NAMES = {
    "FloatStorage": float32, "DoubleStorage": float64, "HalfStorage": float16, "BFloat16Storage": bfloat16,
    "LongStorage": int64, "IntStorage": int32, "ShortStorage": int16, "CharStorage": int8, "ByteStorage": uint8,
    "BoolStorage": bool_dtype, "ComplexFloatStorage": complex64, "ComplexDoubleStorage": complex128,
}  # fmt: skip
"""PyTorch's classes of storages, with their elements' dtypes."""

_CLASSES = {
    dtype: _StorageOfOneDtype(name, (), {"dtype": dtype, "__module__": "torch"}) for name, dtype in NAMES.items()
}


def _storage_class(dtype: Dtype) -> Any:
    """The class of storages of one dtype."""
    return _CLASSES[dtype]


def __getattr__(name: str) -> Any:
    if name == "Storage":
        return _CLASSES[get_default_dtype()]
    if name in NAMES:
        return _CLASSES[NAMES[name]]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
