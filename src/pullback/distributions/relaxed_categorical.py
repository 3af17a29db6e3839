"""The relaxed (concrete, Gumbel-softmax) categorical distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.categorical import Categorical
from pullback.distributions.distribution import Distribution, of_base
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import ExpTransform
from pullback.distributions.utils import broadcast_all, clamp_probs
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot variable: log-softmax of logits plus Gumbel noise, over the temperature."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _event_dims_of_parameters = {}
    _nested = ("_categorical",)
    _taken_over = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the form that was given."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Normalised log-probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(functions.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(uniforms.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Tensor:
        count = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = creation.full_like(self.temperature, float(count)).lgamma() - self.temperature.log().mul(
            -(count - 1)
        )
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A one-hot variable made continuous on the simplex: the lower the temperature, the nearer to its corners."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical
    _event_dims_of_parameters = {}
    temperature = of_base("temperature", "The temperature.")
    logits = of_base("logits", "Normalised log-probabilities.")
    probs = of_base("probs", "Probabilities.")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
