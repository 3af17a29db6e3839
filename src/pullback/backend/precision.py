"""Which products of float32 may be computed in TF32, as `torch.backends` was told."""

from __future__ import annotations

from typing import Any


class Switches:
    """The objects of `pullback.backends` that hold the switches; None before that module is imported."""

    matmul: Any = None
    convolutions: Any = None


def allows_tf32(of_convolutions: bool) -> bool:
    """Whether convolutions, or other products, of float32 may be computed in TF32."""
    holder = Switches.convolutions if of_convolutions else Switches.matmul
    return of_convolutions if holder is None else bool(holder.allow_tf32)
