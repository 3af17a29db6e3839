"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
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
        return functions.logical_or(functions.le(self.probs, self._lims[0]), functions.gt(self.probs, self._lims[1]))

    def _cut_probs(self) -> Tensor:
        return functions.where(
            self._outside_unstable_region(), self.probs, self._lims[0] * creation.ones_like(self.probs)
        )

    def _cont_bern_log_norm(self) -> Tensor:
        cut = self._cut_probs()
        is_low = functions.le(cut, 0.5)
        below_half = functions.where(is_low, cut, creation.zeros_like(cut))
        above_half = functions.where(functions.ge(cut, 0.5), cut, creation.ones_like(cut))
        log_norm = functions.log(functions.abs(functions.log1p(-cut) - functions.log(cut))) - functions.where(
            is_low, functions.log1p(-2.0 * below_half), functions.log(2.0 * above_half - 1.0)
        )
        x = functions.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return functions.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (functions.log1p(-cut) - functions.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * functions.pow(x, 2)) * x
        return functions.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return functions.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / functions.pow(1.0 - 2.0 * cut, 2) + 1.0 / functions.pow(
            functions.log1p(-cut) - functions.log(cut), 2
        )
        x = functions.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return functions.where(self._outside_unstable_region(), variance, taylor)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(functions.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        cut = self._cut_probs()
        inside = (functions.pow(cut, value) * functions.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        unbounded = functions.where(self._outside_unstable_region(), inside, value)
        upper = functions.where(functions.ge(value, 1.0), creation.ones_like(unbounded), unbounded)
        return functions.where(functions.le(value, 0.0), creation.zeros_like(unbounded), upper)

    def icdf(self, value: Any) -> Tensor:
        cut = self._cut_probs()
        numerator = functions.log1p(-cut + value * (2.0 * cut - 1.0)) - functions.log1p(-cut)
        return functions.where(
            self._outside_unstable_region(), numerator / (functions.log(cut) - functions.log1p(-cut)), value
        )

    def entropy(self) -> Tensor:
        log_zero, log_one = functions.log1p(-self.probs), functions.log(self.probs)
        return self.mean * (log_zero - log_one) - self._cont_bern_log_norm() - log_zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        is_outside = functions.logical_or(functions.le(x, self._lims[0] - 0.5), functions.gt(x, self._lims[1] - 0.5))
        cut = functions.where(is_outside, x, (self._lims[0] - 0.5) * creation.ones_like(x))
        log_norm = functions.log(functions.abs(functions.expm1(cut))) - functions.log(functions.abs(cut))
        taylor = 0.5 * x + functions.pow(x, 2) / 24.0 - functions.pow(x, 4) / 2880.0
        return functions.where(is_outside, log_norm, taylor)
