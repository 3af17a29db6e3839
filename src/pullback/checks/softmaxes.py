"""What the kernels of kernels/softmaxes.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import require_real_floating
from pullback.typing import Array, Dim


def softmax(input: Array, dim: Dim) -> None:
    _require_floating("softmax", input, dim)


def log_softmax(input: Array, dim: Dim) -> None:
    _require_floating("log_softmax", input, dim)


def _require_floating(name: str, input: Array, dim: Dim) -> None:
    if input.size:
        is_last = dim in (-1, max(input.ndim - 1, 0))
        require_real_floating(f"{name}_lastdim_kernel_impl" if is_last else f"{name}_kernel_impl", input)
