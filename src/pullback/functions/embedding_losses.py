"""Losses on distances and similarities of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.creation import full, ones_like, zeros_like
from pullback.facts import declare
from pullback.functions.losses import _reduce, _reduction, plus_number
from pullback.modes.interception import taken_whole
from pullback.tensor.tensor import Tensor


@taken_whole
@declare(autocast="float32", functional=True)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The input where the target is 1, what it falls short of `margin` where the target is -1.

    `input` and `target` (1 or -1) broadcast. loss = x where y = 1, max(0, margin - x) where y = -1.

    >>> import pullback
    >>> pullback.nn.functional.hinge_embedding_loss(pullback.tensor([0.5, 0.5]), pullback.tensor([1., -1.]))
    tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    given: Any = input
    wanted: Any = target
    zeros = zeros_like(given)
    far = P.where(wanted != 1, P.clamp_min(full((), margin, dtype=given.dtype) - given, 0), zeros)
    near = P.where(wanted != -1, given, zeros)
    return _reduce(far + near, number)


@taken_whole
@declare(autocast="float32", functional=True)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """What `input1` falls short of ranking before (target 1) or behind (target -1) `input2` by `margin`.

    All three have one shape. loss = max(0, -target * (input1 - input2) + margin).

    >>> import pullback
    >>> pullback.nn.functional.margin_ranking_loss(pullback.tensor([1.]), pullback.tensor([3.]), pullback.tensor([1.]))
    tensor(2.)
    """
    number = _reduction(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduce(_ranking(input1, input2, target, margin), number)


def _ranking(input1: Any, input2: Any, target: Any, margin: float) -> Any:
    return P.clamp_min(plus_number(-target * (input1 - input2), margin), 0)


@taken_whole
@declare(autocast="float32", functional=True)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """One less the cosine where the target is 1, the cosine above `margin` where it is -1.

    Inputs (N, D) or (D,), target (N,) or (). loss = 1 - cos(x1, x2), or max(0, cos(x1, x2) - margin).

    >>> import pullback
    >>> x1, x2 = pullback.tensor([1., 0.]), pullback.tensor([0., 1.])
    >>> pullback.nn.functional.cosine_embedding_loss(x1, x2, pullback.tensor(1.))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    first: Any = input1
    second: Any = input2
    sign: Any = target
    if sign.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if sign.ndim == 1 and not (first.ndim == 2 and second.ndim == 2):
        raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with sizes "
                           f"{list(first.shape)} and {list(second.shape)}.")  # fmt: skip
    if sign.ndim == 0 and not (first.ndim == 1 and second.ndim == 1):
        raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with sizes "
                           f"{list(first.shape)} and {list(second.shape)}.")  # fmt: skip
    epsilon = 1e-12
    product = P.sum(first * second, sign.ndim)
    size1 = plus_number(P.sum(first * first, sign.ndim), epsilon)
    size2 = plus_number(P.sum(second * second, sign.ndim), epsilon)
    cosine = product / P.sqrt(size1 * size2)
    zeros = zeros_like(cosine)
    near = P.where(sign == 1, ones_like(cosine) - cosine, zeros)
    far = P.where(sign == -1, P.clamp_min(G.sub_scalar(cosine, margin), 0), zeros)
    return _reduce(near + far, number)


@taken_whole
@declare(autocast="float32", functional=True)
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How much the anchor is not nearer to the positive than to the negative by `margin`.

    The three tensors are (N, D), or (D,). The distances are norms of order `p` of the differences, to which `eps` is
    added; `swap` takes the distance of positive and negative where that is smaller. `reduction` is "mean", "sum" or
    "none". y = max(0, margin + d(anchor, positive) - d(anchor, negative)).

    >>> import pullback
    >>> a, n = pullback.zeros(1, 2), pullback.tensor([[3., 4.]])
    >>> pullback.nn.functional.triplet_margin_loss(a, a, n, margin=6.)
    tensor(1.0000)
    """
    number = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = P.pairwise_distance(anchor, positive, p, eps)
    far = P.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = P.minimum(far, P.pairwise_distance(positive, negative, p, eps))
    return _reduce(P.clamp_min(plus_number(near, margin) - far, 0), number)


@declare(functional=True)
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """triplet_margin_loss with a distance of one's own.

    `distance_function` d takes two tensors; it is Euclidean if not given.
    max(0, d(anchor, positive) - d(anchor, negative) + margin).

    >>> import pullback
    >>> a, b = pullback.zeros(1, 2), pullback.ones(1, 2)
    >>> pullback.nn.functional.triplet_margin_with_distance_loss(a, a, b, margin=2.0)
    tensor(0.5858)
    """
    number = _reduction(reduction)
    distance: Any = P.pairwise_distance if distance_function is None else distance_function
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = P.minimum(far, distance(positive, negative))
    return _reduce(P.clamp_min(margin + near - far, 0), number)
