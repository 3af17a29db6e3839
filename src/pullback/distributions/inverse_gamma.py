"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.distribution import of_base
from pullback.distributions.gamma import Gamma
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import PowerTransform
from pullback.tensor.tensor import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for a gamma variable x.

    p(x) = rate ** a / gamma(a) * x ** (-a - 1) * exp(-rate / x), for a = concentration.

    >>> import pullback
    >>> pullback.distributions.InverseGamma(pullback.tensor([3.0]), pullback.tensor([4.0])).mean
    tensor([2.])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _event_dims_of_parameters = {}
    concentration = of_base("concentration", "The concentration of the gamma variable.")
    rate = of_base("rate", "The rate of the gamma variable.")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        result = self.rate / (self.concentration - 1)
        return functions.where(self.concentration > 1, result, float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return functions.where(self.concentration > 2, result, float("inf"))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
