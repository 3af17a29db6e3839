"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape, parameter
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.distributions.utils import broadcast_all
from pullback.nn.functional import binary_cross_entropy_with_logits
from pullback.tensor.tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """One with probability `probs`, else zero.

    P(1) = probs = sigmoid(logits), P(0) = 1 - probs; give one of the two.

    >>> import pullback
    >>> pullback.distributions.Bernoulli(0.25).log_prob(pullback.tensor(1.)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"probs": 0, "logits": 0}
    mean = parameter("probs")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_form(probs, logits)
        super().__init__(as_batch_shape(self._param, logits if probs is None else probs), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = float("nan")
        return mode

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return functions.bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = creation.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (functions.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return functions.log1p(functions.exp(x))
