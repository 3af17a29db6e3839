"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.exponential import Exponential
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, PowerTransform
from pullback.distributions.utils import broadcast_all, euler_constant
from pullback.tensor.tensor import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale * x**(1 / concentration) for a standard exponential variable x.

    p(x) = k / scale * (x / scale) ** (k - 1) * exp(-(x / scale) ** k), k = `concentration`.

    >>> import pullback
    >>> pullback.distributions.Weibull(1.0, 1.0).mean
    tensor(1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(creation.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        transforms = [
            PowerTransform(exponent=new.concentration_reciprocal),
            AffineTransform(loc=0, scale=new.scale),
        ]
        TransformedDistribution.__init__(new, base, transforms, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * functions.exp(functions.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        second = functions.exp(functions.lgamma(1 + 2 * self.concentration_reciprocal))
        return self.scale.pow(2) * (second - functions.exp(2 * functions.lgamma(1 + self.concentration_reciprocal)))

    def entropy(self) -> Tensor:
        shape = euler_constant * (1 - self.concentration_reciprocal)
        return shape + functions.log(self.scale * self.concentration_reciprocal) + 1
