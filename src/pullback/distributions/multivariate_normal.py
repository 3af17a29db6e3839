"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution, parameter
from pullback.distributions.utils import _standard_normal, lazy_property
from pullback.functions.grids import broadcast_shapes
from pullback.tensor.tensor import Tensor

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Multiply a batch of matrices with a batch of vectors."""
    return functions.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(scale_tril: Tensor, x: Tensor) -> Tensor:
    """Compute the squared norm of scale_tril**-1 x.

    Samples of one distribution become columns of one right-hand side: each factor is read once.
    """
    batch_ndim = scale_tril.ndim - 2
    missing = batch_ndim - (x.ndim - 1)
    if missing > 0:
        x = x.reshape((*[1] * missing, *x.shape))
    outer = x.ndim - 1 - batch_ndim
    columns = x.permute((*range(outer, x.ndim), *range(outer)))
    columns = columns.reshape((*x.shape[outer:], -1))
    solved = functions.linalg_solve_triangular(scale_tril, columns, upper=False)
    norms = solved.pow(2).sum(-2)
    norms = norms.reshape((*norms.shape[:-1], *x.shape[:outer]))
    return norms.permute((*range(batch_ndim, norms.ndim), *range(batch_ndim)))


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of a precision's inverse: the flipped factor of the flipped matrix, inverted."""
    flipped = functions.linalg_cholesky(functions.flip(precision, (-2, -1)))
    inverse = functions.flip(flipped, (-2, -1)).mT
    identity = creation.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return functions.linalg_solve_triangular(inverse, identity, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors, given a covariance matrix, its inverse or its Cholesky factor.

    >>> import pullback
    >>> MultivariateNormal(pullback.zeros(2), pullback.eye(2)).log_prob(pullback.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _event_dims_of_parameters = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _taken_over = ("_unbroadcasted_scale_tril",)
    mean = mode = parameter("loc")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        assert matrix is not None
        if matrix.dim() < 2:
            noun = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{noun} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = functions.linalg_cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def _expanded_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._expanded_matrix(
            functions.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT)
        )

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._expanded_matrix(functions.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def variance(self) -> Tensor:
        diagonal = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return diagonal.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
