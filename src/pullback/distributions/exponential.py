"""The exponential distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of events that come at a `rate`.

    p(x) = rate * exp(-rate * x), x >= 0.

    >>> import pullback
    >>> pullback.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(as_batch_shape(self.rate, rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return creation.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return 1 - functions.exp(-self.rate * value)

    def icdf(self, value: Any) -> Tensor:
        return -functions.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - functions.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -functions.log(-x)
