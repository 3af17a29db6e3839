"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import Distribution, as_batch_shape, parameter
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold `loc`: exponential for concentration 0, heavier tails above, bounded below."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _event_dims_of_parameters = {"loc": 0, "scale": 0, "concentration": 0}
    mode = parameter("loc")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(as_batch_shape(self.loc, loc, scale, concentration), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        upper = functions.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _is_exponential(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and a concentration that may be divided by."""
        is_zero = functions.isclose(self.concentration, self.concentration.new_zeros(()))
        return is_zero, functions.where(is_zero, creation.ones_like(self.concentration), self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(functions.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        z = self._z(value)
        is_zero, concentration = self._is_exponential()
        y = 1 / concentration + creation.ones_like(z)
        tail = functions.where(y == 0, y, y * functions.log1p(concentration * z))
        return -functions.log(self.scale) - functions.where(is_zero, z, tail)

    def log_survival_function(self, value: Any) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        self._check_sample(value)
        z = self._z(value)
        is_zero, concentration = self._is_exponential()
        return functions.where(is_zero, -z, -functions.log1p(concentration * z) / concentration)

    def log_cdf(self, value: Any) -> Tensor:
        """The logarithm of the cumulative probability."""
        return functions.log1p(-functions.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Tensor:
        return functions.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Tensor:
        is_zero, concentration = self._is_exponential()
        log_survival = functions.log1p(-value)
        power = self.loc + self.scale / concentration * functions.expm1(-concentration * log_survival)
        return functions.where(is_zero, self.loc - self.scale * log_survival, power)

    @property
    def mean(self) -> Tensor:
        is_finite = self.concentration < 1
        concentration = functions.where(is_finite, self.concentration, 0.5)
        return functions.where(is_finite, self.loc + self.scale / (1 - concentration), math.nan)

    @property
    def variance(self) -> Tensor:
        is_finite = self.concentration < 0.5
        concentration = functions.where(is_finite, self.concentration, 0.25)
        variance = self.scale**2 / ((1 - concentration) ** 2 * (1 - 2 * concentration))
        return functions.where(is_finite, variance, math.nan)

    def entropy(self) -> Tensor:
        return (functions.log(self.scale) + self.concentration + 1).expand(self._batch_shape)
