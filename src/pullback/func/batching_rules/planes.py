"""Operations on the last dimensions of images: the examples are one more leading dimension, or join the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.table import aligned, expanded, fold, rule, unfold_batch
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def more_leading(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The operation does not look at leading dimensions: the examples are one more."""
    given = [expanded(level, a) for a in args]
    return level.wrap(function(*given, **{k: expanded(level, v) for k, v in kwargs.items()}))


def among_samples(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The first dimension counts samples: those of all examples together are one batch."""
    folded = [fold(expanded(level, a)) if isinstance(a, Tensor) else a for a in args]
    result = function(*folded, **kwargs)
    if isinstance(result, tuple):
        return level.wrap(tuple([unfold_batch(level, r) for r in result]))
    return level.wrap(unfold_batch(level, result))


@rule("affine_grid_generator affine_grid_back")
def affine_grid(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Grids of coordinates, or their gradient; the size counts the samples too."""
    input, size, *rest = args
    whole = (size[0] * level.batch_size, *size[1:])
    return level.wrap(unfold_batch(level, function(fold(input._physical), whole, *rest, **kwargs)))


@rule("attention_fused attention_grouped")
def attention(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Attention of (samples, heads, length, features): samples of all examples together are one batch."""
    query, key, value, mask, *rest = args
    whole = [fold(expanded(level, t)) for t in (query, key, value)]
    results = function(*whole, _folded_mask(level, mask, query, key), *rest, **kwargs)
    return level.wrap(tuple([unfold_batch(level, r) for r in results]))


def _folded_mask(level: VmapLevel, mask: Any, query: Any, key: Any) -> Any:
    if mask is None or (not level.owns(mask) and mask._array.ndim <= 2):
        return mask
    samples, heads, length = query._array.shape[:3]
    shape = (level.batch_size, samples, heads, length, key._array.shape[2])
    return fold(G.expand(aligned(level, mask, 4) if level.owns(mask) else mask, shape))
