"""The categorical distribution."""

from __future__ import annotations

from math import nan
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.backend.dtype import finfo, int64
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.probs_or_logits import ProbsOrLogits, require_one
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Numbers 0 .. K-1, with their (unnormalised) probabilities or log-probabilities in the last dimension.

    P(i) = probs[i] / sum of probs along the last dimension, or softmax(logits); samples are indices (int64).

    >>> import pullback
    >>> pullback.distributions.Categorical(pullback.tensor([1., 3.])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _event_dims_of_parameters = {"probs": 1, "logits": 1}
    _taken_over = ("_num_events",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        require_one(probs, logits)
        self._is_given_as_probs = probs is not None
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return creation.full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return creation.full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        with no_grad():
            samples = functions.multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = functions.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = functions.clamp(self.logits, min=finfo(self.logits.dtype).min)  # 0 * -inf would be nan
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = creation.arange(self._num_events, dtype=int64, device=self._param.device)
        values = values.view((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
