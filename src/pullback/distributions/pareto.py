"""The Pareto distribution."""

from __future__ import annotations

from typing import Any

from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import parameter
from pullback.distributions.exponential import Exponential
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, ExpTransform
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Values above `scale` whose tail falls as x**-alpha: scale * exp(Exponential(alpha)).

    p(x) = alpha * scale ** alpha / x ** (alpha + 1), x >= scale.

    >>> import pullback
    >>> pullback.distributions.Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _event_dims_of_parameters = {"scale": 0, "alpha": 0}
    mode = parameter("scale")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)  # the mean is infinite below
        return alpha * self.scale / (alpha - 1)

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)  # the variance is infinite below
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
