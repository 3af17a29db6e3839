"""The Laplace (double exponential) distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution, as_batch_shape, parameter
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Density exp(-|x - loc| / scale) / (2 scale).

    p(x) = exp(-|x - loc| / scale) / (2 * scale).

    >>> import pullback
    >>> pullback.distributions.Laplace(0.0, 1.0).variance
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _event_dims_of_parameters = {"loc": 0, "scale": 0}
    mean = mode = parameter("loc")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(as_batch_shape(self.loc, loc, scale), validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * functions.log1p(-u.abs())

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return -functions.log(2 * self.scale) - functions.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        centred = value - self.loc
        return 0.5 - 0.5 * centred.sign() * functions.expm1(-centred.abs() / self.scale)

    def icdf(self, value: Any) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * functions.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + functions.log(2 * self.scale)
