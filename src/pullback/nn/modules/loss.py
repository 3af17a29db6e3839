"""Losses as modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.modes.user_warnings import warn_user
from pullback.nn import functional
from pullback.nn.modules.distance import PairwiseDistance
from pullback.nn.modules.linear import Linear
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


def _legacy_reduction(size_average: Any, reduce: Any) -> str:
    """The reduction that the two old arguments stand for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    warn_user(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        old_style = size_average is not None or reduce is not None
        self.reduction = _legacy_reduction(size_average, reduce) if old_style else reduction


class _WeightedLoss(_Loss):
    weight: Any

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """|input - target|.

    Input and target of one shape; `reduction` is "mean", "sum", or "none" for the shape itself. loss = |x - y|.

    >>> import pullback
    >>> pullback.nn.L1Loss()(pullback.tensor([1., 2.]), pullback.tensor([1., 4.]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)^2.

    Both have one shape. `reduction` is "mean" (of all elements), "sum" or "none".

    >>> import pullback
    >>> MSELoss()(pullback.tensor([1., 3.]), pullback.zeros(2))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative of the log-probability at the target class.

    Input (C,), (N, C) or (N, C, d1, ...) with log probabilities; target without C, of classes in [0, C). loss =
    -weight[y] * x[y]; "mean" divides by the sum of the weights, and `ignore_index` does not count.

    >>> import pullback
    >>> pullback.nn.NLLLoss()(pullback.tensor([[-1., -2.]]), pullback.tensor([1]))
    tensor(2.)
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """Old name of NLLLoss."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_user(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement.", FutureWarning
        )
        super().__init__(*args, **kwargs)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of a Poisson distribution.

    Input and target of one shape. loss = exp(x) - y * x, or x - y * ln(x + eps) without `log_input`; `full` adds
    Stirling's approximation of ln(y!).

    >>> import pullback
    >>> pullback.nn.PoissonNLLLoss()(pullback.tensor([0.]), pullback.tensor([2.]))
    tensor(1.)
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
        reduce: Any = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Any:
        return functional.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of a normal distribution.

    Input, target and variance of one shape, or the variance without the last dimension. loss = (ln(max(var, eps)) + (x
    - y) ** 2 / max(var, eps)) / 2; `full` adds ln(2 * pi) / 2.

    >>> import pullback
    >>> pullback.nn.GaussianNLLLoss()(pullback.tensor([1.]), pullback.tensor([2.]), pullback.tensor([1.]))
    tensor(0.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Any:
        return functional.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence; `input` holds log-probabilities.

    Input (log probabilities) and target (probabilities, or their logarithms with `log_target`) of one shape. loss = y *
    (ln(y) - x); "batchmean" divides the sum by the size of the batch.

    >>> import pullback
    >>> pullback.nn.KLDivLoss(reduction="sum")(pullback.tensor([-1., -1.]), pullback.tensor([0.5, 0.5]))
    tensor(0.3069)
    """

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

    Input (probabilities) and target of one shape. loss = -weight * (y * ln(x) + (1 - y) * ln(1 - x)), with logarithms
    of -100 and more.

    >>> import pullback
    >>> pullback.nn.BCELoss()(pullback.tensor([0.5]), pullback.tensor([1.]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits.

    Input (any numbers) and target of one shape. loss = -weight * (pos_weight * y * ln(sigmoid(x)) + (1 - y) * ln(1 -
    sigmoid(x))), computed without overflow.

    >>> import pullback
    >>> pullback.nn.BCEWithLogitsLoss()(pullback.tensor([0.]), pullback.tensor([1.]))
    tensor(0.6931)
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """A distance where the target is 1, a hinge of it where the target is -1.

    Input and target (1 or -1) of one shape. loss = x where y = 1, max(0, margin - x) where y = -1.

    >>> import pullback
    >>> pullback.nn.HingeEmbeddingLoss()(pullback.tensor([0.5, 0.5]), pullback.tensor([1., -1.]))
    tensor(0.5000)
    """

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """A hinge between the target classes and all others.

    Input and target (N, C) or (C,); a row of the target lists classes, up to the first -1. loss = sum over listed j and
    unlisted i of max(0, 1 - (x[j] - x[i])) / C.

    >>> import pullback
    >>> pullback.nn.MultiLabelMarginLoss()(pullback.tensor([1., 0.]), pullback.tensor([0, -1]))
    tensor(0.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared below `beta`, absolute above.

    Input and target of one shape. loss = (x - y) ** 2 / (2 * beta) where |x - y| < beta, else |x - y| - beta / 2.

    >>> import pullback
    >>> pullback.nn.SmoothL1Loss()(pullback.tensor([1., 2.]), pullback.tensor([1., 4.]))
    tensor(0.7500)
    """

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared below `delta`, delta times absolute above.

    Input and target of one shape. loss = (x - y) ** 2 / 2 where |x - y| <= delta, else delta * (|x - y| - delta / 2).

    >>> import pullback
    >>> pullback.nn.HuberLoss()(pullback.tensor([1., 2.]), pullback.tensor([1., 4.]))
    tensor(0.7500)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)).

    Input and target (1 or -1) of one shape. loss = ln(1 + exp(-y * x)).

    >>> import pullback
    >>> pullback.nn.SoftMarginLoss()(pullback.tensor([0.]), pullback.tensor([1.]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The negative log-softmax at the target class, or against target probabilities.

    The input is (N, C, *), or (C,): a number for each class, before any softmax. The target is (N, *), classes, or has
    the shape of the input, probabilities. `weight` (C,) counts classes more or less, `ignore_index` not at all;
    `label_smoothing` mixes the target with equal probabilities. y = -log(exp(x[target]) / sum over c of exp(x[c])), its
    mean, sum or each (`reduction`).

    >>> import pullback
    >>> CrossEntropyLoss()(pullback.zeros(1, 2), pullback.tensor([0]))
    tensor(0.6931)
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of what it gives, in one."""

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(
            in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype
        )
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input, self.linear.weight.reshape((*shape, self.linear.in_features)), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of each class, averaged over the classes.

    Input and target (0 or 1) of shape (N, C) or (C,). loss = -mean over c of weight[c] * (y * ln(sigmoid(x)) + (1 - y)
    * ln(sigmoid(-x))).

    >>> import pullback
    >>> pullback.nn.MultiLabelSoftMarginLoss()(pullback.tensor([0., 0.]), pullback.tensor([1., 0.]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine where the target is 1, a hinge of the cosine where it is -1.

    Inputs (N, D) or (D,), target (N,) or (). loss = 1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y =
    -1.

    >>> import pullback
    >>> pullback.nn.CosineEmbeddingLoss()(pullback.tensor([1., 0.]), pullback.tensor([0., 1.]), pullback.tensor(1.))
    tensor(1.)
    """

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return functional.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """A hinge on which of two inputs is larger.

    Inputs and target (1 or -1) of one shape. loss = max(0, -y * (x1 - x2) + margin).

    >>> import pullback
    >>> pullback.nn.MarginRankingLoss()(pullback.tensor([1.]), pullback.tensor([3.]), pullback.tensor([1.]))
    tensor(2.)
    """

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return functional.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """A hinge between the target class and each other.

    Input (N, C) or (C,), target (N,) or () of classes. loss = sum over i != y of max(0, weight[y] * (margin - x[y] +
    x[i])) ** p / C.

    >>> import pullback
    >>> pullback.nn.MultiMarginLoss()(pullback.tensor([0., 0.]), pullback.tensor(1))
    tensor(0.5000)
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None,
        reduce: Any = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functional.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """A hinge on the distances of an anchor to a positive and a negative example.

    Three inputs (N, D) or (D,). loss = max(0, |anchor - positive| - |anchor - negative| + margin), distances by the
    p-norm; `swap` takes the smaller of the distances from anchor and positive to negative.

    >>> import pullback
    >>> pullback.nn.TripletMarginLoss()(pullback.tensor([0., 0.]), pullback.tensor([3., 4.]), pullback.tensor([6., 8.]))
    tensor(0.)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: Any = None,
        reduce: Any = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return functional.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """A TripletMarginLoss with a distance of one's own."""

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function: Any = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class CTCLoss(_Loss):
    """Connectionist temporal classification: the likelihood of a label sequence over all alignments.

    Log probabilities (T, N, C) or (T, C), targets (N, S) or all in a row, and the lengths of both. loss = -ln(sum of
    the probabilities of all paths that give the target once repetitions and `blank` are left out).

    >>> import pullback
    >>> scores = pullback.full((2, 1, 2), -0.6931)
    >>> pullback.nn.CTCLoss(reduction="sum")(scores, pullback.tensor([[1]]), pullback.tensor([2]), pullback.tensor([1]))
    tensor(0.2876)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Any:
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
