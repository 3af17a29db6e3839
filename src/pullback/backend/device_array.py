"""DeviceArray: an array in the memory of another device, with the interface of NumPy's that kernels and Tensor use.

It holds an array of the device's own library. Nothing turns it into a NumPy array by accident: `np.asarray` is refused,
and what reads a value on the host (`item`, `bool`, `float`) says so to the library, which may refuse it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pullback.backend.device import device
from pullback.typing import DType

if TYPE_CHECKING:
    from pullback.devices.library import Library


class Flags:
    """What NumPy's `flags` tells, for an array of a device."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @property
    def c_contiguous(self) -> bool:
        return bool(self._raw.flags.c_contiguous)

    @property
    def f_contiguous(self) -> bool:
        return bool(self._raw.flags.f_contiguous)

    @property
    def writeable(self) -> bool:
        # Memory that several elements share is not written to. (CuPy does not mark it.)
        raw = self._raw
        return 0 not in raw.strides or raw.size < 2 or not _repeats(raw)

    @property
    def forc(self) -> bool:
        return self.c_contiguous or self.f_contiguous

    @property
    def carray(self) -> bool:
        return self.c_contiguous and self.writeable

    @property
    def owndata(self) -> bool:
        return False


def _repeats(raw: Any) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(raw.strides, raw.shape, strict=True))


class DeviceArray:
    """An array of a device's library; `library` of the subclass says which."""

    __slots__ = ("__weakref__", "raw")
    library: ClassVar[Library]
    __array_priority__ = 100.0

    def __init__(self, raw: Any, dtype: Any = None, buffer: Any = None, offset: int = 0, strides: Any = None) -> None:
        """Around the library's array `raw`; with a dtype, as NumPy's own constructor, of the shape `raw` in `buffer`."""
        if dtype is not None:
            raw = self.library.view_of(buffer.raw, raw, dtype, offset, strides)
        self.raw = raw

    # Geometry and type.

    @property
    def place(self) -> device:
        """The device that the memory belongs to."""
        return self.library.place_of(self.raw)

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.raw.shape
        return shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.raw.shape = shape

    @property
    def dtype(self) -> DType:
        return self.raw.dtype

    @property
    def ndim(self) -> int:
        ndim: int = self.raw.ndim
        return ndim

    @property
    def size(self) -> int:
        return int(self.raw.size)

    @property
    def itemsize(self) -> int:
        return int(self.raw.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self.raw.size * self.raw.dtype.itemsize)

    @property
    def strides(self) -> tuple[int, ...]:
        strides: tuple[int, ...] = self.raw.strides
        return strides

    @property
    def flags(self) -> Flags:
        return Flags(self.raw)

    @property
    def base(self) -> DeviceArray | None:
        base = self.raw.base
        return type(self)(base) if isinstance(base, self.library.array_type) else None

    def __len__(self) -> int:
        if not self.raw.ndim:
            raise TypeError("len() of unsized object")
        return int(self.raw.shape[0])

    def __repr__(self) -> str:
        return f"<array of {self.place}, shape {self.shape}, {self.dtype}>"

    # Parts and views.

    @property
    def T(self) -> DeviceArray:
        return type(self)(self.raw.T)

    @property
    def real(self) -> DeviceArray:
        return type(self)(self.raw.real)

    @real.setter
    def real(self, value: Any) -> None:
        self.raw.real[...] = self.library.unwrap(value)

    @property
    def imag(self) -> DeviceArray:
        return type(self)(self.raw.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.raw.imag[...] = self.library.unwrap(value)

    def __getitem__(self, index: Any) -> DeviceArray:
        return type(self)(self.library.take(self.raw, self.library.unwrap_index(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.library.put(self.raw, self.library.unwrap_index(index), self.library.unwrap(value))

    def __iter__(self) -> Iterator[DeviceArray]:
        if not self.raw.ndim:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.raw.shape[0])])

    # What reads values on the host.

    def item(self) -> Any:
        """The one value, as a Python number."""
        return self.library.read(self.raw, "item").item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self.library.read(self.raw, "tolist").tolist()

    def __bool__(self) -> bool:
        return bool(self.library.read(self.raw, "bool"))

    def __int__(self) -> int:
        return int(self.library.read(self.raw, "int"))

    def __float__(self) -> float:
        return float(self.library.read(self.raw, "float"))

    def __complex__(self) -> complex:
        return complex(self.library.read(self.raw, "complex"))

    def __index__(self) -> int:
        return operator.index(self.library.read(self.raw, "index"))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            f"can't convert {self.place} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
            "first."
        )

    # NumPy's protocols: a function of NumPy that meets this array is the library's.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = getattr(self.library.namespace, ufunc.__name__)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        namespace: Any = self.library.namespace
        for part in function.__module__.split(".")[1:]:
            if hasattr(np, part) and part in ("linalg", "fft"):
                namespace = getattr(namespace, part)
        return getattr(namespace, function.__name__)(*args, **kwargs)


def _binary(name: str) -> Callable[[DeviceArray, Any], Any]:
    def apply(self: DeviceArray, other: Any) -> Any:
        return getattr(self.library.namespace, name)(self, other)

    return apply


def _reflected(name: str) -> Callable[[DeviceArray, Any], Any]:
    def apply(self: DeviceArray, other: Any) -> Any:
        return getattr(self.library.namespace, name)(other, self)

    return apply


def _in_place(name: str) -> Callable[[DeviceArray, Any], Any]:
    def apply(self: DeviceArray, other: Any) -> DeviceArray:
        getattr(self.library.namespace, name)(self, other, out=self)
        return self

    return apply


def _unary(name: str) -> Callable[[DeviceArray], Any]:
    def apply(self: DeviceArray) -> Any:
        return getattr(self.library.namespace, name)(self)

    return apply


def _method(name: str) -> Callable[..., Any]:
    def call(self: DeviceArray, *args: Any, **options: Any) -> Any:
        return self.library.call_method(self, name, args, options)

    call.__name__ = name
    return call


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
METHODS = (
    "all any argmax argmin argpartition argsort astype clip conj conjugate copy cumprod cumsum diagonal dot fill flatten "
    "max mean min nonzero partition prod put ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take "
    "trace transpose var view"
)

for _operator, _ufunc in OPERATORS.items():
    setattr(DeviceArray, f"__{_operator}__", _binary(_ufunc))
    setattr(DeviceArray, f"__r{_operator}__", _reflected(_ufunc))
    setattr(DeviceArray, f"__i{_operator}__", _in_place(_ufunc))
for _operator, _ufunc in COMPARISONS.items():
    setattr(DeviceArray, f"__{_operator}__", _binary(_ufunc))
for _operator, _ufunc in UNARY.items():
    setattr(DeviceArray, f"__{_operator}__", _unary(_ufunc))
for _name in METHODS.split():
    setattr(DeviceArray, _name, _method(_name))
DeviceArray.__hash__ = None  # type: ignore[assignment]  # as NumPy's
