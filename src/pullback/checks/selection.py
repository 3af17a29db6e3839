"""What the kernels of kernels/selection.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.typing import Array, Scalar


def where(condition: Array, input: Array | Scalar, other: Array | Scalar) -> None:
    if condition.dtype.char not in "?B":
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{scalar_type_name(condition.dtype)}: compare it with something first."
        )
