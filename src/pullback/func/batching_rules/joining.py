"""Joining tensors: all of them become whole batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.table import expanded, ndim_of, rule, shape_of
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.dims import wrap_dim


@rule("cat")
def cat(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Join along a dimension of the examples; an empty vector joins anything."""
    tensors = list(args[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    counted = [t for t in tensors if shape_of(t) != (0,)]
    ndim = ndim_of(counted[0] if counted else tensors[0])
    if len({ndim_of(t) for t in counted}) > 1 or ndim == 0:
        return G.cat([G.select(expanded(level, t), 0, 0) for t in tensors], dim)
    chosen = counted if counted and ndim > 1 else tensors
    return level.wrap(G.cat([expanded(level, t) for t in chosen], wrap_dim(dim, ndim) + 1))


@rule("stack")
def stack(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Join along a new dimension of the examples."""
    tensors = list(args[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    return level.wrap(G.stack([expanded(level, t) for t in tensors], wrap_dim(dim, ndim_of(tensors[0]) + 1) + 1))
