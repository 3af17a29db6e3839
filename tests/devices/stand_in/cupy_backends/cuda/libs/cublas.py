"""Products as cuBLAS computes them, on the GPU whose handle is given."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy

from tests.devices.emulator.launching import multiply

_KINDS = {0: "float32", 1: "float64", 2: "float16", 14: "bfloat16"}


def _number(address: int, compute: int) -> float:
    kind: Any = ctypes.c_double if compute == 70 else ctypes.c_float
    return kind.from_address(address).value


def _check(handle: int, *addresses: int) -> None:
    here = cupy.cuda.runtime.getDevice()
    assert handle == 1000 + here, "the handle of another GPU"
    for address in addresses:
        block = next(b for b in cupy.cuda.blocks if b.ptr <= address < b.ptr + b.size)
        if block.device_id != here:
            raise cupy.WrongDevice(f"a product of GPU {here} reads memory of GPU {block.device_id}")


def gemmEx(
    handle: int, flip_a: int, flip_b: int, m: int, n: int, k: int, alpha: int, a: int, kind: int, step_a: int, b: int,
    _b: int, step_b: int, beta: int, c: int, _c: int, step_c: int, compute: int, algorithm: int,
) -> None:  # fmt: skip
    if not cupy.cuda.computes:
        return
    _check(handle, a, b, c)
    numbers = (_number(alpha, compute), _number(beta, compute))
    multiply(_KINDS[kind], (flip_a, flip_b), (m, n, k), a, b, c, (step_a, step_b, step_c), (1, 0, 0, 0), *numbers)


def gemmStridedBatchedEx(
    handle: int, flip_a: int, flip_b: int, m: int, n: int, k: int, alpha: int, a: int, kind: int, step_a: int, far_a: int,
    b: int, _b: int, step_b: int, far_b: int, beta: int, c: int, _c: int, step_c: int, far_c: int, count: int, compute: int,
    algorithm: int,
) -> None:  # fmt: skip
    if not cupy.cuda.computes:
        return
    _check(handle, a, b, c)
    numbers = (_number(alpha, compute), _number(beta, compute))
    steps, batch = (step_a, step_b, step_c), (count, far_a, far_b, far_c)
    multiply(_KINDS[kind], (flip_a, flip_b), (m, n, k), a, b, c, steps, batch, *numbers)
