"""CUDA's text of every kernel that is printed, compiled by nvcc for the GPUs of data centres: no GPU is needed for that.

Nothing is computed here. Programs run on the stand-in to have their kernels printed; elementwise kernels are printed from
their table. `make gpu-kernels` compiles all of them, the everyday run a part.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import cupy
import pytest

import pullback
from pullback.devices.cuda import elementwise
from pullback.devices.cuda.elementwise_table import KERNELS
from tests.devices.test_cuda_kernels import CALLS, LAYERS

COMPILER = shutil.which("nvcc")
ALL = os.environ.get("PULLBACK_GPU_KERNELS") == "all"
ARCHITECTURES = ("80", "90") if ALL else ("90",)
FILES = sorted(Path(elementwise.__file__).parent.glob("*.py"))
DTYPES = (pullback.float32, pullback.float64, pullback.bfloat16, pullback.float16)
LETTERS = {
    "ARRAY": "a",
    "ARRAY_OR_NUMBER": "a",
    "OPTIONAL_ARRAY": "a",
    "MASK": "m",
    "NUMBER": "n",
    "OPTIONAL_NUMBER": "n",
}
DRAWS: list[Callable[[Any], Any]] = [
    lambda x: x.uniform_(), lambda x: x.normal_(), lambda x: x.log_normal_(), lambda x: x.exponential_(),
    lambda x: x.cauchy_(), lambda x: x.bernoulli_(0.3), lambda x: x.random_(), lambda x: x.random_(0, 100),
    lambda x: pullback.nn.functional.dropout(x, 0.3),
]  # fmt: skip


def run_calls(dtype: Any) -> None:
    """The kernels of rows, images, products and losses, alone and together with others."""
    for call, shapes in CALLS.values():
        for _ in range(3):
            inputs = [pullback.zeros(shape, dtype=dtype, device="cuda").requires_grad_() for shape in shapes]
            call(*inputs).float().sum().backward()


def run_layers(dtype: Any) -> None:
    """Recurrent layers of a small size, and of one that is spread over the processors of an H200."""
    library = pullback.ones(1, device="cuda")._array.library
    for processors, size in ((1, 5), (132, 512)):
        library.processors = processors
        for make in LAYERS.values():
            layer = make(3, size).to("cuda", dtype)
            layer(pullback.zeros(2, 2, 3, dtype=dtype, device="cuda"))[0].sum().backward()


def run_others() -> None:
    """Optimizers, random numbers, checks of positions, and graphs of launches that draw."""
    for dtype in DTYPES:
        weight = pullback.zeros(8, dtype=dtype, device="cuda", requires_grad=True)
        weight.grad = pullback.zeros_like(weight)
        for make in (pullback.optim.SGD, pullback.optim.Adam):
            make([weight], lr=0.1).step()
        for draw in DRAWS:
            draw(pullback.zeros(7, dtype=dtype, device="cuda"))
            draw(pullback.zeros(16, dtype=dtype, device="cuda"))
    for integers in (pullback.int64, pullback.int32, pullback.uint8):
        pullback.zeros(8, dtype=integers, device="cuda").random_()
    pullback.randint(0, 2**40, (3,), device="cuda")
    pullback.eye(3, device="cuda").gather(1, pullback.zeros(2, 2, dtype=pullback.int64, device="cuda"))
    importlib.import_module("pullback.devices.cuda.philox")._setting()


@cache
def texts() -> dict[str, str]:
    """Every text, and the name of the kernel in it."""
    cupy.cuda.computes = False
    for dtype in DTYPES if ALL else DTYPES[2:3]:
        run_calls(dtype)
    for dtype in DTYPES[:2]:
        run_layers(dtype)
    run_others()
    found = dict(cupy.cuda.texts)
    for name, (parameters, _, variants) in KERNELS.items():
        kinds = "".join(LETTERS.get(kind, "-") for _, kind, _ in parameters)
        for place in [place for place, (_, _, result) in enumerate(variants) if result is not None]:
            for type_name in ("float32", "float64", "bfloat16", "float16"):
                found[elementwise.flat_source(name, place, kinds, type_name, 4 if "m" not in kinds else 1)] = "run"
                found[elementwise.strided_source(name, place, kinds, type_name, 2)] = "run"
    return found


def joined(chosen: list[tuple[str, str]]) -> str:
    """Many texts as one, each in a namespace, with a name of its own for the kernel."""
    parts = ["#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"]
    for number, (text, name) in enumerate(chosen):
        words = sorted(set(re.findall(r"^#define (\w+)", text, re.M)))
        body = re.sub(r"#include <[^>]*>", "", text)
        body = re.sub(r"\bpool\b", f"pool_{number}", body)  # dynamic shared memory has one name for all of a file
        body, count = re.subn(
            rf"(__global__ void (?:__launch_bounds__\(\d+\) )?){name}\(", rf"\g<1>kernel_{number}(", body
        )
        assert count == 1, text
        parts.append(f"namespace n{number} {{\n{body}\n}}\n" + "".join(f"#undef {word}\n" for word in words))
    return "\n".join(parts)


@pytest.mark.skipif(COMPILER is None, reason="there is no nvcc")
def test_the_compiler_refuses_what_is_wrong(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void run(float *x) { __shared__ float much[1 << 20]; much[0] = *x; *x = much[threadIdx.x]; }'
    (tmp_path / "wrong.cu").write_text(joined([(text, "run")]))
    command = [str(COMPILER), "-cubin", "-arch=sm_90", "wrong.cu", "-o", "wrong.cubin"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0


@pytest.mark.skipif(COMPILER is None, reason="there is no nvcc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_text_is_compiled(architecture: str, tmp_path: Path) -> None:
    chosen = list(texts().items())
    if not ALL:  # all but the elementwise ones, of which there are many
        chosen = [pair for n, pair in enumerate(chosen) if "_at" not in pair[0] or n % 40 == 0]
    for start in range(0, len(chosen), 200):
        path = tmp_path / f"kernels_{start}.cu"
        path.write_text(joined(chosen[start : start + 200]))
        command = [
            str(COMPILER),
            "-std=c++17",
            "-w",
            "-cubin",
            f"-arch=sm_{architecture}",
            str(path),
            "-o",
            f"{path}bin",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]


def test_no_text_needs_what_nvrtc_lacks() -> None:
    lacking = re.compile(r"\bstd::|\bu?int\d+_t\b|\bINFINITY\b|\bNAN\b|\bFLT_|\bDBL_|#include <(?!cuda_fp16|cuda_bf16)")
    for text in texts():
        defined = re.findall(r"^#define (\w+)", text, re.M)
        assert [word for word in lacking.findall(text) if word not in defined] == []


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_kernel_in_a_file_is_among_the_texts(path: Path) -> None:
    module = importlib.import_module(f"pullback.devices.cuda.{path.stem}")
    together = "\n".join(texts())
    for name, value in vars(module).items():
        if isinstance(value, str) and "__global__" in value:
            lines = [line for line in value.splitlines() if not re.search(r"\b(T|[A-Z]{3,})\b|/\*", line)]
            longest = max(lines, key=len)
            assert longest in together, f"{name} is printed by no test: {longest}"
