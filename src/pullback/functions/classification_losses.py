"""Losses of classification."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.backend.dtype import (
    default_float,
    int64,
    is_float_or_complex,
    promote_for_subtraction,
    scalar_type_name,
    uint8,
)
from pullback.facts import declare
from pullback.functions.conversion import to
from pullback.functions.losses import _broadcast, _one_dtype, _reduce, _reduction, _refuse_cast
from pullback.graph.history import refuse_history
from pullback.graph.tangents import levels_of
from pullback.modes.interception import taken_whole
from pullback.modes.switches import switches
from pullback.tensor.arguments import do_not_broadcast
from pullback.tensor.tensor import Tensor


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log probability that `input` gives to the classes in `target`.

    `input` is (C,), (N, C) or (N, C, d1, ...) with log probabilities, `target` (int64) the same without C; `weight`
    is (C,). loss = -weight[class] * input[class]; "mean" divides by the sum of weights.
    """
    return _nll_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def _nll_loss(input: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    given, wanted = input._array, target._array
    ndim = given.ndim
    plain = (
        ndim == 2 and wanted.ndim == 1 and wanted.shape[0] == given.shape[0] and wanted.dtype == int64.numpy_dtype
        and given.dtype.kind == "f"
    )  # fmt: skip
    if weight is not None or not plain:
        _check_target(input, target, weight)
        refuse_history("nll_loss_forward" if ndim < 3 else "nll_loss2d_forward", weight=weight)
    if ndim < 3:
        if ndim == 1 and target.ndim == 1:
            target = G.reshape(target, ())
        return G.nll_loss(input, target, weight, reduction, ignore_index)
    if ndim == 4:
        return G.nll_loss2d(input, target, weight, reduction, ignore_index)
    shape = tuple(input.shape)
    image = P.reshape(input, (shape[0], shape[1], 1, -1) if 0 not in shape else (shape[0], shape[1], 0, 0))
    flat = P.reshape(target, (shape[0], 1, -1) if 0 not in shape else (shape[0], 0, 0))
    result = G.nll_loss2d(image, flat, weight, reduction, ignore_index)
    return P.reshape(result, (shape[0], *shape[2:])) if reduction == 0 else result


def _check_target(input: Any, target: Any, weight: Any) -> None:
    """Refuse targets that do not name one class per sample."""
    if input.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    if input.ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if input.ndim != 1 and (target.ndim == 0 or input.shape[0] != target.shape[0]):
        got = target.shape[0] if target.ndim else "none: it is a scalar"
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({got}).")
    if input.ndim > 2 and tuple(target.shape[1:]) != tuple(input.shape[2:]):
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
    if input.ndim == 2 and target.ndim != 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported (got target of shape {list(target.shape)})"
        )
    if not input.is_floating_point():
        raise NotImplementedError(
            f"\"nll_loss_out_frame\" not implemented for '{scalar_type_name(input._array.dtype)}'"
        )
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type_name(input._array.dtype)} but found "
            f"{scalar_type_name(weight._array.dtype)}: the weights must have the dtype of the input"
        )
    if target.dtype not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_type_name(target._array.dtype)}")
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


@taken_whole
@declare(autocast="float32", functional=True)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Minus the log probability that softmax of `input` gives to `target`: classes, or probabilities of classes.

    `input` is (C,), (N, C) or (N, C, d1, ...) with scores of C classes; `target` holds classes (int64), of the same
    shape without C, or probabilities of the input's shape. `weight` (C,) counts classes differently, `ignore_index`
    counts not at all. loss = -ln(exp(x[class]) / sum over c of exp(x[c])); "mean" divides by the sum of weights.

    >>> import pullback
    >>> pullback.nn.functional.cross_entropy(pullback.zeros(1, 4), pullback.tensor([2]))
    tensor(1.3863)
    """
    number = _reduction(reduction, size_average, reduce)
    if label_smoothing > 1.0:  # PyTorch takes one below 0 for none
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    given: Any = input
    class_dim = 0 if given.ndim <= 1 else 1
    if given._array.shape == target._array.shape and given.ndim:
        return _cross_entropy_of_probabilities(given, target, weight, number, ignore_index, label_smoothing)
    logarithms = G.log_softmax(given, class_dim)
    if label_smoothing > 0:
        return _smoothed(logarithms, target, weight, number, ignore_index, label_smoothing)
    return _nll_loss(logarithms, target, weight, number, ignore_index)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """cross_entropy of the logits that a linear layer gives."""
    _check_linear(input, linear_weight, target, linear_bias, ignore_index)
    # The weight is (classes, ..., features): the dimensions between stand behind the classes in the logits.
    classes = tuple(linear_weight.shape[:-1])
    flat = linear_weight if len(classes) == 1 else P.reshape(linear_weight, (-1, linear_weight.shape[-1]))
    bias = linear_bias if linear_bias is None or len(classes) == 1 else P.reshape(linear_bias, (-1,))
    logits: Any = P.linear(input, flat, bias)
    if len(classes) > 1:
        logits = P.reshape(logits, (*logits.shape[:-1], *classes))
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def _check_linear(
    input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, ignore_index: int | None
) -> None:
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    features = (input.shape[-1], linear_weight.shape[-1])
    if features[0] != features[1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features[0]} and {features[1]}, respectively"
        )
    shape = tuple(linear_weight.shape)
    if len(shape) > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, (N, {shape[-1]}), got "
            f"unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {shape[:-1]}, got {tuple(linear_bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


def _by_class(weight: Any, ndim: int) -> Any:
    """The classes' weights in a shape that multiplies (N, C, ...)."""
    return weight if ndim <= 1 else P.reshape(weight, (1, -1, *(1,) * (ndim - 2)))


def _cross_entropy_of_probabilities(
    input: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    if not target.is_floating_point():
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{scalar_type_name(target._array.dtype)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    class_dim = 0 if input.ndim == 1 else 1
    classes = input.shape[class_dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    logarithms = G.log_softmax(input, class_dim)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    weighted = logarithms * target
    if weight is not None:
        weighted = weighted * _by_class(weight, input.ndim)
    if reduction == 0:
        return -P.sum(weighted, class_dim)
    total = -P.sum(weighted)
    if reduction == 2:
        return total
    return G.div_scalar(total, 1 if input.ndim == 1 else input.numel() // classes)


def _smoothed(
    logarithms: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    """The loss of targets that are mixed with the uniform distribution."""
    loss = _nll_loss(logarithms, target, weight, reduction, ignore_index)
    class_dim = 0 if logarithms.ndim == 1 else 1
    classes = logarithms.shape[class_dim]
    spread = logarithms if weight is None else logarithms * _by_class(weight, logarithms.ndim)
    ignored = target == ignore_index
    spread = P.masked_fill(-P.sum(spread, class_dim), ignored, 0.0)
    if reduction == 1:
        kept = P.logical_not(ignored)
        if weight is None:
            spread = P.sum(spread) / P.to(P.sum(kept), logarithms.dtype)
        else:
            places = P.masked_fill(target, ignored, 0)
            counted = P.masked_fill(
                P.reshape(P.index_select(weight, 0, P.reshape(places, (-1,))), target.shape), ignored, 0
            )
            spread = P.sum(spread) / P.sum(counted)
    elif reduction == 2:
        spread = P.sum(spread)
    return loss * (1 - label_smoothing) + spread * (label_smoothing / classes)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The cross entropy of probabilities of two classes.

    `input` (probabilities) and `target` (0 to 1) have one shape, with which `weight` broadcasts. `reduction` is
    "mean" (over all elements), "sum" or "none" (the losses themselves). loss = -weight * (target * ln(input) + (1 -
    target) * ln(1 - input)), the logarithms no less than -100.
    """
    number = _reduction(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = P.expand(weight, tuple(input.shape))
        if weight._requires_grad and weight._bottom is not weight:  # under vmap it is a factor like others
            return _reduce(G.binary_cross_entropy(input, target, None, 0) * weight, number)
        refuse_history("binary_cross_entropy", weight=weight)
    return G.binary_cross_entropy(input, target, weight, number)


def _check_factors(name: str, input: Tensor, factors: Tensor) -> None:
    """Weights must leave shape and dtype of the losses as they are."""
    if name == "pos_weight" and factors._array.dtype == bool:
        promote_for_subtraction(factors._array, 1)
    _refuse_cast(factors._array.dtype if factors.is_complex() else input._array.dtype, input._array.dtype)
    shape, own = factors._array.shape, input._array.shape
    if shape != own:
        if differ := do_not_broadcast((own, shape)):
            raise differ
        common = tuple(P.broadcast_shapes(own, shape))
        if common != own:
            raise RuntimeError(f"output with shape {list(own)} doesn't match the broadcast shape {list(common)}")


@taken_whole
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of the sigmoid of `input`; positive targets count `pos_weight` times.

    `input` (any numbers) and `target` (0 to 1) have one shape, with which `weight` and `pos_weight` broadcast.
    `reduction` is "mean" (over all elements), "sum" or "none" (the losses themselves). loss = -weight * (pos_weight *
    target * ln(s) + (1 - target) * ln(1 - s)) with s = sigmoid(input), computed without overflow.

    >>> import pullback
    >>> pullback.nn.functional.binary_cross_entropy_with_logits(pullback.zeros(3), pullback.ones(3))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{scalar_type_name(input._array.dtype)}'")
    for name, factors in (("weight", weight), ("pos_weight", pos_weight)):
        if factors is not None:
            _check_factors(name, input, factors)
    if target.dtype is input.dtype:
        return _logits_loss(input, target, weight, pos_weight, number)
    promote_for_subtraction(target._array, 1)
    _refuse_cast(input._array.dtype, target._array.dtype)
    given, wanted = _one_dtype(input, target)
    return P.to(_logits_loss(given, wanted, weight, pos_weight, number), target.dtype)


def _logits_loss(input: Any, target: Any, weight: Tensor | None, pos_weight: Tensor | None, reduction: int) -> Any:
    """The loss in one operation; in steps where transforms differentiate the weights, which are constants elsewhere."""
    weights = [factor for factor in (weight, pos_weight) if factor is not None]
    if not switches.transforms or not any(w._requires_grad or levels_of(w._bottom) for w in weights):
        refuse_history("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
        return G.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
    losses = P.logsigmoid(input)
    if pos_weight is not None:
        losses = losses * ((pos_weight - 1) * target + 1)
    losses = (1 - target) * input - losses
    return _reduce(losses if weight is None else losses * weight, reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The slack by which other classes come within `margin` of the target's class.

    `input` is (N, C) or (C,), `target` (N,) or () of classes. loss = sum over i != y of max(0, weight[y] * (margin -
    x[y] + x[i])) ** p / C.

    >>> import pullback
    >>> pullback.nn.functional.multi_margin_loss(pullback.tensor([0., 0.]), pullback.tensor(1))
    tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.shape[0] != input.shape[-1]:
        raise RuntimeError(f"inconsistent weight size, expected {input.shape[-1]} but got {list(weight.shape)}")
    samples = input.shape[0] if input.ndim > 1 else 1
    if (target.ndim > 1 or target.numel() != samples) and input.shape[-1:] != (0,):  # which is refused before
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    refuse_history("multi_margin_loss", weight=weight)
    return G.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The slack by which classes outside of the target come within 1 of those inside.

    `input` is (N, C) or (C,); a row of `target` lists classes up to the first -1. For each row the sum of
    max(0, 1 - (x[j] - x[i])) / C over the classes j that are listed and i that are not, then as `reduction` says.

    >>> import pullback
    >>> pullback.nn.functional.multilabel_margin_loss(pullback.tensor([0.5, 1.0]), pullback.tensor([0, -1]))
    tensor(0.7500)
    """
    number = _reduction(reduction, size_average, reduce)
    return G.multilabel_margin_loss(input, target, number)


@declare(functional=True, lenient=True)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes of the cross entropy of each class's sigmoid.

    Both are (N, C), the target of zeros and ones. -(y * log(sigmoid(x)) + (1 - y) * log(sigmoid(-x))) * weight, in the mean.

    >>> import pullback
    >>> pullback.nn.functional.multilabel_soft_margin_loss(pullback.zeros(1, 2), pullback.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    given: Any = input
    wanted: Any = target
    values = -(wanted * P.logsigmoid(given) + (1 - wanted) * P.logsigmoid(-given))
    if weight is not None:
        values = values * weight
    return _reduce(P.sum(values, -1) / given.shape[-1], number)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input)) for targets of 1 and -1.

    Both have one shape; `reduction` is "mean", "sum" or "none".

    >>> import pullback
    >>> pullback.nn.functional.soft_margin_loss(pullback.tensor([0.0, 0.0]), pullback.tensor([1.0, -1.0]))
    tensor(0.6931)
    """
    if input._array.dtype == bool:
        G.neg(input)  # which refuses it
    own = input.dtype
    given, wanted = _broadcast(input, target)
    if given._array.shape != input._array.shape:
        raise RuntimeError(
            f"output with shape {list(input._array.shape)} doesn't match the broadcast shape {list(given._array.shape)}"
        )
    computed = given._array.dtype
    _refuse_cast(computed if is_float_or_complex(computed) else default_float(), input._array.dtype)
    refuse_history("soft_margin_loss", target=target)
    return G.soft_margin_loss(to(given, own), to(wanted, own), _reduction(reduction, size_average, reduce))
