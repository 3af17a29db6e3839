"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.distribution import as_batch_shape
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import broadcast_all
from pullback.functions.gamma_samples import _standard_gamma
from pullback.tensor.tensor import Tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Density proportional to x**(concentration - 1) exp(-rate x).

    Samples follow both parameters: the gradient for the concentration is implicit (kernels/gamma_gradients.py).
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(as_batch_shape(self.concentration, concentration, rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # zero lies outside of the support of what is made of it
        return value

    def log_prob(self, value: Any) -> Tensor:
        value = creation.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        return (
            functions.xlogy(self.concentration, self.rate)
            + functions.xlogy(self.concentration - 1, value)
            - self.rate * value
            - functions.lgamma(self.concentration)
        )

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - functions.log(self.rate) + functions.lgamma(a) + (1.0 - a) * functions.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return functions.lgamma(x + 1) + (x + 1) * functions.log(-y.reciprocal())

    def cdf(self, value: Any) -> Tensor:
        self._check_sample(value)
        return functions.igamma(self.concentration, self.rate * value)
