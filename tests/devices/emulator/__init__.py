"""The kernels of the GPU on the CPU: CUDA's text compiled as C++, on a device whose arrays are NumPy's.

For tests where no GPU is. A launch runs blocks one after another and a block's threads by turns (cuda_on_cpu.h), so that
barriers, shuffles and memory shared in a block mean what they mean on a GPU. Slow: for small arrays alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.devices.cuda.kernels import own_kernels
from pullback.devices.cuda.pending import DeferredArray, Pending
from pullback.devices.table import register
from tests.devices.fake_library import FakeLibrary

COMPILER = shutil.which("g++")
_HEADER = Path(__file__).with_name("cuda_on_cpu.h")
_FOLDER = Path(tempfile.mkdtemp(prefix="cuda_on_cpu_"))


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
        library = _compile(source)
        types = _parameter_types(source)

        def launch(grid: Any, block: Any, arguments: Any) -> None:
            self.launches.append(source)
            values = [_as_c(value, kind) for value, kind in zip(arguments, types, strict=True)]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            sizes = [*grid, *(1,) * (3 - len(grid)), *block, *(1,) * (3 - len(block))]
            library.launch((ctypes.c_uint * 6)(*sizes), pointers)

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
        rows, columns, inner = sizes
        for n in range(batch[0]):
            first = _matrix(a, kind, flips[0], rows, inner, steps[0], n * batch[1])
            second = _matrix(b, kind, flips[1], inner, columns, steps[1], n * batch[2])
            target = _matrix(c, kind, 0, rows, columns, steps[2], n * batch[3])
            product = first.astype(np.float64) @ second.astype(np.float64)
            target[...] = (product + beta * target.astype(np.float64) if beta else product).astype(target.dtype)


def _matrix(address: int, kind: str, flip: int, rows: int, columns: int, step: int, offset: int) -> Any:
    """A matrix at an address, column after column, or row after row where it is to be transposed."""
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    item = dtype.itemsize
    lines, length = (rows, columns) if flip else (columns, rows)
    count = (lines - 1) * step + length
    memory = (ctypes.c_char * (count * item)).from_address(address + offset * item)
    flat = np.frombuffer(memory, dtype)
    found = np.lib.stride_tricks.as_strided(flat, (lines, length), (step * item, item))
    return found if flip else found.T


def _parameter_types(source: str) -> list[str]:
    found = re.search(r"__global__ void (?:__launch_bounds__\(\d+\) )?run\(([^)]*)\)", source)
    assert found is not None
    types = []
    for parameter in found.group(1).split(","):
        text = re.sub(r"\bconst\b|__restrict__", "", parameter)
        types.append("*" if "*" in text else " ".join(text.split()[:-1]))
    return types


_SIZES = {"*": 8, "long long": 8, "double": 8, "int": 4, "float": 4, "unsigned": 4}


def _as_c(value: Any, kind: str) -> Any:
    """An argument as CuPy hands it over; a number of another size than the parameter's is a mistake."""
    if isinstance(value, np.ndarray) and value.ndim + value.size:
        assert kind == "*", f"an array for {kind}"
        return ctypes.c_void_p(value.__array_interface__["data"][0])
    made: Any
    if isinstance(value, np.generic):
        made = np.ctypeslib.as_ctypes(np.array(value))
    else:
        made = ctypes.c_double(value) if isinstance(value, float) else ctypes.c_longlong(value)
    assert ctypes.sizeof(made) == _SIZES[kind], f"{value!r} for {kind}"
    assert isinstance(value, (float, np.floating)) == (kind in ("double", "float")), f"{value!r} for {kind}"
    return made


_compiled: dict[str, Any] = {}
_COMMAND = [str(COMPILER), "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fPIC", "-mf16c"]


@cache
def _header() -> Path:
    """The header, compiled once: a third of the time that each kernel takes."""
    header = _FOLDER / _HEADER.name
    shutil.copy(_HEADER, header)
    subprocess.run([*_COMMAND, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return header


def _compile(source: str) -> Any:
    found = _compiled.get(source)
    if found is None:
        name = hashlib.sha1(source.encode()).hexdigest()[:16]
        declared = re.search(r"__global__ void (?:__launch_bounds__\(\d+\) )?run\(([^)]*)\)", source)
        assert declared is not None
        types = [
            re.sub(r"\w+$", "", p.replace("__restrict__", "").strip()).strip() for p in declared.group(1).split(",")
        ]
        call = ", ".join(
            f"*({re.sub(r'^const ', '', t) if '*' not in t else t} *)given[{n}]" for n, t in enumerate(types)
        )
        text = re.sub(r"#include <cuda_(fp16|bf16).h>", "", source)
        text = f'#include "{_header()}"\n{text}\nstatic void call(void **given) {{ run({call}); }}\n'
        text += "static int ready = (body = call, 0);\n"
        path = _FOLDER / f"{name}.cpp"
        path.write_text(text)
        command = [*_COMMAND, "-shared", str(path), "-o", str(path.with_suffix(".so"))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, f"{done.stderr[:3000]}\n{source}"
        found = _compiled[source] = ctypes.CDLL(str(path.with_suffix(".so")))
    return found


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
