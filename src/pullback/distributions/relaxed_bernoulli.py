"""The relaxed (concrete) Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import pullback.functions as F
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape
from pullback.distributions.probs_or_logits import ProbsOrLogits, require_one
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import SigmoidTransform
from pullback.distributions.utils import broadcast_all, clamp_probs
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logit of a relaxed Bernoulli variable: logits plus logistic noise, over the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _event_dims_of_parameters = {"probs": 0, "logits": 0}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        require_one(probs, logits)
        self._is_given_as_probs = probs is not None
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        given = probs if probs is not None else logits
        super().__init__(as_batch_shape(self._param, given), validate_args=validate_args)

    def _expand_parameters(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parameters(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(F.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = uniforms.log() - (-uniforms).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli variable made continuous on (0, 1): the lower the temperature, the nearer to 0 and 1."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs
