"""TracedDeviceArray: an array of a device that tells a recorder what is done to it. See Note [Traced arrays]."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from pullback.backend.device import device
from pullback.backend.device_array import COMPARISONS, METHODS, OPERATORS, UNARY, DeviceArray, Flags
from pullback.backend.traced_array import TRACED, has_mask, is_basic, looked_at, plain, read_item, recorder_of
from pullback.typing import DType


class TracedDeviceArray(DeviceArray):
    """Stands for `inner`. Whoever reaches for the library's own array behind it ends the recording."""

    __slots__ = ("_known", "_recorder", "inner")
    inner_type: ClassVar[type[DeviceArray]]
    inner: DeviceArray

    def __init__(self, inner: DeviceArray, recorder: Any, known: Any = None) -> None:
        self.inner, self._recorder, self._known = inner, recorder, known

    @property
    def raw(self) -> Any:
        recorder = recorder_of(self)
        if recorder is not None:
            recorder.stop("the memory of a tensor on a device is used by something that cannot be followed")
        return self.inner.raw

    @property
    def place(self) -> device:
        return self.inner.place

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.raw.shape = shape

    @property
    def dtype(self) -> DType:
        return self.inner.dtype

    @property
    def ndim(self) -> int:
        return self.inner.ndim

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def itemsize(self) -> int:
        return self.inner.itemsize

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        return self.inner.strides

    @property
    def flags(self) -> Flags:
        return self.inner.flags

    @property
    def base(self) -> DeviceArray | None:
        return self.inner.base

    def __len__(self) -> int:
        return len(self.inner)

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def T(self) -> Any:
        return _seen(self, self.inner.T)

    @property
    def real(self) -> Any:
        return _seen(self, self.inner.real)

    @real.setter
    def real(self, value: Any) -> None:
        _seen(self, self.inner.real)[...] = value

    @property
    def imag(self) -> Any:
        return _seen(self, self.inner.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        _seen(self, self.inner.imag)[...] = value

    def __getitem__(self, index: Any) -> Any:
        recorder = recorder_of(self)
        if recorder is None or is_basic(index):
            return _seen(self, self.inner[plain(index)])
        if has_mask(index):
            recorder.stop("a mask of truth values chooses elements, as many as it has: the shape depends on values")
        return recorder.run("numpy.getitem", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        recorder = recorder_of(self, value)
        if recorder is None:
            self.inner[plain(index)] = plain(value)
        elif is_basic(index):
            recorder.write(self.inner[index], value)
        else:
            recorder.write(self, recorder.run("numpy.setitem", _with_items, (self, index, value), {}))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[place] for place in range(len(self))])

    def item(self) -> Any:
        """The one value, as a Python number that tells whether it is used."""
        return read_item(self, self.inner.item())

    def tolist(self) -> Any:
        """The values as nested lists."""
        return looked_at(self, "is read by .tolist()").tolist()

    def __bool__(self) -> bool:
        return bool(looked_at(self, "decides a branch"))

    def __int__(self) -> int:
        return int(looked_at(self, "becomes an int"))

    def __float__(self) -> float:
        return float(looked_at(self, "becomes a float"))

    def __complex__(self) -> complex:
        return complex(looked_at(self, "becomes a complex"))

    def __index__(self) -> int:
        return operator.index(looked_at(self, "becomes an index"))

    def fill(self, value: Any) -> None:
        """Write one value to all elements."""
        self[...] = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        name = f"numpy.{ufunc.__name__}" if method == "__call__" else f"numpy.{ufunc.__name__}.{method}"
        return _follow(name, function, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _follow(f"numpy.{function.__name__}", function, args, kwargs)


def _follow(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Call a function of arrays, and let the recorder see it; what it writes to is written to with its result."""
    recorder = recorder_of(args, options)
    if recorder is None:
        return function(*plain(args), **plain(options))
    out = options.pop("out", None)
    made = recorder.run(name, function, tuple(args), options)
    if out is None:
        return made
    target = out[0] if type(out) is tuple else out
    recorder.write(target, made)
    return target


def _seen(array: TracedDeviceArray, part: DeviceArray) -> Any:
    recorder = recorder_of(array)
    return part if recorder is None else recorder.see(part)


def _with_items(array: Any, index: Any, value: Any) -> Any:
    """A copy of an array in which the items at `index` are `value`."""
    made = array.copy()
    made[index] = value
    return made


def _method(name: str) -> Callable[..., Any]:
    def call(array: Any, *args: Any, **options: Any) -> Any:
        return getattr(array, name)(*args, **options)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return _follow(f"numpy.ndarray.{name}", call, (self, *args), options)

    method.__name__ = call.__name__ = name
    return method


def _operator(name: str, apply: Callable[..., Any], *, is_reflected: bool = False) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        return _follow(f"numpy.{name}", apply, (*others, self) if is_reflected else (self, *others), {})

    return method


def _in_place(name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return _follow(f"numpy.{name}", apply, (self, other), {"out": self})

    return method


_READING = ("nonzero", "sort", "partition", "put", "argpartition", "searchsorted")
"""Methods that decide shapes by values, or write where it cannot be followed."""


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(looked_at(self, f"is used by {name}()"), name)(*plain(args), **plain(options))

    method.__name__ = name
    return method


for _name in METHODS.split():
    if _name != "fill":
        setattr(TracedDeviceArray, _name, _refusing(_name) if _name in _READING else _method(_name))
for _names, _has_others in ((OPERATORS, True), (COMPARISONS, False), (UNARY, False)):
    for _short, _ufunc in _names.items():
        _apply = getattr(operator, {"and": "and_", "or": "or_"}.get(_short, _short))
        setattr(TracedDeviceArray, f"__{_short}__", _operator(_ufunc, _apply))
        if _has_others:
            setattr(TracedDeviceArray, f"__r{_short}__", _operator(_ufunc, _apply, is_reflected=True))
            setattr(TracedDeviceArray, f"__i{_short}__", _in_place(_ufunc, _apply))
TracedDeviceArray.__hash__ = None  # type: ignore[assignment]  # as NumPy's


def traced_kind(array_type: type[DeviceArray]) -> type[TracedDeviceArray]:
    """The class of traced arrays that stand for arrays of a type."""
    found = _kinds.get(array_type)
    if found is None:
        facts = {"__slots__": (), "library": array_type.library, "inner_type": array_type}
        found = _kinds[array_type] = type(f"Traced{array_type.__name__}", (TracedDeviceArray,), facts)
        TRACED.add(found)
    return found


_kinds: dict[type, type[TracedDeviceArray]] = {}
