"""What the kernels of kernels/special_gamma.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array


def mvlgamma(input: Array, p: int) -> None:
    if input.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, but p is {p}")


def polygamma(n: int, input: Array) -> None:
    if n < 0:
        raise RuntimeError(
            f"polygamma(n, x) does not support negative n, but n is {n}; differentiate digamma n >= 0 times"
        )
