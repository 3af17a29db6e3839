"""CUDA's text compiled as C++ and launched on the CPU; products as cuBLAS computes them."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("g++")
_HEADER = Path(__file__).with_name("cuda_on_cpu.h")
_turn = threading.Lock()
"""One launch at a time: what a block shares is static."""
_FOLDER = Path(tempfile.mkdtemp(prefix="cuda_on_cpu_"))


def launcher(source: str, name: str = "run") -> Any:
    """A callable that launches a kernel of a text: `(grid, block, arguments)`, as CuPy's."""
    library = compile_text(source, name)
    types = [kind for kind, _ in parameters_of(source, name)]

    def launch(grid: Any, block: Any, arguments: Any) -> None:
        values = [as_c(value, kind) for value, kind in zip(arguments, types, strict=True)]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        sizes = [*grid, *(1,) * (3 - len(grid)), *block, *(1,) * (3 - len(block))]
        with _turn:
            library.launch((ctypes.c_uint * 6)(*sizes), pointers)

    return launch


def multiply(
    kind: str, flips: Any, sizes: Any, a: int, b: int, c: int, steps: Any, batch: Any, alpha: float, beta: float
) -> None:
    """c = alpha * a @ b + beta * c for matrices that lie column after column, in a wider dtype."""
    rows, columns, inner = sizes
    for n in range(batch[0]):
        first = matrix(a, kind, flips[0], rows, inner, steps[0], n * batch[1])
        second = matrix(b, kind, flips[1], inner, columns, steps[1], n * batch[2])
        target = matrix(c, kind, 0, rows, columns, steps[2], n * batch[3])
        product = alpha * (first.astype(np.float64) @ second.astype(np.float64))
        target[...] = (product + beta * target.astype(np.float64) if beta else product).astype(target.dtype)


def matrix(address: int, kind: str, flip: int, rows: int, columns: int, step: int, offset: int) -> Any:
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


def _declared(source: str, name: str) -> list[str]:
    """The parameters of a kernel, as they are written."""
    found = re.search(rf"__global__ void (?:__launch_bounds__\(\d+\) )?{name}\(([^)]*)\)", source)
    assert found is not None
    return [parameter.replace("__restrict__", "").strip() for parameter in found.group(1).split(",")]


def parameters_of(source: str, name: str = "run") -> list[tuple[str, bool]]:
    """For each parameter of a kernel its type, "*" for pointers, and whether it is written to."""
    found = []
    for parameter in _declared(source, name):
        words = re.sub(r"\bconst\b", "", parameter)
        is_pointer = "*" in parameter
        found.append(("*" if is_pointer else " ".join(words.split()[:-1]), is_pointer and "const" not in parameter))
    return found


_SIZES = {"*": 8, "long long": 8, "unsigned long long": 8, "wide": 8, "double": 8, "int": 4, "float": 4, "unsigned": 4}


def as_c(value: Any, kind: str) -> Any:
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


def compile_text(source: str, entry: str = "run") -> Any:
    """The library that a text is compiled to, which can launch the kernel `entry`."""
    found = _compiled.get(source)
    if found is None:
        name = hashlib.sha1(source.encode()).hexdigest()[:16]
        types = [re.sub(r"\w+$", "", parameter).strip() for parameter in _declared(source, entry)]
        call = ", ".join(
            f"*({re.sub(r'^const ', '', t) if '*' not in t else t} *)given[{n}]" for n, t in enumerate(types)
        )
        text = re.sub(r"#include <cuda_(fp16|bf16).h>", "", source)
        text = f'#include "{_header()}"\n{text}\nstatic void call(void **given) {{ {entry}({call}); }}\n'
        text += "static int ready = (body = call, 0);\n"
        path = _FOLDER / f"{name}.cpp"
        path.write_text(text)
        command = [*_COMMAND, "-shared", str(path), "-o", str(path.with_suffix(".so"))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, f"{done.stderr[:3000]}\n{source}"
        found = _compiled[source] = ctypes.CDLL(str(path.with_suffix(".so")))
    return found
