"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import pullback.functions as F
from pullback import creation
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.distributions.utils import broadcast_all, clamp_probs
from pullback.nn.functional import binary_cross_entropy_with_logits
from pullback.tensor.tensor import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Density proportional to probs**x (1 - probs)**(1 - x) on [0, 1].

    The formulas divide zero by zero at probs 1/2: within `lims` a Taylor series takes their place.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"probs": 0, "logits": 0}
    _taken_over = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take_form(probs, logits)
        if probs is not None:
            # The unclamped value is what the user gave, hence what is checked.
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(as_batch_shape(self._param, logits if probs is None else probs), validate_args=validate_args)

    def _outside_unstable_region(self) -> Tensor:
        return F.logical_or(F.le(self.probs, self._lims[0]), F.gt(self.probs, self._lims[1]))

    def _cut_probs(self) -> Tensor:
        return F.where(self._outside_unstable_region(), self.probs, self._lims[0] * creation.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Tensor:
        cut = self._cut_probs()
        is_low = F.le(cut, 0.5)
        below_half = F.where(is_low, cut, creation.zeros_like(cut))
        above_half = F.where(F.ge(cut, 0.5), cut, creation.ones_like(cut))
        log_norm = F.log(F.abs(F.log1p(-cut) - F.log(cut))) - F.where(
            is_low, F.log1p(-2.0 * below_half), F.log(2.0 * above_half - 1.0)
        )
        x = F.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return F.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (F.log1p(-cut) - F.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * F.pow(x, 2)) * x
        return F.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return F.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / F.pow(1.0 - 2.0 * cut, 2) + 1.0 / F.pow(F.log1p(-cut) - F.log(cut), 2)
        x = F.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return F.where(self._outside_unstable_region(), variance, taylor)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(F.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        cut = self._cut_probs()
        inside = (F.pow(cut, value) * F.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        unbounded = F.where(self._outside_unstable_region(), inside, value)
        upper = F.where(F.ge(value, 1.0), creation.ones_like(unbounded), unbounded)
        return F.where(F.le(value, 0.0), creation.zeros_like(unbounded), upper)

    def icdf(self, value: Any) -> Tensor:
        cut = self._cut_probs()
        numerator = F.log1p(-cut + value * (2.0 * cut - 1.0)) - F.log1p(-cut)
        return F.where(self._outside_unstable_region(), numerator / (F.log(cut) - F.log1p(-cut)), value)

    def entropy(self) -> Tensor:
        log_zero, log_one = F.log1p(-self.probs), F.log(self.probs)
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        is_outside = F.logical_or(F.le(x, self._lims[0] - 0.5), F.gt(x, self._lims[1] - 0.5))
        cut = F.where(is_outside, x, (self._lims[0] - 0.5) * creation.ones_like(x))
        log_norm = F.log(F.abs(F.expm1(cut))) - F.log(F.abs(cut))
        taylor = 0.5 * x + F.pow(x, 2) / 24.0 - F.pow(x, 4) / 2880.0
        return F.where(is_outside, log_norm, taylor)
