"""The multinomial distribution."""

from __future__ import annotations

from math import inf
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.binomial import Binomial
from pullback.distributions.categorical import Categorical
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import Distribution
from pullback.distributions.utils import broadcast_all
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes up among `total_count` draws; the count is one number for the whole batch.

    How often each class is drawn in `total_count` draws. P(k) = n! / (k_1! ... k_m!) * product of p_i ** k_i.

    >>> import pullback
    >>> pullback.distributions.Multinomial(4, pullback.tensor([1., 3.])).mean
    tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _event_dims_of_parameters = {}
    _nested = ("_categorical",)
    _taken_over = ("total_count",)

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parts(new, batch_shape)
        new._binomial = self._binomial.expand((*batch_shape, *self.event_shape))

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Normalised log-probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the form that was given."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            draws = self._categorical.sample(Size((self.total_count, *sample_shape))).movedim(0, -1)
            counts = draws.new_zeros(self._extended_shape(sample_shape))
            counts.scatter_add_(-1, draws, creation.ones_like(draws))
            return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = self.probs.new_tensor(self.total_count)
        once = n * self._categorical.entropy() - functions.lgamma(n + 1)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = functions.lgamma(support + 1)
        return once + (functions.exp(self._binomial.log_prob(support)) * weights).sum([0, -1])

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone()
        log_factorial_n = functions.lgamma(value.sum(-1) + 1)
        log_factorial_xs = functions.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -inf)] = 0
        return log_factorial_n - log_factorial_xs + (logits * value).sum(-1)
