"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from pullback.distributions import constraints
from pullback.distributions.distribution import of_base
from pullback.distributions.normal import Normal
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import ExpTransform
from pullback.tensor.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of a normal variable with mean `loc` and standard deviation `scale`.

    exp of a normal number of mean `loc` and deviation `scale`.

    >>> import pullback
    >>> pullback.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _event_dims_of_parameters = {}
    loc = of_base("loc", "The mean of the logarithm.")
    scale = of_base("scale", "The standard deviation of the logarithm.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
