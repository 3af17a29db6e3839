"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.distribution import of_base
from pullback.distributions.normal import Normal
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AbsTransform
from pullback.tensor.tensor import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal variable around zero.

    The magnitude of a normal number of mean 0. p(x) = sqrt(2 / pi) / scale * exp(-x ** 2 / (2 * scale ** 2)), x >= 0.

    >>> import pullback
    >>> pullback.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Normal
    _event_dims_of_parameters = {}
    scale = of_base("scale", "The standard deviation of the normal variable.")

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return creation.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return functions.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
