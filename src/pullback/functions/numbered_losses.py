"""Losses as PyTorch's top-level namespace has them: the reduction is a number, 0 for none, 1 for mean, 2 for sum.

Without one nothing is reduced. Those of `nn.functional` take names, reduce to the mean by default, and check shapes.
"""

from __future__ import annotations

from typing import Any

import pullback.functions as P
from pullback.functions.embedding_losses import _ranking
from pullback.functions.losses import _reduce
from pullback.tensor.tensor import Tensor

_NAMES = {1: "mean", 2: "sum"}


def _name(reduction: int) -> str:
    return _NAMES.get(reduction, "none")


def public_binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Any:
    """The cross entropy of the sigmoid of `input`; positive targets count `pos_weight` times."""
    return P.binary_cross_entropy_with_logits(input, target, weight, reduction=_name(reduction), pos_weight=pos_weight)


def public_kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Any:
    """The Kullback-Leibler divergence of the distribution with logarithms `input` from `target`."""
    number = reduction if reduction in _NAMES else 0
    return P.kl_div(input, target, reduction=number, log_target=log_target)


def public_poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """The negative log likelihood of counts with a Poisson distribution; `full` adds Stirling's term."""
    return P.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_name(reduction))


def public_hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Any:
    """The input where the target is 1, what it falls short of `margin` where the target is -1."""
    return P.hinge_embedding_loss(input, target, margin, reduction=_name(reduction))


def public_margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Any:
    """What `input1` falls short of ranking before (target 1) or behind (target -1) `input2` by `margin`."""
    return _reduce(_ranking(input1, input2, target, margin), reduction if reduction in _NAMES else 0)


def public_triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Any:  # fmt: skip
    """How much the anchor is not nearer to the positive than to the negative by `margin`."""
    return P.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_name(reduction))


def public_cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Any:
    """One less the cosine where the target is 1, the cosine above `margin` where it is -1."""
    return P.cosine_embedding_loss(input1, input2, target, margin, reduction=_name(reduction))


def public_ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Minus the log likelihood of label sequences over all their alignments with the inputs."""
    return P.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
