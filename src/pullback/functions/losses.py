"""Losses of regression, and what all losses share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.backend.dtype import (
    bool_,
    can_cast,
    from_numpy_dtype,
    get_default_dtype,
    is_float_or_complex,
    promote_for_subtraction,
    result_dtype,
    scalar_type_name,
)
from pullback.creation import full_like
from pullback.facts import declare
from pullback.functions.conversion import to
from pullback.functions.value_checks import are_all_true
from pullback.modes.interception import interceptable, taken_whole
from pullback.modes.switches import switched
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, TensorBase
from pullback.typing import DType

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(reduction: Any, size_average: Any = None, reduce: Any = None) -> int:
    """The number of a reduction; the two older flags are still understood."""
    if size_average is not None or reduce is not None:
        size_average = True if size_average is None else size_average
        reduce = True if reduce is None else reduce
        reduction = "none" if not reduce else "mean" if size_average else "sum"
        warn_user(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    number = _REDUCTIONS.get(reduction)
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return number


def plus_number(values: Any, number: float) -> Any:
    """`values + number`, recorded as PyTorch's own code records it (AddBackward1); integers become floats."""
    return G.add_scalar(_as_floats(values), float(number))


def _as_floats(values: Any) -> Any:
    return values if is_float_or_complex(values._array.dtype) else to(values, get_default_dtype())


def _reduce(values: Any, reduction: int) -> Any:
    return values if reduction == 0 else P.mean(values) if reduction == 1 else P.sum(values)


def _matched(input: Tensor, target: Tensor) -> Any:
    """Both broadcast to their common shape and in their common dtype, with a warning if the shapes differ."""
    if input._array.shape != target._array.shape:
        warn_user(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )
        return _broadcast(input, target)
    return _one_dtype(input, target)


def _broadcast(*tensors: Tensor) -> Any:
    """The tensors expanded to their common shape, in their common dtype."""
    return _one_dtype(*P.broadcast_tensors(*tensors))


def _refuse_cast(result: DType, wanted: DType) -> None:
    """Refuse results that are computed in a dtype of a higher category than the tensor that they are written to."""
    if result != wanted and not can_cast(result, wanted):
        raise RuntimeError(
            f"result type {scalar_type_name(result)} can't be cast to the desired output type {scalar_type_name(wanted)}"
        )


def _one_dtype(*tensors: Any) -> Any:
    first = tensors[0]._array.dtype
    if all(t._array.dtype == first for t in tensors):
        return tensors
    common = from_numpy_dtype(result_dtype([t._array for t in tensors]))
    return [to(t, common) for t in tensors]


def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The squared distance.

    `input` and `target` have one shape. `reduction` is "mean" (over all elements), "sum" or "none" (the losses
    themselves). loss = (input - target) ** 2.

    >>> import pullback
    >>> pullback.nn.functional.mse_loss(pullback.tensor([1., 3.]), pullback.tensor([1., 1.]))
    tensor(2.)
    """
    number = _reduction(reduction, size_average, reduce)
    a, b = _matched(input, target)
    if weight is not None:
        return _weighted((a - b) ** 2, weight, number)
    return G.mse_loss(a, b, number)


def _weighted(values: Any, weight: Tensor, reduction: int) -> Any:
    """Losses times their weights; their mean is divided by the sum of the weights."""
    if tuple(weight.shape) != tuple(values.shape):
        raise ValueError("Weights and input must have the same size.")
    weighted = values * weight
    if reduction == 1:
        return P.sum(weighted) / P.sum(weight)
    return _reduce(weighted, reduction)


@taken_whole
@declare(autocast="float32", functional=True)
def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The absolute distance.

    `input` and `target` have one shape. `reduction` is "mean" (over all elements), "sum" or "none" (the losses
    themselves). loss = |input - target|.
    """
    number = _reduction(reduction, size_average, reduce)
    if bool_ in (input.dtype, target.dtype):
        promote_for_subtraction(input._array, target._array)
    a, b = _matched(input, target)
    values = P.abs(a - b)
    return _weighted(values, weight, number) if weight is not None else _reduce(values, number)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Half the squared distance over `beta` where it is below `beta`, the distance less half of `beta` elsewhere.

    `input` and `target` have one shape. `reduction` is "mean" (over all elements), "sum" or "none" (the losses
    themselves). With d = |input - target|: loss = d ** 2 / (2 * beta) if d < beta else d - beta / 2.
    """
    number = _reduction(reduction, size_average, reduce)
    a, b = _matched(input, target)
    if beta == 0.0:
        if bool_ in (input.dtype, target.dtype):
            promote_for_subtraction(input._array, target._array)
        return _reduce(P.abs(a - b), number)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return G.smooth_l1_loss(a, b, number, beta)


@taken_whole
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared distance where it is below `delta`, growing linearly from there.

    With d = |input - target|: d**2 / 2 where d < delta, else delta * (d - delta / 2). The mean of these, their sum, or with
    `reduction="none"` each of them, times `weight` where that is given.

    >>> import pullback
    >>> pullback.nn.functional.huber_loss(pullback.tensor([0.5, 3.0]), pullback.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    number = _reduction(reduction)
    a, b = _matched(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _refuse_cast(a._array.dtype, input._array.dtype)
    if weight is not None:
        return _reduce(G.huber_loss(a, b, 0, delta) * weight, number)
    result = G.huber_loss(a, b, number, delta)
    return result if a.dtype is input.dtype else to(result, input.dtype)


@taken_whole
@declare(autocast="float32", functional=True)
def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: Any = "mean",
    log_target: bool = False,
) -> Tensor:  # fmt: skip
    """The Kullback-Leibler divergence of the distribution with logarithms `input` from `target`.

    `input` (logarithms) and `target` (probabilities, or logarithms with `log_target`) broadcast. loss = target *
    (ln(target) - input); `reduction` "batchmean" divides the sum by the first size, "mean" by the number of elements.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warn_user(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition."
        )
    by_batch = reduction == "batchmean"
    number = (
        reduction if isinstance(reduction, int) else _reduction("sum" if by_batch else reduction, size_average, reduce)
    )
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    given: Any = target
    second = given - input if log_target else given * input  # first, as it is recorded in PyTorch
    values = P.exp(given) * second if log_target else P.xlogy(given, given) - second
    total = _reduce(values, number)
    return total / input._array.shape[0] if by_batch and input._array.ndim else total


@taken_whole
@declare(autocast="float32", functional=True)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None,
    eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log likelihood of counts with a Poisson distribution; `full` adds Stirling's term.

    `input` and `target` have one shape. loss = exp(x) - y * x, or x - y * ln(x + eps) without `log_input`.

    >>> import pullback
    >>> pullback.nn.functional.poisson_nll_loss(pullback.tensor([0.]), pullback.tensor([2.]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    given: Any = input
    wanted: Any = target
    second = wanted * given if log_input else wanted * P.log(plus_number(given, eps))  # recorded first, as in PyTorch
    values = P.exp(given) - second if log_input else given - second
    if full:
        last = G.mul_scalar(P.log(G.mul_scalar(_as_floats(wanted), 2 * math.pi)), 0.5)
        stirling = wanted * P.log(wanted) - wanted + last
        values = values + to(P.masked_fill(stirling, wanted <= 1, 0), values.dtype)
    return _reduce(values, number)


@interceptable
@declare(functional=True, lenient=True)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of targets with a Gaussian distribution of variance `var`, kept above `eps`.

    All have one shape, or `var` lacks the last dimension. loss = (ln(var) + (x - y) ** 2 / var) / 2; `full` adds ln(2 *
    pi) / 2.

    >>> import pullback
    >>> pullback.nn.functional.gaussian_nll_loss(pullback.tensor([1.]), pullback.tensor([2.]), pullback.tensor([1.]))
    tensor(0.5000)
    """
    return _gaussian_nll(
        input, target, var, full, eps, reduction, lambda variance: not are_all_true(P.logical_not(variance < 0))
    )


def _gaussian_nll(
    input: Any, target: Any, var: Any, full: bool, eps: float, reduction: str, has_negative: Callable[[Any], Any]
) -> Any:
    """gaussian_nll_loss; `has_negative` says whether the variances are refused."""
    var = _variance(input, var)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    if has_negative(var):
        raise ValueError("var has negative entry/entries")
    var = _kept_above(var, eps)
    values = 0.5 * (P.log(var) + (input - target) ** 2 / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return _reduce(values, _REDUCTIONS[reduction])


def _variance(input: Any, var: Any) -> Any:
    """The variances as a tensor whose shape broadcasts with the input's."""
    if isinstance(var, TensorBase):
        return _variance_of_shape(var, tuple(input.shape))
    if var < 0:
        raise ValueError("var has negative entry/entries")
    return full_like(input, var)


def _variance_of_shape(var: Any, shape: tuple[int, ...]) -> Any:
    """The variances in a shape that broadcasts: they may lack the last dimension, or have one of size 1."""
    own = tuple(var.shape)
    if own == shape:
        return var
    if own == shape[:-1]:
        return P.unsqueeze(var, -1)
    if own[:-1] != shape[:-1] or own[-1] != 1:
        raise ValueError("var is of incorrect size")
    return var


def _kept_above(var: Tensor, eps: float) -> Any:
    """A copy with small values raised, whose gradient is that of the copy alone, as in PyTorch."""
    copy = G.clone(var)
    with switched("grad_mode", False):
        P.clamp_(copy, eps)
    return copy
