"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, PowerTransform
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import broadcast_all, euler_constant
from pullback.tensor.tensor import Tensor

__all__ = ["Kumaraswamy"]


def _moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """The n-th moment: b B(1 + n / a, b)."""
    first = 1 + n / a
    log_beta = functions.lgamma(first) + functions.lgamma(b) - functions.lgamma(first + b)
    return b * functions.exp(log_beta)


class Kumaraswamy(TransformedDistribution):
    """A relative of the beta distribution on (0, 1) whose cdf 1 - (1 - x**a)**b has a closed inverse."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _event_dims_of_parameters = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            creation.full_like(self.concentration0, 0),
            creation.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        # PyTorch's expression, the logarithm of a negative number wherever a mode exists: nan.
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        log_mode[(b < 1) | (a < 1)] = float("nan")
        return log_mode.exp()

    @property
    def variance(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 2) - functions.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = functions.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - functions.log(self.concentration1) - functions.log(self.concentration0)
