"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.cauchy import Cauchy
from pullback.distributions.distribution import of_base
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AbsTransform
from pullback.tensor.tensor import Tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy variable around zero.

    p(x) = 2 / (pi * scale * (1 + (x / scale) ** 2)) for x >= 0.

    >>> import pullback
    >>> pullback.distributions.HalfCauchy(1.0).cdf(pullback.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy
    _event_dims_of_parameters = {}
    scale = of_base("scale", "The scale of the Cauchy variable.")
    variance = of_base("variance", "The variance of the base distribution.")

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.scale.new_full(self._extended_shape(), math.inf)

    @property
    def mode(self) -> Tensor:
        return creation.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        value = creation.as_tensor(value, dtype=self.base_dist.scale.dtype, device=self.base_dist.scale.device)
        return functions.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
