"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import pullback.functions as F
from pullback.distributions import constraints
from pullback.distributions.gamma import Gamma
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import PowerTransform
from pullback.tensor.tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for a gamma variable x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        result = self.rate / (self.concentration - 1)
        return F.where(self.concentration > 1, result, float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return F.where(self.concentration > 2, result, float("inf"))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
