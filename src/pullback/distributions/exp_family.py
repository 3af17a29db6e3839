"""Distributions of the exponential family: density h(x) exp(<natural parameters, t(x)> - log normalizer)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import functions
from pullback.autograd.differentiation import grad
from pullback.distributions.distribution import Distribution
from pullback.tensor.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution whose entropy and KL divergence follow from its log normalizer by differentiation."""

    _log_normalizer: Callable[..., Tensor]

    @property
    def _mean_carrier_measure(self) -> Any:
        """The expectation of log h, which a subclass sets where it is known."""
        raise NotImplementedError

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy by way of the Bregman divergence of the log normalizer."""
        result: Any = -self._mean_carrier_measure
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*natural)
        gradients = grad(log_normalizer.sum(), natural, create_graph=True)
        result = result + log_normalizer
        for parameter, gradient in zip(natural, gradients, strict=True):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return functions.clone(result)
