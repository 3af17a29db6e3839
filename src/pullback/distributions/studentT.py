"""Student's t-distribution."""  # noqa: N999  (PyTorch's module name)

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.chi2 import Chi2
from pullback.distributions.distribution import Distribution, as_batch_shape, parameter
from pullback.distributions.utils import _standard_normal, broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A standard normal variable over the root of Chi2(df) / df, scaled and moved.

    p(x) is proportional to (1 + z ** 2 / df) ** (-(df + 1) / 2), z = (x - loc) / scale.

    >>> import pullback
    >>> pullback.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _event_dims_of_parameters = {"df": 0, "loc": 0, "scale": 0}
    _nested = ("_chi2",)
    mode = parameter("loc")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(as_batch_shape(self.df, df), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        mean = self.loc.clone()
        mean[self.df <= 1] = math.nan
        return mean

    @property
    def variance(self) -> Tensor:
        variance = self.df.clone()
        is_finite = self.df > 2
        variance[is_finite] = self.scale[is_finite].pow(2) * self.df[is_finite] / (self.df[is_finite] - 2)
        variance[(self.df <= 2) & (self.df > 1)] = math.inf
        variance[self.df <= 1] = math.nan
        return variance

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        standard = normal * functions.rsqrt(self._chi2.rsample(sample_shape) / self.df)
        return self.loc + self.scale * standard

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + functions.lgamma(0.5 * self.df)
            - functions.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * functions.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        log_beta = functions.lgamma(0.5 * self.df) + math.lgamma(0.5) - functions.lgamma(0.5 * (self.df + 1))
        slope = functions.digamma(0.5 * (self.df + 1)) - functions.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * slope + 0.5 * self.df.log() + log_beta
