"""What the kernels of kernels/orthogonalization.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array

_MOST_STEPS = 100


def newton_schulz(matrix: Array, coefficients: tuple[float, float, float], steps: int) -> None:
    if steps >= _MOST_STEPS:
        raise ValueError(f"Number of steps must be less than {_MOST_STEPS} for computational efficiency, got {steps}")
