"""Convolutions: examples join the samples where they share the weight, and the groups where each has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.func.batching_rules.table import bind, expanded, fold, ndim_of, rule, unfold_batch
from pullback.func.vmap_level import VmapLevel

Arguments = tuple[Any, ...]
Options = dict[str, Any]


def into_channels(level: VmapLevel, batch: Any) -> Any:
    """(examples, samples, channels, ...) as (samples, examples * channels, ...)."""
    shape = batch._array.shape
    moved = G.permute(batch, (1, 0, *range(2, len(shape))))
    return G.reshape(moved, (shape[1], shape[0] * shape[2], *shape[3:]))


def out_of_channels(level: VmapLevel, tensor: Any) -> Any:
    """The way back from `into_channels`."""
    shape = tensor._array.shape
    size = level.batch_size
    apart = G.reshape(tensor, (shape[0], size, shape[1] // size if size else 0, *shape[2:]))
    return G.permute(apart, (1, 0, *range(2, len(shape) + 1)))


@rule("convolution")
def convolution(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Convolve every example, with one weight or each with its own."""
    bound = bind("convolution", args, kwargs)
    input, weight, bias = bound["input"], bound["weight"], bound["bias"]
    rest = [bound[n] for n in ("stride", "padding", "dilation", "transposed", "output_padding", "groups")]
    if level.owns(bias) and not level.owns(weight):
        without = level.again(G.convolution, input, weight, None, *rest)
        ones = [1] * (ndim_of(input) - 2)
        return level.again(lambda r, b: G.add(r, G.view(b, (-1, *ones))), without, bias)
    if not level.owns(weight):
        return level.wrap(unfold_batch(level, G.convolution(fold(input._physical), weight, bias, *rest)))
    groups = rest[-1] * level.batch_size
    many = into_channels(level, expanded(level, input))
    biases = None if bias is None else fold(expanded(level, bias))
    result = G.convolution(many, fold(weight._physical), biases, *rest[:-1], groups)
    return level.wrap(out_of_channels(level, result))


@rule("convolution_grad_weight")
def convolution_grad_weight(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Each example's gradient of the weight: the examples are groups."""
    bound = bind("convolution_grad_weight", args, kwargs)
    shape = tuple(bound["weight_shape"])
    size = level.batch_size
    result = G.convolution_grad_weight(
        into_channels(level, expanded(level, bound["input"])),
        into_channels(level, expanded(level, bound["output_grad"])),
        (shape[0] * size, *shape[1:]), bound["stride"], bound["padding"], bound["dilation"], bound["groups"] * size,
    )  # fmt: skip
    return level.wrap(G.reshape(result, (size, *shape)))
