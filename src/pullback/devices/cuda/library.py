"""CuPy as a library of arrays: where it differs from NumPy, and where its memory lies."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from pullback.backend.array_module import contiguous_strides
from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.devices.cuda.elementwise import fused_kernels
from pullback.devices.cuda.functions import make_overrides
from pullback.devices.cuda.memory import MemoryWatch
from pullback.devices.cuda.philox import CudaGenerator, Sampler
from pullback.devices.cuda.products import Products
from pullback.devices.cuda.rows import RowKernels
from pullback.devices.library import Library
from pullback.devices.table import register
from pullback.errors import gpu_out_of_memory

cupy: Any = (
    import_module("cupy") if find_spec("cupy") is not None else None
)  # this module is used only where it is there


class CudaArray(DeviceArray):
    """An array in the memory of a GPU."""

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> Any:
        """The memory, for other libraries on the GPU."""
        return self.raw.__cuda_array_interface__


_IN_CHUNKS = ("kernels.normalization", "kernels.attention", "kernels.convolutions", "kernels.distances")


class CudaLibrary(Library):
    """CuPy."""

    name = "cuda"
    module = cupy
    wrapper = CudaArray

    def __init__(self) -> None:
        super().__init__()
        self.array_type = cupy.ndarray
        self.overrides = make_overrides(cupy)
        self.sampler = Sampler(self)
        self.memory = MemoryWatch()
        self.kernels = {
            **fused_kernels(self),
            **RowKernels(self).kernels(),
            **Products(self).kernels(),
            **self.sampler.kernels(),
        }
        self.functions |= {module: {"_CHUNK": 1 << 40} for module in _IN_CHUNKS}  # nothing is to stay in a cache here
        self.places = [device("cuda", number) for number in range(cupy.cuda.runtime.getDeviceCount())]

    def place_of(self, raw: Any) -> device:
        return self.places[raw.data.device_id]

    def place(self) -> device:
        return self.places[cupy.cuda.runtime.getDevice()]

    def checked_place(self, place: device) -> device:
        if place.index is None:
            return self.place()
        if place.index >= len(self.places):
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: {place}, and there are {len(self.places)} GPUs, counted from 0"
            )
        return place

    def on(self, place: device, make: Callable[[], Any]) -> Any:
        if place.index == cupy.cuda.runtime.getDevice():
            return make()
        with cupy.cuda.Device(place.index):
            return make()

    def upload(self, array: Any) -> Any:
        try:
            return cupy.asarray(array, order="K") if array.flags.forc else cupy.asarray(np.array(array, order="K"))
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise gpu_out_of_memory(str(error)) from None

    def download(self, raw: Any) -> Any:
        return cupy.asnumpy(raw, order="A")

    def read(self, raw: Any, why: str) -> Any:
        if why in ("item", "tolist"):
            return raw.get()
        if raw.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous")
        return raw.get().reshape(())

    def address(self, raw: Any) -> int:
        return int(raw.data.ptr)

    def owner(self, raw: Any) -> Any:
        root = raw
        while root.base is not None:
            root = root.base
        memory = raw.data.mem
        if root.data.ptr == memory.ptr and root.flags.c_contiguous:
            return root
        # A view that was made by address does not know its base: all of the block that was allocated stands for it.
        count = memory.size // raw.dtype.itemsize
        return cupy.ndarray((count,), raw.dtype, cupy.cuda.MemoryPointer(memory, 0))

    def view_of(self, raw: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
        dtype = np.dtype(dtype)
        if strides is None:
            strides = tuple([step * dtype.itemsize for step in contiguous_strides(shape)])
        return cupy.ndarray(tuple(shape), dtype, raw.data + offset, tuple(strides))

    def random_states(self) -> list[Any]:
        return [self.sampler.generator(number).pack_state() for number in range(len(self.places))]

    def set_random_states(self, states: list[Any]) -> None:
        for number, state in enumerate(states):
            self.sampler.generator(number).unpack_state(state)

    def manual_seed(self, seed: int) -> None:
        for number in range(len(self.places)):
            self.sampler.generator(number).manual_seed(seed)

    def new_generator(self, place: device) -> CudaGenerator:
        """A source of random numbers of its own."""
        return CudaGenerator(place)

    def put(self, raw: Any, index: Any, value: Any) -> None:
        if isinstance(value, cupy.ndarray) and value.ndim:
            index = _positions_of_masks(index)
        raw[index] = value

    def call(self, function: Any, args: Any, options: Any) -> Any:
        try:
            return super().call(function, args, options)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise gpu_out_of_memory(str(error)) from None


def _positions_of_masks(index: Any) -> Any:
    """An index whose masks are positions: CuPy writes one value to a mask, not many."""
    parts = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for part in parts:
        if isinstance(part, cupy.ndarray) and part.dtype == bool:
            found += part.nonzero()
        else:
            found.append(part)
    return tuple(found)


def registered() -> CudaLibrary:
    """The library, whose arrays tensors can hold from now on."""
    library = CudaLibrary()
    CudaArray.library = library
    register(library)
    return library
