"""The beta distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.dirichlet import Dirichlet
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import broadcast_all, is_number
from pullback.tensor.tensor import Tensor

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """A random probability: the first component of a Dirichlet distribution with two.

    p(x) = x ** (a - 1) * (1 - x) ** (b - 1) / B(a, b) on (0, 1), a and b the two concentrations.

    >>> import pullback
    >>> pullback.distributions.Beta(2.0, 2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _event_dims_of_parameters = {}
    _nested = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        if is_number(concentration1) and is_number(concentration0):
            both = creation.tensor([float(concentration1), float(concentration0)])
        else:
            both = functions.stack(list(broadcast_all(concentration1, concentration0)), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return self._dirichlet.log_prob(functions.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def concentration1(self) -> Tensor:
        """The concentration at one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The concentration at zero."""
        return self._dirichlet.concentration[..., 1]

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return functions.lgamma(x) + functions.lgamma(y) - functions.lgamma(x + y)
