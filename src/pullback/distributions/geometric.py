"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.autograd.grad_mode import no_grad
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.distributions.utils import broadcast_all
from pullback.nn.functional import binary_cross_entropy_with_logits
from pullback.tensor.tensor import Tensor

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The number of failures before the first success.

    P(k) = (1 - p) ** k * p, k = 0, 1, ... failures before the first success.

    >>> import pullback
    >>> pullback.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _event_dims_of_parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_form(probs, logits)
        super().__init__(as_batch_shape(self._param, logits if probs is None else probs), validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._require_positive_probs()

    def _require_positive_probs(self) -> None:
        value = self.probs
        is_valid = value > 0
        if not is_valid.all():
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value.detach()[~is_valid]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return creation.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = self.probs.new_empty(shape).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone()
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
