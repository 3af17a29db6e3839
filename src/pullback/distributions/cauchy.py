"""The Cauchy (Lorentz) distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution, as_batch_shape, parameter
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The ratio of two centred normal variables, scaled by `scale` and moved by `loc`; it has no mean.

    p(x) = 1 / (pi * scale * (1 + ((x - loc) / scale) ** 2)).

    >>> import pullback
    >>> pullback.distributions.Cauchy(0.0, 1.0).cdf(pullback.tensor(0.))
    tensor(0.5000)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _event_dims_of_parameters = {"loc": 0, "scale": 0}
    mode = parameter("loc")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(as_batch_shape(self.loc, loc, scale), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), math.nan)

    @property
    def variance(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).pow(2).log1p()

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return functions.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Tensor:
        return functions.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
