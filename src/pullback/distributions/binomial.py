"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.probs_or_logits import ProbsOrLogits
from pullback.tensor.tensor import Tensor

__all__ = ["Binomial"]


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0) with the subgradient 1/2 at zero, where the two clamps meet."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits):
    """The number of successes among `total_count` trials.

    P(k) = C(n, k) * p ** k * (1 - p) ** (n - k), n = `total_count`; give `probs` or `logits`.

    >>> import pullback
    >>> pullback.distributions.Binomial(10, 0.5).mean
    tensor(5.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _event_dims_of_parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (counts,) = self._take_form(probs, logits, total_count)
        self.total_count = counts.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return functions.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        log_factorial_n = functions.lgamma(self.total_count + 1)
        log_factorial_k = functions.lgamma(value + 1)
        log_factorial_rest = functions.lgamma(self.total_count - value + 1)
        # n log(1 + exp(logits)), by cases so that exp does not overflow.
        normalize_term = (
            self.total_count * _positive_part(self.logits)
            + self.total_count * functions.log1p(functions.exp(-functions.abs(self.logits)))
            - log_factorial_n
        )
        return value * self.logits - log_factorial_k - log_factorial_rest - normalize_term

    def _common_count(self, asker: str) -> int:
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asker}`.")
        return total_count

    def entropy(self) -> Tensor:
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(functions.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        total_count = self._common_count("enumerate_support")
        values = creation.arange(1 + total_count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
