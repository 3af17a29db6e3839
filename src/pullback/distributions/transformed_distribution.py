"""A distribution pushed through transforms."""

from __future__ import annotations

from typing import Any

from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import Distribution
from pullback.distributions.independent import Independent
from pullback.distributions.transforms import ComposeTransform, Transform
from pullback.distributions.utils import _sum_rightmost
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x) for x of a base distribution and a transform (or list of transforms) f.

    >>> from pullback.distributions import AffineTransform, SigmoidTransform, Uniform
    >>> logistic = TransformedDistribution(Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(1.0, 2.0)])
    """

    arg_constraints: Any = {}
    _event_dims_of_parameters = {}
    _taken_over = ("transforms",)

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms: list[Transform] = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        transform = ComposeTransform(self.transforms)
        self.base_dist = self._shaped_base(base_distribution, transform)
        forward_shape = transform.forward_shape((*self.base_dist.batch_shape, *self.base_dist.event_shape))
        base_event_dim = len(self.base_dist.event_shape)
        event_dim = max(
            transform.codomain.event_dim,
            base_event_dim + transform.codomain.event_dim - transform.domain.event_dim,
        )
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    @staticmethod
    def _shaped_base(base: Distribution, transform: Transform) -> Distribution:
        """The base with the batch shape that the parameters of the transform ask for, and enough event dims."""
        base_shape = Size((*base.batch_shape, *base.event_shape))
        base_event_dim = len(base.event_shape)
        needed = transform.domain.event_dim
        if len(base_shape) < needed:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {needed}, but got {base_shape}."
            )
        expanded = Size(transform.inverse_shape(transform.forward_shape(base_shape)))
        if base_shape != expanded:
            base = base.expand(expanded[: len(expanded) - base_event_dim])
        missing = needed - base_event_dim
        return Independent(base, missing) if missing > 0 else base

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parts(new, batch_shape)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        support: Constraint = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:
        return bool(self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._pushed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._pushed(self.base_dist.rsample(sample_shape))

    def _pushed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        """Invert the transforms one by one, adding up their Jacobians' logarithms."""
        self._check_sample(value)
        event_dim = len(self.event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            result = result - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        return result + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """Turn 1 - cdf into cdf where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        value = self._monotonize_cdf(value)
        return self._pushed(self.base_dist.icdf(value))
