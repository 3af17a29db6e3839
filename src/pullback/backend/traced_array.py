"""TracedArray: an array that tells a recorder what is done to it.

# Note [Traced arrays]
While compile records a function, the tensors that it can reach hold TracedArrays: views of their own memory, of a class
whose operations are all seen. Kernels are recorded as wholes (compiling/kernel_names.py); what is done to arrays outside
of kernels comes here, by NumPy's protocols and by the methods below: functions are recorded too, writes are followed, and
where a value becomes a Python number the recorder is told that Python looked. After the recording, and in other threads,
such an array is an array like any other. What a recorder knows of memory, it knows by address.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend.array_module import has_internal_overlap
from pullback.backend.device_array import DeviceArray
from pullback.typing import Array


class ReadNumber(float):
    """What `.item()` gives while something is recorded: a float that tells whether it is used before it is returned.

    A function may end with `return loss.item()`: nothing in it depends on the number then.
    """

    __slots__ = ("_recorder",)
    _recorder: Any

    def _use(self) -> float:
        if self._recorder is not None and self._recorder.is_open():
            self._recorder.use_number()
        return float.__float__(self)


def _using(name: str) -> Callable[..., Any]:
    original = getattr(float, name)

    def method(self: Any, *args: Any) -> Any:
        return original(self._use(), *args)

    method.__name__ = name
    return method


ReadNumber.__name__ = "float"  # Python's errors name the types of operands
for _name in (
    "abs add bool ceil divmod eq float floor floordiv format ge gt hash int le lt mod mul ne neg pos pow radd rdivmod "
    "reduce_ex repr rfloordiv rmod rmul round rpow rsub rtruediv str sub truediv trunc"
).split():
    setattr(ReadNumber, f"__{_name}__", _using(f"__{_name}__"))
for _name in ("as_integer_ratio", "hex", "is_integer", "conjugate"):
    setattr(ReadNumber, _name, _using(_name))


class TracedArray(np.ndarray):  # type: ignore[misc]  # NumPy is Any to the checker
    """See Note [Traced arrays]."""

    _recorder: Any = None
    _known: Any = None
    """What the recorder knew of it: the block that it lies in, the version of that, and the Value."""

    def __array_finalize__(self, source: Any) -> None:
        if type(source) is TracedArray:
            self._recorder = source._recorder

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        recorder = recorder_of(inputs, options)
        out = options.pop("out", None)
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if recorder is None:
            if out is not None:
                options["out"] = plain(out)
            return function(*plain(inputs), **plain(options))
        if method == "at":
            return recorder.run_writing(f"numpy.{ufunc.__name__}.at", function, inputs, options)
        name = f"numpy.{ufunc.__name__}" if method == "__call__" else f"numpy.{ufunc.__name__}.{method}"
        if out is None:
            return recorder.run(name, function, inputs, options)
        if len(out) != 1 or out[0] is None or options.get("where", True) is not True:
            recorder.stop(f"NumPy's {ufunc.__name__} writes where it cannot be followed")
            return function(*plain(inputs), **plain(options), out=plain(out))
        made = recorder.run(name, function, inputs, options)
        recorder.write(out[0], made)
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        recorder = recorder_of(args, kwargs)
        if recorder is None or function in _ABOUT_GEOMETRY:
            return function(*plain(args), **plain(kwargs))
        if function is np.copyto:
            return recorder.copy_to(*args, **kwargs)
        if kwargs.get("out") is not None or function in _WRITING:
            recorder.stop(f"NumPy's {function.__name__} writes where it cannot be followed")
            return function(*plain(args), **plain(kwargs))
        return recorder.run(f"numpy.{function.__name__}", function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        recorder = recorder_of((self,), ())
        if recorder is None:
            return plain(self)[plain(index)]
        if is_basic(index):
            parts = index if type(index) is tuple else (index,)
            return recorder.see(plain(self)[parts if any(p is Ellipsis for p in parts) else (*parts, ...)])
        if has_mask(index):
            recorder.stop("a mask of truth values chooses elements, as many as it has: the shape depends on values")
        return recorder.run("numpy.getitem", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        recorder = recorder_of((self, value), ())
        if recorder is None:
            plain(self)[plain(index)] = plain(value)
        elif is_basic(index):
            parts = index if type(index) is tuple else (index,)
            region = plain(self)[parts if any(p is Ellipsis for p in parts) else (*parts, ...)]
            recorder.write(region, value)
        elif has_internal_overlap(self):
            # The array cannot be written back as a whole: which element wins depends on the order.
            recorder.stop("elements that share memory are written to")
            plain(self)[plain(index)] = plain(value)
        else:
            recorder.write(self, recorder.run("numpy.setitem", with_items, (self, index, value), {}))

    def item(self, *args: Any) -> Any:
        return read_item(self, np.ndarray.item(plain(self), *args), is_whole=not args)

    def fill(self, value: Any) -> None:
        self[...] = value

    def __iter__(self) -> Any:
        if self.ndim == 1:
            return iter(looked_at(self, "is iterated over"))
        return iter([self[place] for place in range(len(self))])

    @property
    def real(self) -> Any:
        return _part(self, plain(self).real)

    @real.setter
    def real(self, value: Any) -> None:
        _part(self, plain(self).real)[...] = value

    @property
    def imag(self) -> Any:
        return _part(self, plain(self).imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        _part(self, plain(self).imag)[...] = value

    @property
    def T(self) -> Any:
        return self.transpose()

    @property
    def mT(self) -> Any:
        return self.swapaxes(-1, -2)


TRACED: set[type] = {TracedArray}
"""The classes of traced arrays: those of devices come in when they are first used."""
_ABOUT_GEOMETRY = {
    np.may_share_memory, np.shares_memory, np.ndim, np.shape, np.size, np.result_type, np.can_cast, np.iscomplexobj,
    np.isrealobj, np.lib.array_utils.byte_bounds, np.min_scalar_type,
}  # fmt: skip
_WRITING = {np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis}


def plain(value: Any) -> Any:
    """`value` with plain arrays, which are views of the same memory, in place of traced ones."""
    kind = type(value)
    if kind is TracedArray:
        return value.view(np.ndarray)
    if kind is tuple or kind is list:
        return kind([plain(part) for part in value])
    if kind is dict:
        return {key: plain(part) for key, part in value.items()}
    return value.inner if kind in TRACED else value


def is_traced(array: object) -> bool:
    """Whether an array tells a recorder what is done to it."""
    return type(array) in TRACED


def traced(array: Array, recorder: Any, known: Any = None) -> Array:
    """A view of an array that tells `recorder` what is done to it."""
    if isinstance(array, DeviceArray):
        from pullback.backend.traced_device_array import traced_kind  # lazy: it stands on this module

        return traced_kind(type(array))(array, recorder, known)
    made = np.ndarray.view(array, TracedArray)
    made._recorder = recorder
    if known is not None:
        made._known = known
    return made


def recorder_of(*given: Any) -> Any:
    """The open recorder of this thread among the arrays in arguments; None if there is none."""
    for value in given:
        if type(value) in TRACED:
            if value._recorder is not None and value._recorder.is_open():
                return value._recorder
        elif isinstance(value, (tuple, list)):
            found = recorder_of(*value)
            if found is not None:
                return found
        elif type(value) is dict:
            found = recorder_of(*value.values())
            if found is not None:
                return found
    return None


def is_basic(index: Any) -> bool:
    """Whether an index gives a view: numbers, slices, an ellipsis and new dimensions."""
    for part in index if type(index) is tuple else (index,):
        if part is not None and part is not Ellipsis and not isinstance(part, (int, np.integer, slice)):
            return False
        if isinstance(part, (bool, np.bool_)):
            return False
    return True


def has_mask(index: Any) -> bool:
    """Whether an index holds an array of truth values."""
    parts = index if type(index) is tuple else (index,)
    return any(getattr(part, "dtype", None) == np.bool_ or isinstance(part, (bool, list)) for part in parts)


def with_items(array: Array, index: Any, value: Any) -> Array:
    """A copy of `array` in which the items at `index` are `value`."""
    made = np.array(array, copy=True, order="K")
    made[index] = value
    return made


def _part(array: Array, part: Array) -> Array:
    recorder = recorder_of(array)
    return part if recorder is None else recorder.see(part)


def looked_at(array: Any, how: str) -> Any:
    """The plain array, of which Python learns a value."""
    recorder = recorder_of(array)
    if recorder is not None:
        recorder.stop(f"the value of a tensor {how}")
    return plain(array)


def read_item(array: Any, value: Any, *, is_whole: bool = True) -> Any:
    """The one value of an array, for `.item()`: a float that tells whether it is used before it is returned."""
    recorder = recorder_of(array)
    if recorder is None:
        return value
    how = _how_item_is_called()
    if type(value) is not float or not is_whole or how != _READINGS["item"]:
        recorder.stop(f"the value of a tensor {how}")
        return value
    return recorder.give_number(array, value)


def _how_item_is_called() -> str:
    """What Python wants of a number: Tensor's own methods ask for it by `item()`."""
    frame: Any = sys._getframe(1)
    for _ in range(9):
        if frame is None:
            break
        name = f"__{frame.f_code.co_name.strip('_')}__"
        if name in _READINGS:
            return _READINGS[name]
        frame = frame.f_back
    return _READINGS["item"]


def _method(name: str) -> Callable[..., Any]:
    """A method that gives a view or computes; it is seen where a recording goes on."""
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = recorder_of(self, args, kwargs)
        if recorder is None:
            return original(plain(self), *plain(args), **plain(kwargs))
        return recorder.run(f"numpy.ndarray.{name}", original, (self, *args), kwargs)

    method.__name__ = name
    return method


def _reading(name: str, how: str) -> Callable[..., Any]:
    """A method by which Python gets at values."""
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(looked_at(self, how), *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "reshape transpose astype copy squeeze swapaxes ravel flatten repeat take clip conj conjugate cumsum cumprod diagonal "
    "dot sum prod max min mean std var any all argmax argmin argsort argpartition trace round searchsorted choose"
).split():
    setattr(TracedArray, _name, _method(_name))
_READINGS = {
    "item": "is read by .item()", "tolist": "is read by .tolist()", "__bool__": "decides a branch", "__int__":
    "becomes an int", "__float__": "becomes a float", "__complex__": "becomes a complex", "__index__": "becomes an index",
    "tobytes": "is read as bytes", "__repr__": "is printed", "__str__": "is printed", "__format__": "is printed",
    "nonzero": "decides how many results there are", "compress": "decides how many results there are",
    "__contains__": "is searched for", "sort": "is sorted in place", "partition": "is sorted in place", "put":
    "is written to where it cannot be followed", "resize": "is resized", "byteswap": "is read as bytes",
    "__reduce__": "is pickled", "__reduce_ex__": "is pickled", "__deepcopy__": "is copied deeply", "__copy__": "is copied",
}  # fmt: skip
for _name, _how in _READINGS.items():
    if _name != "item":
        setattr(TracedArray, _name, _reading(_name, _how))
