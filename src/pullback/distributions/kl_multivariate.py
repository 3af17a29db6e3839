"""Divergences between multivariate normal distributions, with full and with low-rank covariances."""

from __future__ import annotations

from pullback import functions
from pullback.distributions.kl import register_kl
from pullback.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from pullback.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from pullback.functions.grids import broadcast_shapes
from pullback.tensor.tensor import Tensor

LowRank = LowRankMultivariateNormal


def _check_events(p: MultivariateNormal | LowRank, q: MultivariateNormal | LowRank) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {type(q).__name__}s with different event shapes cannot be computed"
        )


def _trace_of_square(matrix: Tensor) -> Tensor:
    """trace(X X.T)."""
    return matrix.pow(2).sum((-2, -1))


def _log_det(p: MultivariateNormal | LowRank) -> Tensor:
    if isinstance(p, LowRankMultivariateNormal):
        return _batch_lowrank_logdet(p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril)
    return 2 * p._half_log_det()


def _distance(p: MultivariateNormal | LowRank, q: MultivariateNormal | LowRank) -> Tensor:
    difference = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        return _batch_lowrank_mahalanobis(
            q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, difference, q._capacitance_tril
        )
    return _batch_mahalanobis(q._unbroadcasted_scale_tril, difference)


def _woodbury_root(q: LowRank) -> Tensor:
    """A with q's precision D**-1 - A.T A."""
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return functions.linalg_solve_triangular(q._capacitance_tril, scaled, upper=False)


def _assemble(p: MultivariateNormal | LowRank, q: MultivariateNormal | LowRank, trace: Tensor) -> Tensor:
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_low_rank(p: LowRank, q: LowRank) -> Tensor:
    _check_events(p, q)
    A = _woodbury_root(q)
    p_factor, p_diag = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    q_diag = q._unbroadcasted_cov_diag
    trace = (
        (p_diag / q_diag).sum(-1)
        + _trace_of_square(p_factor * q_diag.rsqrt().unsqueeze(-1))
        - _trace_of_square(A * p_diag.sqrt().unsqueeze(-2))
        - _trace_of_square(A.matmul(p_factor))
    )
    return _assemble(p, q, trace)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low_rank(p: MultivariateNormal, q: LowRank) -> Tensor:
    _check_events(p, q)
    factor = p._unbroadcasted_scale_tril
    first = _trace_of_square(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    return _assemble(p, q, first - _trace_of_square(_woodbury_root(q).matmul(factor)))


def _solved_trace(q: MultivariateNormal, factor: Tensor) -> Tensor:
    batch = broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], factor.shape[:-2])
    left = q._unbroadcasted_scale_tril.expand((*batch, -1, -1))
    right = factor.expand((*batch, -1, -1))
    return _trace_of_square(functions.linalg_solve_triangular(left, right, upper=False))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_full(p: LowRank, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    diagonal = functions.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    return _assemble(p, q, _solved_trace(q, p._unbroadcasted_cov_factor) + _solved_trace(q, diagonal))


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    return _assemble(p, q, _solved_trace(q, p._unbroadcasted_scale_tril))
