"""The loss of connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.creation import tensor, zeros_like
from pullback.errors import wrong_type
from pullback.functions.losses import _reduction
from pullback.modes.interception import interceptable
from pullback.tensor.tensor import Tensor, TensorBase


@interceptable
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: Any = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log likelihood of label sequences over all their alignments with the inputs.

    `log_probs` is (T, N, C), or (T, C) for one sequence; `targets` is (N, S), or all labels one after another. The mean
    divides each loss by its target's length first.
    """
    number = reduction if isinstance(reduction, int) else _reduction(reduction)
    logarithms: Any = log_probs
    batched = logarithms.ndim == 3
    if not batched:
        logarithms = P.unsqueeze(logarithms, 1)
        targets = P.unsqueeze(targets, 0) if targets.ndim == 1 else targets
    inputs, lengths = _lengths("input_lengths", input_lengths), _lengths("target_lengths", target_lengths)
    _check(logarithms, targets, inputs, lengths, blank)
    losses = G.ctc_loss(logarithms, targets, inputs, lengths, blank, zero_infinity)
    if zero_infinity:
        losses = P.where(P.isinf(losses), zeros_like(losses), losses)
    if number == 1:
        return P.mean(losses / P.to(P.clamp_min(lengths, 1), losses.dtype))
    if number == 2:
        return P.sum(losses)
    return losses if batched else P.squeeze(losses, 0)


def _lengths(name: str, lengths: Any) -> Any:
    """Lengths as a one-dimensional tensor of int64."""
    if isinstance(lengths, TensorBase):
        if lengths._array.dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral")
    elif any(not hasattr(length, "__index__") for length in lengths):
        raise wrong_type("ctc_loss", name, None, "tuple of ints", lengths)
    found = lengths if isinstance(lengths, TensorBase) else tensor(list(lengths))
    found = P.to(found, tensor(0).dtype)
    return P.reshape(found, (1,)) if found.ndim == 0 else found


def _check(logarithms: Any, targets: Any, inputs: Any, lengths: Any, blank: int) -> None:
    if logarithms._array.dtype.kind != "f" or logarithms._array.dtype.itemsize == 2:
        found = scalar_type_name(logarithms._array.dtype)
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{found}'")
    steps, batch, classes = logarithms.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if inputs.shape[0] != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if lengths.shape[0] != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    if batch and inputs.min() < 0:
        raise RuntimeError(
            f"Expected input_lengths to have value at least 0, but got value {inputs.min()} "
            "(while checking arguments for ctc_loss_cpu)"
        )
    if targets.ndim == 1 and targets.shape[0] != lengths.sum():
        raise RuntimeError(
            f"Expected tensor to have size {lengths.sum()} at dimension 0, but got size {targets.shape[0]} for argument "
            "#2 'targets' (while checking arguments for ctc_loss_cpu)"
        )
    if batch and inputs.max() > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {inputs.max()} "
            "(while checking arguments for ctc_loss_cpu)"
        )
    if batch and targets.ndim == 2 and lengths.max() > targets.shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size at least {lengths.max()} at dimension 1, but got size "
            f"{targets.shape[1]} for argument #2 'targets' (while checking arguments for ctc_loss_cpu)"
        )
