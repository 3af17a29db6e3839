"""The relaxed (concrete) Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape, of_base
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import SigmoidTransform
from pullback.distributions.utils import broadcast_all, clamp_probs
from pullback.tensor.tensor import Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logit of a relaxed Bernoulli variable: logits plus logistic noise, over the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _event_dims_of_parameters = {"probs": 0, "logits": 0}
    _taken_over = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take_form(probs, logits)
        super().__init__(as_batch_shape(self._param, logits if probs is None else probs), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(functions.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = uniforms.log() - (-uniforms).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli variable made continuous on (0, 1): the lower the temperature, the nearer to 0 and 1."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli
    _event_dims_of_parameters = {}
    temperature = of_base("temperature", "The temperature.")
    logits = of_base("logits", "Log-odds.")
    probs = of_base("probs", "Probabilities.")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
