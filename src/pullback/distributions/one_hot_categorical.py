"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.distributions import constraints
from pullback.distributions.categorical import Categorical
from pullback.distributions.distribution import Distribution, parameter
from pullback.nn.functional import one_hot
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Vectors of zeros with a single one, at the place that a categorical variable says.

    Either `probs` or `logits`, of shape (..., n); samples have that shape.

    >>> import pullback
    >>> pullback.distributions.OneHotCategorical(probs=pullback.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _event_dims_of_parameters = {}
    _nested = ("_categorical",)
    mean = parameter("probs")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Normalised log-probabilities."""
        return self._categorical.logits

    @property
    def mode(self) -> Tensor:
        index = self.probs.argmax(dim=-1, keepdim=True)
        return self.probs.new_zeros(self.probs.shape).scatter_(-1, index, 1)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> Size:
        """The shape of the form that was given."""
        return self._categorical.param_shape

    def sample(self, sample_shape: Any = ()) -> Tensor:
        indices = self._categorical.sample(Size(sample_shape))
        return one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = creation.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *[1] * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples through which gradients pass to the probabilities unchanged."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())
