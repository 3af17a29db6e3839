"""The uniform distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import Distribution, as_batch_shape
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform distributions on [low, high).

    p(x) = 1 / (high - low), low <= x < high.

    >>> import pullback
    >>> pullback.distributions.Uniform(0.0, 2.0).mean
    tensor(1.)
    """

    has_rsample = True
    _event_dims_of_parameters = {"low": 0, "high": 0}

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(as_batch_shape(self.low, low, high), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return float("nan") * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rand = functions.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + rand * (self.high - self.low)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        is_inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return functions.log(is_inside) - functions.log(self.high - self.low)

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return functions.log(self.high - self.low)
