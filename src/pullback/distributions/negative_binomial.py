"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.gamma import Gamma
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.distributions.utils import lazy_property
from pullback.tensor.tensor import Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The number of successes, each with probability `probs`, before `total_count` failures.

    Successes before `total_count` failures. P(k) = C(k + r - 1, k) * (1 - p) ** r * p ** k.

    >>> import pullback
    >>> pullback.distributions.NegativeBinomial(2, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _event_dims_of_parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (counts,) = self._take_form(probs, logits, total_count)
        self.total_count = counts.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * functions.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / functions.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # The distribution is a Poisson one whose rate is gamma distributed.
        return Gamma(concentration=self.total_count, rate=functions.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return functions.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        unnormalized = self.total_count * functions.logsigmoid(-self.logits) + value * functions.logsigmoid(self.logits)
        count = self.total_count + value
        normalizer = -functions.lgamma(count) + functions.lgamma(1.0 + value) + functions.lgamma(self.total_count)
        normalizer = normalizer.masked_fill(count == 0.0, 0.0)
        return unnormalized - normalizer
