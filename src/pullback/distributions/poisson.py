"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape, parameter
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts of independent events that come at a `rate`.

    P(k) = rate ** k * exp(-rate) / k!.

    >>> import pullback
    >>> pullback.distributions.Poisson(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _event_dims_of_parameters = {"rate": 0}
    mean = variance = parameter("rate")

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(as_batch_shape(self.rate, rate), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return functions.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (functions.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return functions.exp(x)
