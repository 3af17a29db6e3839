"""Counts batch dimensions as part of an event."""

from __future__ import annotations

from typing import Any

from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.distribution import Distribution, of_base
from pullback.distributions.utils import _sum_rightmost
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """Another distribution whose last batch dimensions are read as one event: `log_prob` sums over them.

    >>> import pullback
    >>> from pullback.distributions import Normal
    >>> Independent(Normal(pullback.zeros(3), pullback.ones(3)), 1).event_shape
    pullback.Size([3])
    """

    arg_constraints: Any = {}
    _event_dims_of_parameters = {}
    _taken_over = ("reinterpreted_batch_ndims",)
    mean = of_base("mean", "The mean of the base distribution.")
    mode = of_base("mode", "The mode of the base distribution.")
    variance = of_base("variance", "The variance of the base distribution.")

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = Size((*base_distribution.batch_shape, *base_distribution.event_shape))
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - event_dim
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parts(new, batch_shape)
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims]))

    @property
    def has_rsample(self) -> bool:
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        return False if self.reinterpreted_batch_ndims > 0 else bool(self.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> Constraint:
        result: Constraint = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
