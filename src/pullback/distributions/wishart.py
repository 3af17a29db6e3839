"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions import constraints
from pullback.distributions.chi2 import Chi2
from pullback.distributions.distribution import Distribution
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.multivariate_normal import _precision_to_scale_tril
from pullback.distributions.utils import is_number, lazy_property
from pullback.functions.grids import broadcast_shapes
from pullback.modes.user_warnings import warn_user
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of mvlgamma."""
    steps = creation.arange(p, dtype=x.dtype, device=x.device).div(2)
    return functions.digamma(x.unsqueeze(-1) - steps.expand((*x.shape, -1))).sum(-1)


def _log_abs_det(matrix: Tensor) -> Tensor:
    return functions.slogdet(matrix)[1]


class Wishart(ExponentialFamily):
    """Sums of outer products of `df` normal vectors: random positive definite matrices."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _event_dims_of_parameters = {"covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "df": 0}

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        assert matrix is not None
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        event_shape = matrix.shape[-2:]
        if is_number(df):
            batch_shape = Size(matrix.shape[:-2])
            self.df = creation.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warn_user("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = functions.linalg_cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._make_chi2()

    def _make_chi2(self) -> None:
        # Bartlett: the squared diagonal of the sample's factor is chi-squared with falling degrees of freedom.
        steps = creation.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - steps.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        self._expand_parts(new, Size(batch_shape))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._make_chi2()
        new._validate_args = self._validate_args
        return new

    def _expanded_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the scale matrix."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The scale matrix."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the scale matrix."""
        n = self._event_shape[-1]
        identity = creation.eye(n, dtype=self._unbroadcasted_scale_tril.dtype)
        return self._expanded_matrix(functions.cholesky_solve(identity, self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        products = functions.einsum("...i,...j->...ij", diagonal, diagonal)
        return self.df.view((*self._batch_shape, 1, 1)) * (V.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        rows, columns = creation.tril_indices(p, p, -1)
        below = functions.randn(
            (*sample_shape, *self._batch_shape, p * (p - 1) // 2), dtype=noise.dtype, device=noise.device
        )
        noise[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draw samples; singular ones are drawn again, up to `max_try_correction` times."""
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(Size(sample_shape))
        # PyTorch throws its first regular samples away; to give the same numbers, so does this.
        is_due = creation.ones_like(self._is_singular(sample))
        for _ in range(tries):
            again = self._bartlett_sampling(Size((int(is_due.sum()),)))
            positions = is_due.clone()
            sample[positions] = again
            is_due[positions] = self._is_singular(again)
            if not is_due.any():
                return sample
            warn_user("Singular sample detected.")
        return sample

    def _is_singular(self, sample: Tensor) -> Tensor:
        is_singular = ~self.support.check(sample)
        if self._batch_shape:
            is_singular = is_singular.amax(tuple(range(-len(self._batch_shape), 0)))
        return is_singular

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        nu, p = self.df, self._event_shape[-1]
        solved = functions.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * _LOG_2 / 2 + self._half_log_det())
            - functions.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * _log_abs_det(value)
            - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _LOG_2 / 2 + self._half_log_det())
            + functions.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        nu, p = self.df, self._event_shape[-1]
        return ((nu - p - 1) / 2, -self.precision_matrix / 2)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = x + (p + 1) / 2
        return half * (-_log_abs_det(-2 * y) + _LOG_2 * p) + functions.mvlgamma(half, p=p)
