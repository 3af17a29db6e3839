"""CuPy as a library of arrays: where it differs from NumPy, and where its memory lies."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from pullback.backend.array_module import contiguous_strides
from pullback.backend.device import device
from pullback.devices.cuda.functions import make_overrides
from pullback.devices.cuda.graphs import Captured, Capturing
from pullback.devices.cuda.kernels import own_kernels
from pullback.devices.cuda.memory import MemoryWatch
from pullback.devices.cuda.pending import DeferredArray, Pending
from pullback.devices.cuda.philox import CudaGenerator, Sampler
from pullback.devices.cuda.transfers import Parked, Transfers
from pullback.devices.graph_runner import GraphRunner
from pullback.devices.library import Library
from pullback.devices.several import OnTheirDevice, on_their_device
from pullback.devices.table import register
from pullback.errors import gpu_out_of_memory

cupy: Any = (
    import_module("cupy") if find_spec("cupy") is not None else None
)  # this module is used only where it is there
cublas: Any = import_module("cupy_backends.cuda.libs.cublas") if cupy is not None else None


class CudaArray(DeferredArray):
    """An array in the memory of a GPU."""

    __slots__ = ()

    @property
    def __cuda_array_interface__(self) -> Any:
        """The memory, for other libraries on the GPU."""
        self.library.shared_with_others()
        return self.raw.__cuda_array_interface__


_KINDS = {"float32": (0, 68), "float64": (1, 70), "float16": (2, 68), "bfloat16": (14, 68)}
"""cuBLAS's numbers of dtypes and of what products of them are added up in."""
_TF32 = 77
_DEVICE_TO_DEVICE = 3
_SHARED = 48 * 1024
"""Bytes that the blocks of a launch may share without asking."""
_IN_CHUNKS = ("kernels.normalization", "kernels.attention", "kernels.convolutions", "kernels.distances")


class Complaints:
    """What kernels found wrong, in memory that the GPU and the host see: whoever reads a value afterwards is told."""

    def __init__(self) -> None:
        self._memory = cupy.cuda.alloc_pinned_memory(32)
        self._found: Any = np.frombuffer(self._memory, np.int64, 4)
        self._found[:] = 0
        self.address = np.uint64(self._memory.ptr)

    def check(self) -> None:
        """Raise what was found."""
        kind, value, count, dim = self._found
        if kind:
            self._found[0] = 0
            if kind == 1:
                raise IndexError(f"Target {value} is out of bounds.")
            if kind == 3:
                where = "a tensor" if dim < 0 else f"dimension {dim}"
                raise IndexError(f"index {value} is out of bounds for {where} with size {count}")
            raise IndexError(f"index out of range in self: {value} names no row of a table of {count} rows")


class CudaLibrary(Library):
    """CuPy."""

    name = "cuda"
    module = cupy
    wrapper = CudaArray
    repeats_draws = True

    def __init__(self) -> None:
        super().__init__()
        self.array_type = cupy.ndarray
        self.places = [device("cuda", number) for number in range(cupy.cuda.runtime.getDeviceCount())]
        self.overrides = make_overrides(cupy)
        self.sampler = Sampler(self)
        self.memory = MemoryWatch(self)
        self.transfers = Transfers(self)
        self.pending = Pending(self)
        self.complaints = Complaints()
        self.capturing: Capturing | None = None
        self._counters: dict[tuple[int, int], Any] = {}
        self.processors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self.kernels = {**own_kernels(self), **self.sampler.kernels()}
        self.functions |= {module: {"_CHUNK": 1 << 40} for module in _IN_CHUNKS}  # nothing is to stay in a cache here
        self._factors = [(np.full(1, n), np.full(1, n, np.float32)) for n in (0.0, 1.0)]
        self._places = [tuple([int(array.ctypes.data) for array in pair]) for pair in self._factors]
        """Where cuBLAS finds 0 and 1, in float64 and float32."""

    def compiled(self, source: str, joins: bool = True) -> Any:
        """A callable that launches the kernel `run` of a text; `joins`: products and sums may be rounded as one."""
        options = ("--std=c++17",) if joins else ("--std=c++17", "--fmad=false")
        kernel = cupy.RawKernel(source, "run", options=options)
        # Where there is one GPU, without the question which one the launch is for.
        return kernel.kernel if self.is_single() else kernel

    def counter(self, count: int) -> Any:
        """Zeros in the GPU's memory, for the blocks of a launch in the current stream to count with and to set back."""
        key = (cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)
        found = self._counters.get(key)
        if found is None or found.size < count:
            found = self._counters[key] = cupy.zeros(max(count, 4096), np.int32)
        return found

    def compiled_to_meet(self, source: str, shared: int) -> Any:
        """As `compiled`, for a kernel whose blocks wait for each other and share so many bytes each."""
        kernel = cupy.RawKernel(source, "run", options=("--std=c++17",), enable_cooperative_groups=True)
        told: set[int] = set()

        def launch(grid: Any, block: Any, arguments: Any) -> None:
            number = cupy.cuda.runtime.getDevice()
            if shared > _SHARED and number not in told:  # each GPU has a copy of the kernel
                kernel.max_dynamic_shared_size_bytes = shared
                told.add(number)
            kernel(grid, block, arguments, shared_mem=shared)

        return launch

    def gemm(
        self, kind: str, flips: Any, sizes: Any, a: int, b: int, c: int, steps: Any, batch: Any, beta: float, wide: bool
    ) -> None:
        """c = a @ b + beta * c by cuBLAS, for matrices that lie column after column; `wide`: float32 as TF32.

        `flips` says which of a and b lie row after row, `batch` how many there are and how far apart.
        """
        code, compute = _KINDS[kind]
        narrow = kind != "float64"
        alpha = self._places[1][narrow]
        if beta in (0.0, 1.0):
            rest = self._places[int(beta)][narrow]
        else:
            factor = np.full(1, beta, np.float32 if narrow else np.float64)
            rest = factor.ctypes.data
        if wide and kind == "float32":
            compute = _TF32
        handle = cupy.cuda.device.get_cublas_handle()
        m, n, k = sizes
        capturing = self.capturing
        if batch[0] == 1:
            product = capturing.gemm if capturing is not None and capturing.is_on else cublas.gemmEx
            product(
                handle, flips[0], flips[1], m, n, k, alpha, a, code, steps[0], b, code, steps[1],
                rest, c, code, steps[2], compute, -1,
            )  # fmt: skip
            return
        product = capturing.gemm_batched if capturing is not None and capturing.is_on else cublas.gemmStridedBatchedEx
        product(
            handle, flips[0], flips[1], m, n, k, alpha, a, code, steps[0], batch[1], b, code, steps[1],
            batch[2], rest, c, code, steps[2], batch[3], batch[0], compute, -1,
        )  # fmt: skip

    # Programs that the GPU repeats by itself: see Note [Replayed graphs].

    def program_runner(self, program: Any, runner: Any) -> Any:
        return GraphRunner(self, program, runner)

    def capture(self, run: Callable[[], list[Any]]) -> Captured:
        """Take down what `run` launches, to be launched again."""
        if self.capturing is None:
            self.capturing = Capturing(self)
        return self.capturing.capture(run)

    def current_stream(self) -> int:
        """The stream that launches go to."""
        return int(cupy.cuda.get_current_stream().ptr)

    def room_for(self, raw: Any) -> Any:
        """An array of the same form in memory of its own."""
        low, high = self.bounds(raw)
        return cupy.ndarray(raw.shape, raw.dtype, cupy.cuda.alloc(high - low) + (self.address(raw) - low), raw.strides)

    def copy_memory(self, target: Any, source: Any) -> None:
        """Copy an array to one of the same form, gaps and all."""
        (low, high), (first, _) = self.bounds(source), self.bounds(target)
        cupy.cuda.runtime.memcpyAsync(first, low, high - low, _DEVICE_TO_DEVICE, self.current_stream())

    def lent(self, raw: Any, loan: Any) -> Any:
        """The same array again; it and all its views keep `loan`."""
        low, high = self.bounds(raw)
        memory = cupy.cuda.UnownedMemory(low, max(high - low, 1), loan)
        return cupy.ndarray(raw.shape, raw.dtype, cupy.cuda.MemoryPointer(memory, self.address(raw) - low), raw.strides)

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

    def moved(self, raw: Any, place: device) -> Any:
        return self.transfers.between(raw, int(place.index or 0))

    def download(self, raw: Any) -> Any:
        found = cupy.asnumpy(raw, order="A")
        self.complaints.check()
        return found

    def park(self, raw: Any) -> Any:
        parked = self.transfers.park(raw)
        return self.download(raw) if parked is None else parked

    def unpark(self, parked: Any) -> Any:
        try:
            return self.transfers.unpark(parked) if isinstance(parked, Parked) else self.upload(parked)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise gpu_out_of_memory(str(error)) from None

    def pin(self, array: Any) -> Any:
        if self.is_pinned(array):
            return array
        order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
        inverse = sorted(range(array.ndim), key=order.__getitem__)
        made = self.transfers.pinned(array.transpose(order).shape, array.dtype).transpose(inverse)
        made[...] = array
        return made

    def is_pinned(self, array: Any) -> bool:
        return self.transfers.is_pinned(array.__array_interface__["data"][0])

    def use_on_stream(self, raw: Any, stream: Any) -> None:
        self.transfers.share(raw, stream.raw)

    def read(self, raw: Any, why: str) -> Any:
        if why not in ("item", "tolist") and raw.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous")
        found = raw.get()
        self.complaints.check()
        return found if why in ("item", "tolist") else found.reshape(())

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

    def shared_with_others(self) -> None:
        self.pending.stop()

    def end_pass(self) -> None:
        self.pending.flush()
        self.transfers.sweep()

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


class SeveralGpus(OnTheirDevice, CudaLibrary):
    """CuPy where there is more than one GPU. See Note [Several devices]."""

    def __init__(self) -> None:
        super().__init__()
        self.ufuncs = {name: on_their_device(self, kernel) for name, kernel in self.ufuncs.items()}


def registered() -> CudaLibrary:
    """The library, whose arrays tensors can hold from now on."""
    library = CudaLibrary() if cupy.cuda.runtime.getDeviceCount() == 1 else SeveralGpus()
    CudaArray.library = library
    register(library)
    return library
