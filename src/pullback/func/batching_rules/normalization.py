"""Normalization: examples are samples where samples do not meet, and channels where they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.convolutions import into_channels, out_of_channels
from pullback.func.batching_rules.table import bind, expanded, fold, ndim_of, rule, unfold_batch
from pullback.func.vmap_level import VmapLevel

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def _scale_and_shift(result: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        result = G.mul(result, weight)
    return result if bias is None else G.add(result, bias)


@rule("native_layer_norm")
def layer_norm(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Normalize over the last dimensions; weights of the examples' own are applied afterwards."""
    input, shape, weight, bias, eps = args
    if level.owns(weight) or level.owns(bias):
        result, mean, rstd = level.again(G.native_layer_norm, input, shape, None, None, eps)
        return level.again(_scale_and_shift, result, weight, bias), mean, rstd
    return level.wrap(G.native_layer_norm(input._physical, shape, weight, bias, eps))


@rule("rms_norm_fused rms_norm_rounded")
def rms_norm(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Divide by the root mean square over the last dimensions."""
    input, shape, weight, eps = args
    if level.owns(weight):
        return level.again(_scale_and_shift, level.again(function, input, shape, None, eps), weight, None)
    return level.wrap(function(input._physical, shape, weight, eps))


@rule("native_group_norm")
def group_norm(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Normalize within groups of channels: examples are more samples."""
    bound = bind("native_group_norm", args, kwargs)
    input, weight, bias = bound["input"], bound["weight"], bound["bias"]
    rest = (bound["C"], bound["HxW"], bound["group"], bound["eps"])
    if level.owns(weight) or level.owns(bias):
        result, mean, rstd = level.again(G.native_group_norm, input, None, None, bound["N"], *rest)
        ones = [1] * (ndim_of(input) - 2)
        shaped = [None if p is None else level.again(G.view, p, (-1, *ones)) for p in (weight, bias)]
        return level.again(_scale_and_shift, result, *shaped), mean, rstd
    results = G.native_group_norm(fold(input._physical), weight, bias, bound["N"] * level.batch_size, *rest)
    return level.wrap(tuple([unfold_batch(level, r) for r in results]))


def _own(level: VmapLevel, value: Any) -> Any:
    """A vector over channels as one over the channels of all examples."""
    return None if value is None else fold(expanded(level, value))


@rule("batch_norm_training")
def batch_norm_training(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Normalize over the samples of each example: examples are more channels."""
    input, weight, bias, eps = args
    many = into_channels(level, expanded(level, input))
    results = G.batch_norm_training(many, _own(level, weight), _own(level, bias), eps)
    return level.wrap(_apart(level, results))


@rule("batch_norm_evaluation")
def batch_norm_evaluation(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Normalize with given statistics."""
    input, weight, bias, mean, variance, eps = args
    many = into_channels(level, expanded(level, input))
    given = [_own(level, v) for v in (weight, bias, mean, variance)]
    return level.wrap(out_of_channels(level, G.batch_norm_evaluation(many, *given, eps)))


def _apart(level: VmapLevel, results: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([unfold_batch(level, r) if r._array.ndim == 1 else out_of_channels(level, r) for r in results])
