"""The norms by which weights are divided."""

from __future__ import annotations

from typing import Any

import pullback.functions as F


def norm_except_dim(v: Any, pow: float = 2, dim: int = 0) -> Any:
    """The norm over all dimensions but one, shaped to be divided by; over all dimensions for dim = -1."""
    if dim == -1:
        return F.linalg_vector_norm(v, pow)
    dims = tuple(d for d in range(v.dim()) if d != dim % v.dim())
    return F.linalg_vector_norm(v, pow, dims, True)


def weight_from_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """A weight with the direction of `v` and the norm `g`."""
    return v * (g / norm_except_dim(v, 2, dim))
