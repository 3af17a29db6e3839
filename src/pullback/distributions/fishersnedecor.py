"""The Fisher-Snedecor (F) distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution, as_batch_shape
from pullback.distributions.gamma import Gamma
from pullback.distributions.utils import broadcast_all
from pullback.tensor.tensor import Tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _event_dims_of_parameters = {"df1": 0, "df2": 0}
    _nested = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(as_batch_shape(self.df1, df1, df2), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.clone()
        df2[df2 <= 2] = math.nan
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = math.nan
        return mode

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.clone()
        df2[df2 <= 4] = math.nan
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        numerator = self._gamma1.rsample(sample_shape).view(self._extended_shape(sample_shape))
        denominator = self._gamma2.rsample(sample_shape).view(self._extended_shape(sample_shape))
        tiny = finfo(self.df2.dtype).tiny
        denominator.clamp_(min=tiny)
        ratio = numerator / denominator
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        log_beta = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        powers = half1 * ratio.log() + (half1 - 1) * functions.log(value)
        return log_beta + powers - (half1 + half2) * functions.log1p(ratio * value)
