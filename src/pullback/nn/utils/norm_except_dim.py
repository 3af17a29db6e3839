"""The norms by which weights are divided."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback import functions


def norm_except_dim(v: Any, pow: float = 2, dim: int = 0) -> Any:
    """The norm over all dimensions but one, shaped to be divided by; over all dimensions for dim = -1."""
    if dim == -1:
        return functions.linalg_vector_norm(v, pow)
    dims = tuple(d for d in range(v.dim()) if d != dim % v.dim())
    return functions.linalg_vector_norm(v, pow, dims, True)


def weight_from_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """A weight with the direction of `v` and the norm `g`; one operation where each norm is of a row or of a column."""
    if dim in (0, v.dim() - 1) and v.dtype.is_floating_point:
        return G.weight_norm_interface(v, g, dim)[0]
    return v * (g / norm_except_dim(v, 2, dim))


_weight_norm = weight_from_norm


def _weight_norm_interface(v: Any, g: Any, dim: int = 0) -> Any:
    """The weight, and the norms of `v`."""
    return G.weight_norm_interface(v, g, dim)
