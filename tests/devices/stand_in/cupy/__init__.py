"""A stand-in for CuPy made of NumPy, with several GPUs: what pullback uses of it, and stricter.

`PYTHONPATH=tests/devices/stand_in` lets pullback find it as `cupy`. Arrays know the GPU that their memory belongs to. Work on
them while another one is current is refused (CuPy would go through the other's memory, in the wrong stream), and so are
arrays of the host. Kernels are compiled as C++ (tests/devices/emulator) and run at once. `cuda.watch` is told of all work.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from . import cuda, nccl
from .cuda import Memory, MemoryPointer, allocate

cuda.nccl = nccl  # type: ignore[attr-defined]  # CuPy has it as cupy.cuda.nccl
_VIEWS = "reshape ravel squeeze transpose swapaxes view diagonal broadcast_to expand_dims moveaxis".split()
"""What launches nothing, except where it has to copy."""


class WrongDevice(AssertionError):
    """Work was begun on the wrong GPU."""


class ndarray(np.ndarray):
    """An array in the memory of a GPU."""

    memory: Memory
    _root: ndarray | None

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> ndarray:
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if memptr is None:
            memptr = allocate(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        # NumPy counts from the first byte of the buffer, and checks that all of the array lies in it.
        memory = memptr.mem
        buffer = memory.buffer
        made = super().__new__(cls, shape, dtype, buffer, memptr.ptr - memory.ptr, strides, order)
        made.memory, made._root = memory, None
        return made

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, ndarray):
            self.memory = obj.memory
            self._root = obj if obj._root is None else obj._root

    @property
    def data(self) -> Any:
        return MemoryPointer(self.memory, self.__array_interface__["data"][0] - self.memory.ptr)

    @property
    def base(self) -> Any:
        return self._root

    @property
    def device(self) -> Any:
        return cuda.Device(self.memory.device_id)

    @property
    def _c_contiguous(self) -> bool:
        return self.flags.c_contiguous

    @property
    def _f_contiguous(self) -> bool:
        return self.flags.f_contiguous

    def get(self, *args: Any, **options: Any) -> Any:
        return asnumpy(self)

    def item(self, *args: Any) -> Any:
        return asnumpy(self).item(*args)

    def tolist(self) -> Any:
        return asnumpy(self).tolist()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _run(getattr(ufunc, method), inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _run(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, (np.ndarray, list)) for part in parts):
            return _run(np.ndarray.__getitem__, (self, index), {})
        found = super().__getitem__(index)
        return (
            found
            if isinstance(found, ndarray)
            else super().__getitem__((index, ...) if not isinstance(index, tuple) else (*index, ...))
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        _run(np.ndarray.__setitem__, (self, index, value), {}, writes=[self])

    def __bool__(self) -> bool:
        return bool(asnumpy(self))

    def __int__(self) -> int:
        return int(asnumpy(self))

    def __float__(self) -> float:
        return float(asnumpy(self))

    def __cuda_array_interface__(self) -> Any:
        raise NotImplementedError("no other library is on these GPUs")


def _method(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def call(self: ndarray, *args: Any, **options: Any) -> Any:
        return _run(function, (self, *args), options)

    call.__name__ = name
    return call


for _name in (
    "all any argmax argmin argpartition argsort astype clip conj conjugate copy cumprod cumsum diagonal dot fill flatten max "
    "mean min nonzero partition prod put ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take trace "
    "transpose var view"
).split():
    setattr(ndarray, _name, _method(_name))


def _plain(value: Any, found: list[ndarray]) -> Any:
    """A value with NumPy's arrays in the place of these; those of the host are refused."""
    if isinstance(value, ndarray):
        found.append(value)
        return np.ndarray.view(value, np.ndarray)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)([_plain(part, found) for part in value])
    return value


def _run(function: Any, args: Any, options: Any, writes: Any = ()) -> Any:
    """A function of NumPy on these arrays, as work of the current GPU."""
    given: list[ndarray] = []
    plain = [_plain(argument, given) for argument in args]
    named = {name: _plain(option, given) for name, option in options.items()}
    out = options.get("out")
    out = out[0] if isinstance(out, tuple) and out else out
    computes = function.__name__ not in _VIEWS
    if computes:
        require_current(given)
    with np.errstate(all="ignore"):
        result = function(*plain, **named)
    if out is not None:
        cuda.tell(given, [out], True)
        return out
    made = _wrapped(result, given, not computes)
    if computes:
        cuda.tell(given, [*_arrays(made), *writes], bool(writes))
    return made


def require_current(arrays: Any) -> None:
    """Refuse arrays of another GPU than the current one."""
    here = cuda.runtime.getDevice()
    for array in arrays:
        if array.memory.device_id != here:
            raise WrongDevice(f"an array of GPU {array.memory.device_id} is used while GPU {here} is current")


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in _arrays(part)]
    return [value] if isinstance(value, ndarray) else []


def _wrapped(value: Any, given: list[ndarray], is_view: bool = False) -> Any:
    """A result of NumPy's in the memory of a GPU: a view of what was given, also where it is empty, or new."""
    if isinstance(value, (np.ndarray, np.generic)):
        if isinstance(value, np.ndarray):
            for array in given:
                plain = np.ndarray.view(array, np.ndarray)
                if np.may_share_memory(value, plain) if value.size else is_view:
                    seen = np.ndarray.view(value, ndarray)
                    seen.memory, seen._root = array.memory, array if array._root is None else array._root
                    return seen
        return adopt(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_wrapped(part, given) for part in value])
    if isinstance(value, (tuple, list)):
        return type(value)([_wrapped(part, given) for part in value])
    return value


def adopt(array: Any) -> ndarray:
    """An array of the current GPU with these values, laid out alike where there are no gaps."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    if not array.flags.forc and 0 not in array.strides and array.size:
        dims = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
        back = sorted(range(array.ndim), key=dims.__getitem__)
        made: Any = np.ndarray.transpose(ndarray(tuple(array.shape[dim] for dim in dims), array.dtype), back)
    else:
        made = ndarray(array.shape, array.dtype, order=order)
    np.ndarray.view(made, np.ndarray)[...] = array
    return made


def asnumpy(array: Any, stream: Any = None, order: str = "C", **options: Any) -> Any:
    """A copy in the memory of the host."""
    if not isinstance(array, ndarray):
        return np.asarray(array)
    require_current([array])
    cuda.tell([array], [], False)
    cuda.get_current_stream().synchronize()
    return np.array(np.ndarray.view(array, np.ndarray), order=order, copy=True)


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    if isinstance(a, (tuple, list)) and any(isinstance(part, ndarray) for part in a):
        return _run(np.asarray, (a,), {"dtype": dtype})
    made = adopt(np.asarray(a, dtype, order="K" if order is None else order))
    cuda.tell([], [made], False)
    return made


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0
) -> Any:
    if isinstance(object, ndarray):
        return _run(np.array, (object,), {"dtype": dtype, "copy": True, "order": order, "ndmin": ndmin})
    return asarray(np.array(object, dtype, ndmin=ndmin))


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    if isinstance(a, ndarray) and a.flags.c_contiguous and (dtype is None or a.dtype == dtype):
        return a
    return _run(np.ascontiguousarray, (a,), {"dtype": dtype}) if isinstance(a, ndarray) else asarray(a, dtype)


def may_share_memory(a: Any, b: Any) -> bool:
    return bool(np.may_share_memory(np.ndarray.view(a, np.ndarray), np.ndarray.view(b, np.ndarray)))


def get_default_memory_pool() -> Any:
    return cuda.pool


class _Function:
    """A function of NumPy whose arrays are of the current GPU."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _run(self._function, args, options)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._function, name)
        if name == "at":

            def at(target: Any, *args: Any) -> None:
                _run(method, (target, *args), {}, writes=[target])

            return at
        return _Function(method) if callable(method) else method


class _Namespace(ModuleType):
    def __init__(self, module: Any) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _found(getattr(self._module, name))


def _found(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return _Namespace(value)
    return value if isinstance(value, type) or not callable(value) else _Function(value)


linalg, fft = _Namespace(np.linalg), _Namespace(np.fft)


class RawKernel:
    """A kernel of CUDA's text, compiled when it is first launched."""

    def __init__(
        self,
        code: str,
        name: str,
        options: Any = (),
        backend: str = "nvrtc",
        *,
        enable_cooperative_groups: bool = False,
    ) -> None:
        self._code, self._name = code, name
        self._launch: Any = None
        self._shared: dict[int, int] = {}
        self.written: list[bool] = []
        cuda.texts.setdefault(code, name)

    @property
    def kernel(self) -> RawKernel:
        return self

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._shared.get(cuda.runtime.getDevice(), 48 * 1024)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._shared[cuda.runtime.getDevice()] = size

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, **options: Any) -> None:
        arrays = [argument for argument in args if isinstance(argument, ndarray)]
        require_current(arrays)
        assert shared_mem <= self.max_dynamic_shared_size_bytes, "more shared memory than this GPU was told of"
        cuda.launches.append(self._code)
        if not cuda.computes:
            return
        if self._launch is None:
            from tests.devices.emulator.launching import launcher, parameters_of  # lazy: with the kernels

            self._launch = launcher(self._code, self._name)
            self.written = [writes for _, writes in parameters_of(self._code, self._name)]
        self._launch(grid, block, args)
        pairs = [(a, writes) for a, writes in zip(args, self.written, strict=True) if isinstance(a, ndarray)]
        cuda.tell([a for a, _ in pairs], [a for a, writes in pairs if writes], True)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _found(getattr(np, name))
