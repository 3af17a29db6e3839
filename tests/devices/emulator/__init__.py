"""The kernels of the GPU on the CPU: CUDA's text compiled as C++, on a device whose arrays are NumPy's.

For tests where no GPU is. A launch runs blocks one after another and a block's threads by turns (cuda_on_cpu.h), so that
barriers, shuffles and memory shared in a block mean what they mean on a GPU. Slow: for small arrays alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.devices.cuda.kernels import own_kernels
from pullback.devices.cuda.pending import DeferredArray, Pending
from pullback.devices.table import register
from tests.devices.emulator.launching import COMPILER as COMPILER
from tests.devices.emulator.launching import launcher, multiply
from tests.devices.fake_library import FakeLibrary


class _Pointer:
    """What CuPy's arrays tell of their memory."""

    def __init__(self, array: Any) -> None:
        self.ptr = array.__array_interface__["data"][0]
        self.device_id = 0


class EmulatedRaw(np.ndarray):
    """NumPy's array with those attributes of CuPy's that launches read."""

    @property
    def data(self) -> Any:
        return _Pointer(self)

    @property
    def _c_contiguous(self) -> bool:
        return self.flags.c_contiguous

    @property
    def _f_contiguous(self) -> bool:
        return self.flags.f_contiguous


class _Module:
    """NumPy as the kernels of the GPU see CuPy."""

    ndarray = EmulatedRaw

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name in ("zeros", "empty", "asarray", "ascontiguousarray", "ones", "full", "array"):
            return lambda *args, **options: found(*args, **options).view(EmulatedRaw)
        return found


class _Complaints:
    """As on the GPU; tests look at `found`."""

    def __init__(self) -> None:
        self.found = np.zeros(4, np.int64)
        self.address = np.uint64(self.found.ctypes.data)


class Emulated(FakeLibrary):
    """A device on which the GPU's own kernels run."""

    name = "emulated"
    array_type = EmulatedRaw

    def __init__(self) -> None:
        self.module = _Module()
        super().__init__()
        self.launches: list[str] = []
        """The first lines of what was launched, in order."""
        self.pending = Pending(self)
        self.complaints = _Complaints()
        self.processors = 1
        self._counter = np.zeros(4096, np.int32).view(EmulatedRaw)
        self.kernels = own_kernels(self)

    def program_runner(self, program: Any, runner: Any) -> Any:
        return runner

    def end_pass(self) -> None:
        self.pending.flush()

    def place_of(self, raw: Any) -> device:
        return EMULATED

    def upload(self, array: Any) -> Any:
        return super().upload(array).view(EmulatedRaw)

    def download(self, raw: Any) -> Any:
        return super().download(raw).view(np.ndarray)

    def view_of(self, raw: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
        return super().view_of(raw, shape, dtype, offset, strides).view(EmulatedRaw)

    def wrap(self, value: Any) -> Any:
        if type(value) is np.ndarray:  # what NumPy's functions make of their own accord
            value = value.view(EmulatedRaw)
        return super().wrap(value)

    def compiled(self, source: str, joins: bool = True) -> Any:
        """A callable that launches the kernel `run` of a text."""
        run = launcher(source)

        def launch(grid: Any, block: Any, arguments: Any) -> None:
            self.launches.append(source)
            run(grid, block, arguments)

        return launch

    def counter(self, count: int) -> Any:
        """Zeros for blocks to count with."""
        return self._counter

    def compiled_to_meet(self, source: str, shared: int) -> Any:
        """As `compiled`: the one block meets nobody else."""
        return self.compiled(source)

    def gemm(
        self, kind: str, flips: Any, sizes: Any, a: Any, b: Any, c: Any, steps: Any, batch: Any, beta: float, wide: bool
    ) -> None:
        """As cuBLAS: c = a @ b + beta * c for matrices that lie column after column."""
        multiply(kind, flips, sizes, a, b, c, steps, batch, 1.0, beta)


class EmulatedArray(DeferredArray):
    __slots__ = ()


EMULATED = device("cpu")
if COMPILER is not None:
    Emulated.wrapper = EmulatedArray  # type: ignore[assignment]  # another library's arrays
    emulated = Emulated()
    EmulatedArray.library = emulated
    register(emulated)
    EMULATED = device("emulated", 0)
    assert issubclass(EmulatedArray, DeviceArray)
