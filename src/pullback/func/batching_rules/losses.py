"""Losses: element by element for the whole batch, then reduced within each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.func.batched_tensor import innermost
from pullback.func.batching_rules.elementwise import elementwise
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.table import bind, call, expanded, fold, ndim_of, rule, unfold_batch
from pullback.func.vmap_level import VmapLevel
from pullback.functions.losses import _gaussian_nll

Arguments = tuple[Any, ...]
Options = dict[str, Any]

NONE, MEAN = 0, 1


def _reduced(losses: Any, reduction: int) -> Any:
    if reduction == NONE:
        return losses
    return G.mean_all(losses) if reduction == MEAN else G.sum_all(losses)


@rule("mse_loss huber_loss smooth_l1_loss soft_margin_loss binary_cross_entropy binary_cross_entropy_with_logits")
def elementwise_loss(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The losses of all elements, then each example's own mean or sum."""
    name = function.__name__
    bound = bind(name, args, kwargs)
    reduction = bound.get("reduction", MEAN)

    def unreduced(*arguments: Any, **options: Any) -> Any:
        named = {**bind(name, arguments, options), "reduction": NONE}
        return call(function, name, named)

    unreduced.__name__ = name
    losses = elementwise(level, unreduced, args, kwargs)
    return level.again(_reduced, losses, reduction)


@rule("nll_loss nll_loss2d")
def nll_loss(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The losses of all samples of all examples, then each example's own weighted mean or sum."""
    bound = bind(function.__name__, args, kwargs)
    input, target, weight = bound["input"], bound["target"], bound.get("weight")
    if level.owns(weight):
        return loop(level, function, args, kwargs)
    reduction, ignored = bound.get("reduction", MEAN), bound.get("ignore_index", -100)
    scores, classes = expanded(level, input), expanded(level, target)
    if ndim_of(input) == 1:
        losses = level.wrap(function(scores, classes, weight, NONE, ignored))
    else:
        losses = level.wrap(unfold_batch(level, function(fold(scores), fold(classes), weight, NONE, ignored)))
    if reduction != MEAN:
        return level.again(_reduced, losses, reduction)
    return level.again(_weighted_mean, losses, level.wrap(classes), weight, ignored)


def _weighted_mean(losses: Any, target: Any, weight: Any, ignored: int) -> Any:
    return G.div(G.sum_all(losses), G.sum_all(_weights(losses.dtype, target, weight, ignored)))


def _weights(dtype: Any, target: Any, weight: Any, ignored: int) -> Any:
    """The weight of each sample: that of its class, zero where it is ignored."""
    counted = G.ne(target, ignored)
    if weight is None:
        return functions.to(counted, dtype)
    places = G.where(counted, target, 0)
    return G.mul(G.index(weight, [places], (0,)), functions.to(counted, dtype))


@rule("dist")
def dist(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """The norm of the difference."""
    bound = bind("dist", args, kwargs)
    p = bound.get("p", 2)
    return level.again(lambda a, b: G.norm_dim(G.sub(a, b), p, None, False), bound["input"], bound["other"])


@rule("nll_loss_grad")
def nll_loss_grad(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Gradients of the samples of all examples; that of a mean or sum is first handed to each sample."""
    bound = bind("nll_loss_grad", args, kwargs)
    grad, target, weight = bound["input"], bound["target"], bound.get("weight")
    if level.owns(weight):
        return loop(level, function, args, kwargs)
    shape, reduction, ignored = tuple(bound["shape"]), bound["reduction"], bound["ignore_index"]
    if reduction != NONE:
        grad = level.again(_of_each_sample, grad, target, weight, reduction, ignored)
    grads, classes = expanded(level, grad), expanded(level, target)
    if len(shape) == 1:
        return level.wrap(function(grads, classes, weight, (level.batch_size, *shape), NONE, ignored))
    folded = (level.batch_size * shape[0], *shape[1:])
    return level.wrap(unfold_batch(level, function(fold(grads), fold(classes), weight, folded, NONE, ignored)))


def _of_each_sample(grad: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    """The gradient of a mean or sum as those of the samples' losses."""
    if reduction == MEAN:
        grad = G.div(grad, G.sum_all(_weights(grad.dtype, target, weight, ignored)))
    return functions.expand(grad, tuple(target._array.shape))


@rule("gaussian_nll_loss")
def gaussian_nll_loss(level: VmapLevel, function: Callable[..., Any], args: Arguments, kwargs: Options) -> Any:
    """Its operations on the batch; a negative variance in any example is refused."""

    def composed(
        input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> Any:
        return _gaussian_nll(input, target, var, full, eps, reduction, _any_is_negative)

    return level.again(composed, *args, **kwargs)


def _any_is_negative(variance: Any) -> bool:
    return bool((innermost(variance)._array < 0).any())
