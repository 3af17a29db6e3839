"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape, parameter
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import _standard_normal, broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """Normal distributions with means `loc` and standard deviations `scale`.

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> Normal(0.0, 1.0).sample()
    tensor(1.5410)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"loc": 0, "scale": 0}
    mean = mode = parameter("loc")
    stddev = parameter("scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(as_batch_shape(self.loc, loc, scale), validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return functions.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        variance = self.scale**2
        return -((value - self.loc) ** 2) / (2 * variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return 0.5 * (1 + functions.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * functions.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + functions.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal())

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * functions.log(-math.pi / y)
