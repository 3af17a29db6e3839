"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.autograd.function import Function, once_differentiable
from pullback.distributions import constraints
from pullback.distributions.exp_family import ExponentialFamily
from pullback.functions.gamma_samples import _dirichlet_grad, _sample_dirichlet
from pullback.nn.functional import one_hot
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Dirichlet"]


def _backward_of_sample(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = _dirichlet_grad(x, concentration, total)
    # Raising one concentration moves its component up and scales the others down.
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """A sample, differentiable in the concentration by implicit differentiation."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = _sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _backward_of_sample(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """Random probabilities: vectors on the simplex, with a concentration for each component.

    Points of the last dimension sum to 1. p(x) = product of x_i ** (a_i - 1) / B(a).

    >>> import pullback
    >>> pullback.distributions.Dirichlet(pullback.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _event_dims_of_parameters = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(Size(sample_shape))
        return _Dirichlet.apply(self.concentration.expand(shape))

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        return (
            functions.xlogy(self.concentration - 1.0, value).sum(-1)
            + functions.lgamma(self.concentration.sum(-1))
            - functions.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        has_no_inner_mode = (self.concentration < 1).all(dim=-1)
        corners = one_hot(mode[has_no_inner_mode].argmax(dim=-1), self.concentration.shape[-1])
        mode[has_no_inner_mode] = corners.to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            functions.lgamma(self.concentration).sum(-1)
            - functions.lgamma(total)
            - (k - total) * functions.digamma(total)
            - ((self.concentration - 1.0) * functions.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - functions.lgamma(x.sum(-1))
