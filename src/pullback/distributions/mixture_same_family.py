"""A mixture of distributions of one family."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.categorical import Categorical
from pullback.distributions.constraints import Constraint, MixtureSameFamilyConstraint
from pullback.distributions.distribution import Distribution
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Components are the last batch dimension of one distribution; a categorical one says how often each is drawn.

    p(x) = the sum over k of p(k) * p(x | k); the component is not differentiated.

    >>> import pullback
    >>> from pullback.distributions import Categorical, MixtureSameFamily, Normal
    >>> parts = Normal(pullback.tensor([0.0, 4.0]), pullback.ones(2))
    >>> MixtureSameFamily(Categorical(pullback.tensor([0.5, 0.5])), parts).mean
    tensor(2.)
    """

    arg_constraints: Any = {}
    has_rsample = False
    _event_dims_of_parameters = {}
    _nested = ("_mixture_distribution",)
    _taken_over = ("_num_component", "_event_ndims")

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._check_shapes()
        self._num_component = component_distribution.batch_shape[-1]
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_distribution.batch_shape[:-1], event_shape, validate_args=validate_args)

    def _check_shapes(self) -> None:
        mixture_batch = self._mixture_distribution.batch_shape
        component_batch = self._component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_batch})"
                )
        mixture_count = self._mixture_distribution.logits.shape[-1]
        component_count = self._component_distribution.batch_shape[-1]
        if mixture_count != component_count:
            raise ValueError(
                f"`mixture_distribution component` ({mixture_count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component_count})"
            )

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parts(new, batch_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))

    @constraints.dependent_property
    def support(self) -> Constraint:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """How often each component is drawn."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return functions.sum(probs * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The law of total variance.
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        within = functions.sum(probs * self.component_distribution.variance, dim=-1 - self._event_ndims)
        deviation = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return within + functions.sum(probs * deviation, dim=-1 - self._event_ndims)

    def cdf(self, x: Any) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return functions.sum(cdf * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        return functions.logsumexp(log_prob + functions.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            gather_dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *[1] * (self._event_ndims + 1)))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return functions.gather(samples, gather_dim, index).squeeze(gather_dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Give probabilities of components the dimensions of the components' events."""
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape
        return x.reshape((*shape[:-1], *[1] * missing, *shape[-1:], *[1] * self._event_ndims))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
