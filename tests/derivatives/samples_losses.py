"""Samples of losses."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal, uniform

F: Any = pullback
L: Any = pullback.nn.functional

CLASSES = F.tensor([0, 3, 2])
IGNORED = F.tensor([0, -100, 2])
SIGNS = F.tensor([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], dtype=F.float64)
LABELS = F.tensor([[1, 2], [2, 2]])
WEIGHTS = F.tensor([0.5, 1.0, 2.0, 0.25], dtype=F.float64)


def reductions(name: str, call: Any, inputs: Any, **options: Any) -> list[Sample]:
    """A loss with each of its reductions."""
    return [
        Sample(f"{name}-{kind}", lambda *xs, kind=kind: call(*xs, reduction=kind), inputs, **options)
        for kind in ("none", "mean", "sum")
    ]


SAMPLES = [
    *reductions("mse_loss", L.mse_loss, (normal(3, 4), normal(3, 4))),
    *reductions("l1_loss", L.l1_loss, (normal(3, 4), normal(3, 4))),
    *reductions("smooth_l1_loss", L.smooth_l1_loss, (normal(3, 4), normal(3, 4))),
    *reductions("huber_loss", L.huber_loss, (normal(3, 4), normal(3, 4))),
    *reductions("nll_loss", lambda x, reduction: L.nll_loss(x, CLASSES, WEIGHTS, reduction=reduction), (normal(3, 4),)),
    *reductions(
        "cross_entropy", lambda x, reduction: L.cross_entropy(x, IGNORED, reduction=reduction), (normal(3, 4),)
    ),
    Sample(
        "cross_entropy-smoothed", lambda x: L.cross_entropy(x, IGNORED, WEIGHTS, label_smoothing=0.1), (normal(3, 4),)
    ),
    Sample("cross_entropy-probabilities", L.cross_entropy, (normal(3, 4), uniform(0.1, 0.9, 3, 4))),
    Sample(
        "cross_entropy-images", lambda x: L.cross_entropy(x, F.zeros(2, 3, 2, dtype=F.int64)), (normal(2, 4, 3, 2),)
    ),
    *reductions("binary_cross_entropy", L.binary_cross_entropy, (uniform(0.1, 0.9, 3, 4), uniform(0.1, 0.9, 3, 4))),
    *reductions("bce_with_logits", L.binary_cross_entropy_with_logits, (normal(3, 4), uniform(0.1, 0.9, 3, 4))),
    Sample(
        "bce_with_logits-weights",
        lambda x, y: L.binary_cross_entropy_with_logits(x, y, WEIGHTS, pos_weight=WEIGHTS + 1),
        (normal(3, 4), uniform(0.1, 0.9, 3, 4)),
    ),
    Sample("kl_div", lambda x, y: L.kl_div(x, y, reduction="batchmean"), (normal(3, 4), uniform(0.1, 0.9, 3, 4))),
    Sample("poisson_nll_loss", lambda x: L.poisson_nll_loss(x, F.ones(3, 4, dtype=F.float64)), (normal(3, 4),)),
    Sample("gaussian_nll_loss", L.gaussian_nll_loss, (normal(3, 4), normal(3, 4), uniform(0.5, 2, 3, 4))),
    Sample("hinge_embedding_loss", lambda x: L.hinge_embedding_loss(x, SIGNS), (normal(3, 2),)),
    Sample("margin_ranking_loss", lambda x, y: L.margin_ranking_loss(x, y, SIGNS, 0.3), (normal(3, 2), normal(3, 2))),
    Sample(
        "cosine_embedding_loss", lambda x, y: L.cosine_embedding_loss(x, y, SIGNS[:, 0]), (normal(3, 2), normal(3, 2))
    ),
    Sample("triplet_margin_loss", L.triplet_margin_loss, (normal(3, 4), normal(3, 4), normal(3, 4))),
    *reductions(
        "soft_margin_loss", lambda x, reduction: L.soft_margin_loss(x, SIGNS, reduction=reduction), (normal(3, 2),)
    ),
    *reductions(
        "multi_margin_loss",
        lambda x, reduction: L.multi_margin_loss(x, CLASSES, 2, reduction=reduction),
        (normal(3, 4),),
    ),
    Sample("multi_margin_loss-1", lambda x: L.multi_margin_loss(x, CLASSES, weight=WEIGHTS), (normal(3, 4),)),
    *reductions(
        "multilabel_margin_loss",
        lambda x, reduction: L.multilabel_margin_loss(x, F.tensor([[0, 1, -1], [2, -1, 0]]), reduction=reduction),
        (normal(2, 3),),
    ),
    Sample("multilabel_soft_margin_loss", L.multilabel_soft_margin_loss, (normal(3, 4), uniform(0, 1, 3, 4))),
    *reductions(
        "ctc_loss",
        lambda x, reduction: L.ctc_loss(F.log_softmax(x, 2), LABELS, (5, 4), (2, 1), reduction=reduction),
        (normal(5, 2, 3),),
        second_order=False,
        forward=False,
    ),
]
