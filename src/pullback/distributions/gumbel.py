"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.distribution import parameter
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, ExpTransform
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import broadcast_all, euler_constant, is_number
from pullback.tensor.tensor import Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The limit of maxima of many samples: loc - scale * log(-log(uniform)).

    p(x) = exp(-z - exp(-z)) / scale, z = (x - loc) / scale.

    >>> import pullback
    >>> pullback.distributions.Gumbel(0.0, 1.0).cdf(pullback.tensor(0.))
    tensor(0.3679)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _event_dims_of_parameters = {"loc": 0, "scale": 0}
    mode = parameter("loc")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        if is_number(loc) and is_number(scale):
            base = Uniform(limits.tiny, 1 - limits.eps, validate_args=validate_args)
        else:
            base = Uniform(
                creation.full_like(self.loc, limits.tiny),
                creation.full_like(self.loc, 1 - limits.eps),
                validate_args=validate_args,
            )
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-creation.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
