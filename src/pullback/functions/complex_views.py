"""Real and imaginary parts, and PyTorch's questions about lazy conjugation, which pullback never is."""

from __future__ import annotations

import pullback.generated as G
from pullback.tensor.tensor import Tensor


def real(input: Tensor) -> Tensor:
    """A view of the real part; a real tensor itself."""
    if input._array.dtype.kind != "c":
        return input
    return G.select(G.view_as_real(input), -1, 0)


def imag(input: Tensor) -> Tensor:
    """A view of the imaginary part of a complex tensor."""
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return G.select(G.view_as_real(input), -1, 1)


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never lazy here."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never lazy here."""
    return input


def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy here."""
    return False


def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy here."""
    return False
