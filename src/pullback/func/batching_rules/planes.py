"""Operations on the last dimensions of images: the examples are one more leading dimension, or join the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import aligned, expanded, fold, rule, unfold_batch
from pullback.func.vmap_level import VmapLevel
from pullback.tensor.tensor import Tensor

Arguments = tuple[Any, ...]
Options = dict[str, Any]


@rule(
    "constant_pad_nd edge_pad edge_pad_back reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
    "replication_pad2d replication_pad3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d "
    "avg_pool2d avg_pool3d avg_pool_back max_pool2d_with_indices max_pool3d_with_indices put_in_planes take_from_planes "
    "max_unpool2d max_unpool3d resample resample_back upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d "
    "upsample_bilinear2d_aa upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d "
    "upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d upsample_trilinear3d "
    "pixel_shuffle pixel_unshuffle cdist_forward euclidean_dist"
)
def more_leading(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The operation does not look at leading dimensions: the examples are one more."""
    given = [expanded(level, a) for a in args]
    return level.wrap(function(*given, **{k: expanded(level, v) for k, v in kwargs.items()}))


@rule(
    "channel_shuffle im2col col2im grid_sampler_2d grid_sampler_3d take_points fractional_max_pool2d fractional_max_pool3d"
)
def among_samples(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The first dimension counts samples: those of all examples together are one batch."""
    folded = [fold(expanded(level, a)) if isinstance(a, Tensor) else a for a in args]
    result = function(*folded, **kwargs)
    if isinstance(result, tuple):
        return level.wrap(tuple([unfold_batch(level, r) for r in result]))
    return level.wrap(unfold_batch(level, result))


@rule("put_points")
def put_points(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Values put back at positions of images."""
    return among_samples(level, function, args, kwargs)


@rule("affine_grid_generator affine_grid_back")
def affine_grid(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Grids of coordinates, or their gradient; the size counts the samples too."""
    input, size, *rest = args
    whole = (size[0] * level.batch_size, *size[1:])
    return level.wrap(unfold_batch(level, function(fold(input._physical), whole, *rest, **kwargs)))


@rule("grid_points grid_slopes point_positions")
def along_last(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Coordinates in the last dimension."""
    return among_samples(level, function, args, kwargs)


@rule("attention_fused")
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


@rule("attention_allowed attention_bias")
def attention_mask(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Masks of attention, which the rules of its gradient use."""
    return loop(level, function, args, kwargs)
