"""Gradients of transforms between real and complex numbers."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.typing import Shape


def fft_r2c_back(grad: Any, dim: Shape, scale: str, onesided: bool, shape: Shape) -> Any:
    """The real part of the adjoint; what a one-sided transform left out has no gradient."""
    if onesided:
        last = dim[-1]
        whole = (*grad.shape[:last], shape[last], *grad.shape[last + 1 :])
        grad = F.slice_back(grad, whole, last, 0, grad.shape[last], 1)
    return F.real_part(F.fft_c2c(grad, dim, scale, False))


def fft_c2r_back(grad: Any, dim: Shape, scale: str, shape: Shape) -> Any:
    """The one-sided transform; each element that stands for its conjugate too counts twice."""
    last = dim[-1]
    half = F.fft_r2c(grad, dim, scale, True)
    return F.double_conjugate_pairs(half, last, grad.shape[last] - shape[last])
