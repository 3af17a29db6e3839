"""Library: an array library whose arrays live on a device, as kernels see it through `np`.

A subclass names the module (CuPy) and says where it differs from NumPy. `namespace` is what `np` means in the kernels
that are loaded for this library: its functions take and give DeviceArrays, and refuse NumPy's own arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.errors import devices_differ


class Library:
    """One array library. `module` is it, `array_type` the class of its arrays."""

    name: str
    module: Any
    array_type: type
    wrapper: type[DeviceArray]

    def __init__(self) -> None:
        self.namespace = Namespace(self)
        self._branching: list[Any] = []
        """The formulas that `_branch` computes now."""
        self.overrides: dict[str, Any] = {}
        """Functions of `np` that this library has in another form, by their dotted names."""
        self.kernels: dict[str, Any] = {}
        """Kernels of the library's own, by the name of the operation. See Note [Kernels by device]."""
        self.ufuncs: dict[str, Any] = {}
        """Kernels of the library's own that stand for functions of `np` element by element; they decline as others do."""
        self.functions: dict[str, dict[str, Any]] = {
            "backend.array_module": self._memory_functions(),
            "kernels.special_evaluation": {"_branch": self._branch},
        }
        """Functions that stand in the place of those of a module that is loaded, by module and name."""

    def place_of(self, raw: Any) -> device:
        """The device of an array."""
        raise NotImplementedError

    def place(self) -> device:
        """The device that new arrays are made on."""
        return device(self.name, 0)

    def is_single(self) -> bool:
        """Whether there is one device of this type: then programs need not say which one they run on."""
        return True

    def checked_place(self, place: device) -> device:
        """A device of this type with its number; RuntimeError if there is none of that number."""
        return self.place() if place.index is None else place

    def on(self, place: device, make: Callable[[], Any]) -> Any:
        """What a function makes, on a device."""
        return make()

    def maker(self, function: Any) -> Any:
        """The form of an array function that makes arrays of this library; a recorded one is recorded here too."""
        recorded = getattr(function, "__self__", function)  # where no profiler is told of its calls
        recorded_as = getattr(recorded, "recorded_as", None)
        return self.find(function) if recorded_as is None else recorded_as(self.find(recorded.__wrapped__))

    repeats_draws = False
    """Whether launches that draw random numbers go on with the stream when they are repeated. See Note [Replayed graphs]."""

    def program_runner(self, program: Any, runner: Any) -> Any:
        """What runs a recorded program on the device: `runner` calls its kernels one by one."""
        return runner

    def shared_with_others(self) -> None:
        """Memory is about to be seen by others, who may write to it unseen from now on."""

    def end_pass(self) -> None:
        """A backward pass has ended: what was put off is begun."""

    def random_states(self) -> list[Any]:
        """The states of the generators of all devices of this type."""
        return []

    def set_random_states(self, states: list[Any]) -> None:
        """Go back to what `random_states` returned."""

    def manual_seed(self, seed: int) -> None:
        """Seed the generators of all devices of this type; a library without one draws on the CPU."""

    def find(self, reference: Any) -> Any:
        """The kernel that stands for one of the CPU; `devices/table.py` sets it."""
        raise NotImplementedError

    def upload(self, array: Any) -> Any:
        """The library's array with the values of one of NumPy's."""
        raise NotImplementedError

    def download(self, raw: Any) -> Any:
        """NumPy's array with the values of one of the library's."""
        raise NotImplementedError

    def moved(self, raw: Any, place: device) -> Any:
        """The library's array with the values of another, on a device of the same type."""
        values = self.download(raw)
        return self.on(place, lambda: self.upload(values))

    def park(self, raw: Any) -> Any:
        """Move the values of an array to the host for a while; `unpark` takes what this gives."""
        return self.download(raw)

    def unpark(self, parked: Any) -> Any:
        """The library's array again."""
        return self.upload(parked)

    def pin(self, array: Any) -> Any:
        """A copy of one of NumPy's arrays in memory that the device can reach, itself where it lies there."""
        return array

    def is_pinned(self, array: Any) -> bool:
        """Whether one of NumPy's arrays lies in memory that the device can reach."""
        return False

    def use_on_stream(self, raw: Any, stream: Any) -> None:
        """Note that a stream uses memory that was made on another."""

    def read(self, raw: Any, why: str) -> Any:
        """The values on the host, for what reads them there: the device is waited for."""
        return self.download(raw)

    def address(self, raw: Any) -> int:
        """Where the first element lies."""
        raise NotImplementedError

    def owner(self, raw: Any) -> Any:
        """The array over the whole block of memory that an array lies in."""
        raise NotImplementedError

    def _memory_functions(self) -> dict[str, Any]:
        """Those functions of backend/array_module.py that look at memory itself."""

        def data_address(array: Any) -> int:
            return self.address(array.raw)

        def memory_bounds(array: Any) -> tuple[int, int]:
            return self.bounds(array.raw)

        def storage_of(array: Any) -> Any:
            return self.wrapper(self.owner(array.raw))

        def restride(array: Any, shape: Any, strides: Any, dtype: Any = None) -> Any:
            return self.wrapper(self.view_of(array.raw, shape, dtype or array.dtype, 0, strides))

        def may_share_memory(a: Any, b: Any) -> bool:
            if not isinstance(a, self.wrapper) or not isinstance(b, self.wrapper):
                return False
            (low, high), (first, last) = self.bounds(a.raw), self.bounds(b.raw)
            return low < last and first < high

        def overlaps_in_part(written: Any, read: Any) -> bool:
            if written is read or not may_share_memory(written, read):
                return False
            if not (written.flags.forc and read.flags.forc):
                return False
            return self.bounds(written.raw) != self.bounds(read.raw) or written.strides != read.strides

        def overlaps(written: Any, read: Any) -> bool:
            return may_share_memory(written, read)

        def is_at_hand(array: Any) -> bool:
            return False

        def element_strides(array: Any) -> tuple[int, ...]:
            return tuple([stride // array.itemsize for stride in array.strides])

        return {name: function for name, function in locals().items() if name != "self"}

    def _branch(self, condition: Any, inside: Any, outside: Any, *arguments: Any) -> Any:
        """Of two formulas the one that holds for each element: to count elements would have the host wait for the device.

        A formula that comes here again, on the other side of a point of reflection, is computed once on each side.
        """
        codes = [getattr(getattr(formula, "func", formula), "__code__", formula) for formula in (inside, outside)]
        if not condition.size or codes[1] in self._branching:
            return inside(*arguments)
        if codes[0] in self._branching:
            return outside(*arguments)
        results = []
        with np.errstate(all="ignore"):
            for formula, code in zip((inside, outside), codes, strict=True):
                self._branching.append(code)
                try:
                    results.append(formula(*arguments))
                finally:
                    self._branching.remove(code)
        namespace: Any = self.namespace
        return namespace.where(condition, *results)

    def bounds(self, raw: Any) -> tuple[int, int]:
        """The addresses of the first byte and of one past the last that an array touches."""
        low = high = self.address(raw)
        for size, stride in zip(raw.shape, raw.strides, strict=True):
            if stride < 0:
                low += (size - 1) * stride
            else:
                high += (size - 1) * stride
        return low, (high + raw.dtype.itemsize if raw.size else low)

    def view_of(self, raw: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
        """Memory of an array, from a number of bytes after its first element on, seen in another geometry."""
        raise NotImplementedError

    def take(self, raw: Any, index: Any) -> Any:
        """Elements, as an array also where there is one."""
        found = raw[index]
        return found if isinstance(found, self.array_type) else self.module.asarray(found)

    def put(self, raw: Any, index: Any, value: Any) -> None:
        """Write elements."""
        raw[index] = value

    def unwrap(self, value: Any) -> Any:
        """The library's array of a DeviceArray; a number as it is; NumPy's arrays of more than a number are refused."""
        kind = type(value)
        if kind is self.wrapper:
            return value.raw
        if kind is float or kind is int or value is None or kind is str or kind is bool:
            return value
        if kind is list or kind is tuple:
            return kind([self.unwrap(item) for item in value])
        if isinstance(value, np.ndarray):
            if value.ndim:
                raise devices_differ(str(self.place()), "cpu")
            return value[()]
        if isinstance(value, DeviceArray):
            if value.library is self:  # a traced array, which ends the recording
                return value.raw
            raise devices_differ(str(self.place()), str(value.place))
        return value

    def unwrap_index(self, index: Any) -> Any:
        """An index of DeviceArrays as one of the library's; as in PyTorch, positions may also lie on the CPU."""
        if isinstance(index, tuple):
            return tuple([self.unwrap_index(item) for item in index])
        if isinstance(index, DeviceArray):
            return index.raw
        if isinstance(index, np.ndarray):
            return self.upload(index) if index.ndim else index[()]
        if isinstance(index, list):
            return self.upload(np.asarray(index))
        return index

    def wrap(self, value: Any) -> Any:
        """A DeviceArray around the library's array, also in lists; anything else as it is."""
        kind = type(value)
        if isinstance(value, self.array_type):
            return self.wrapper(value)
        if kind is tuple or kind is list:
            return kind([self.wrap(item) for item in value])
        if isinstance(value, tuple):  # a named tuple, as linalg gives
            return tuple([self.wrap(item) for item in value])
        if isinstance(value, np.generic):
            return self.wrapper(self.module.asarray(value))
        return value

    def call(self, function: Any, args: Any, options: Any) -> Any:
        """The library's function on unwrapped arguments. An `out=` is returned as it was given."""
        out = options.get("out")
        result = function(
            *[self.unwrap(argument) for argument in args],
            **{name: self.unwrap(option) for name, option in options.items()},
        )
        if out is not None:
            return out[0] if type(out) is tuple and len(out) == 1 else out
        return self.wrap(result)

    def call_method(self, array: DeviceArray, name: str, args: Any, options: Any) -> Any:
        """A method of an array; one that the library has in another form as a function goes there."""
        override = self.overrides.get(name)
        if override is not None:
            return self.call(override, (array, *args), options)
        return self.call(getattr(array.raw, name), args, options)


HOST_FUNCTIONS = frozenset(
    "dtype iinfo finfo errstate broadcast_shapes promote_types issubdtype LinAlgError generic number "
    "floating complexfloating integer newaxis pi inf nan e euler_gamma index_exp s_ ndindex".split()
)
"""What `np` has that is not about arrays: the same for every library."""


class Namespace(ModuleType):
    """What `np` means in kernels that are loaded for a library. Attributes are made when first asked for."""

    def __init__(self, library: Library, path: str = "") -> None:
        super().__init__(path or f"numpy on {library.name}")
        self._library = library
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._find(name)
        setattr(self, name, value)
        return value

    def _find(self, name: str) -> Any:
        library = self._library
        dotted = f"{self._path}.{name}" if self._path else name
        if dotted == "ndarray":
            return library.wrapper
        ours = library.overrides.get(dotted)
        original = _attribute(np, dotted)
        if isinstance(original, ModuleType):
            return Namespace(library, dotted)
        if ours is None:
            if name in HOST_FUNCTIONS or isinstance(original, type) or not callable(original):
                return original
            ours = _attribute(library.module, dotted)
        if isinstance(original, np.ufunc):
            return Ufunc(library, name, ours)
        return Function(library, ours)


def _attribute(module: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        module = getattr(module, part)
    return module


class Function:
    """A function of the library, on DeviceArrays."""

    __slots__ = ("_function", "_library")

    def __init__(self, library: Library, function: Any) -> None:
        self._library = library
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._library.call(self._function, args, options)


class Ufunc(Function):
    """A function element by element, with the methods of NumPy's. Those that the library lacks are overrides."""

    __slots__ = ("__name__",)

    def __init__(self, library: Library, name: str, function: Any) -> None:
        super().__init__(library, function)
        self.__name__ = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        own = None if options else self._library.ufuncs.get(self.__name__)
        if own is not None:
            result = own(*args)
            if result is not NotImplemented:
                return result
        return self._library.call(self._function, args, options)

    def _method(self, method: str) -> Any:
        override = self._library.overrides.get(f"{self.__name__}.{method}")
        return override or getattr(self._function, method)

    def at(self, *args: Any) -> None:
        library = self._library
        index = library.unwrap_index(args[1])
        self._method("at")(library.unwrap(args[0]), index, *[library.unwrap(value) for value in args[2:]])

    def reduce(self, *args: Any, **options: Any) -> Any:
        return self._library.call(self._method("reduce"), args, options)

    def accumulate(self, *args: Any, **options: Any) -> Any:
        return self._library.call(self._method("accumulate"), args, options)

    def reduceat(self, *args: Any, **options: Any) -> Any:
        return self._library.call(self._method("reduceat"), args, options)

    def outer(self, *args: Any, **options: Any) -> Any:
        return self._library.call(self._method("outer"), args, options)
