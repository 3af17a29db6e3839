"""What the kernels of kernels/masking.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks.shapes import check_broadcastable
from pullback.typing import Array, Scalar


def _require_mask(name: str, mask: Array) -> None:
    if mask.dtype != np.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {mask.dtype}")


def masked_fill(input: Array, mask: Array, value: Scalar) -> None:
    _require_mask("masked_fill_", mask)
    check_broadcastable(input.shape, mask.shape)


def masked_scatter(input: Array, mask: Array, source: Array) -> None:
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {scalar_type_name(input.dtype)} and "
            f"{scalar_type_name(source.dtype)}"
        )
    check_broadcastable(input.shape, mask.shape)
    _require_mask("masked_scatter_", mask)
