"""Transforms of whole vectors and matrices: reshaping, the simplex, and Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.constraints import Constraint
from pullback.distributions.transform import Transform
from pullback.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from pullback.nn.functional import pad
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor


class ReshapeTransform(Transform):
    """Another shape for the rightmost dimensions."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replace_tail(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replace_tail(shape, self.out_shape, self.in_shape)


def _replace_tail(shape: Any, old: Size, new: Size) -> Any:
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return Size((*shape[:cut], *new))


class CorrCholeskyTransform(Transform):
    """An unconstrained vector to the Cholesky factor of a correlation matrix.

    tanh gives partial correlations; each row of the factor breaks a stick of squared length 1 by them.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = functions.tanh(x)
        eps = finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        r = vec_to_tril_matrix(x, diag=-1)
        z = r**2
        remaining = (1 - z).sqrt().cumprod(-1)
        r = r + creation.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(remaining[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        remaining = 1 - functions.cumsum(y * y, dim=-1)
        shifted = pad(remaining[..., :-1], [1, 0], value=1)
        entries = tril_matrix_to_vec(y, diag=-1)
        lengths = tril_matrix_to_vec(shifted, diag=-1)
        t = entries / lengths.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        # The product of remaining lengths of each row, and log(1 - tanh(x)**2).
        remaining = 1 - (y * y).cumsum(dim=-1)
        lengths = tril_matrix_to_vec(remaining, diag=-2)
        stick_breaking = 0.5 * lengths.log().sum(-1)
        tanh = -2 * (x + functions.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return stick_breaking + tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return Size((*shape[:-2], size * (size - 1) // 2))


class SoftmaxTransform(Transform):
    """exp(x) normalised to the simplex; not a bijection: adding a constant to x changes nothing."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """A vector to the simplex with one more entry: each entry breaks off its share of what is left of a stick.

    (..., n) becomes (..., n + 1), positive with the sum 1.

    >>> import pullback
    >>> pullback.distributions.StickBreakingTransform()(pullback.zeros(1))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = 1 - cropped.cumsum(-1)
        # Where rounding leaves nothing of the stick.
        left = functions.clamp(left, min=finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x).log()
        return (-x + functions.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def _offset(self, x: Tensor) -> Tensor:
        """What makes x = 0 the centre of the simplex."""
        count = x.shape[-1]
        return count + 1 - x.new_ones(count).cumsum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = finfo(x.dtype)
    return functions.clamp(functions.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class LowerCholeskyTransform(Transform):
    """A matrix to a lower triangular one with a positive diagonal, by exp."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """A matrix to a positive definite one, by way of its Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(functions.linalg_cholesky(y))
