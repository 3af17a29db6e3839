"""Determinants, inverses, pseudoinverses, ranks and exponentials of (batches of) matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.dtype import real_of
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.checks.elements import failed_factorization
from pullback.checks.matrices import require_square
from pullback.checks.matrix_functions import _check_slogdet
from pullback.kernels.decompositions import _svd_problem, singular_values
from pullback.kernels.lu import _factorize
from pullback.kernels.matrix_checks import _raise_for_info
from pullback.native import by_device, native
from pullback.typing import Array

_SINGULAR = (
    "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
)


@native
@checked
def linalg_det(A: Array) -> Array:
    """The determinant: the product of the pivots. (NumPy's is the exponential of a sum of logarithms, and inexact.)

    For square matrices (..., n, n) the result has the shape (...).

    >>> import pullback
    >>> pullback.linalg.det(pullback.tensor([[2.0, 1.0], [0.0, 3.0]]))
    tensor(6.)
    """
    LU, pivots, _ = _factorize(A)
    exchanges = np.sum(pivots != np.arange(1, A.shape[-1] + 1), axis=-1)
    wide = {"f": np.float64, "F": np.complex128}.get(A.dtype.char, A.dtype)  # pivots of very different sizes
    product = np.prod(np.diagonal(LU, axis1=-2, axis2=-1), axis=-1, dtype=wide).astype(A.dtype)
    return np.where(exchanges % 2 == 1, -product, product)


@by_device
@checked
def linalg_slogdet(A: Array) -> tuple[Array, Array]:
    """The sign of the determinant (its phase, for complex matrices) and the logarithm of its magnitude."""
    note_factorization(A)
    sign, logarithm = np.linalg.slogdet(A)
    return sign, logarithm


def check_logdet(A: Array) -> None:
    """Refuse what logdet refuses."""
    _check_slogdet("logdet", A)


def any_singular(A: Array, determinant: Array) -> bool:
    """Whether a matrix of the batch has a zero determinant."""
    return bool(np.any(determinant == 0)) and A.shape[-1] > 0


@by_device
@checked
def linalg_inv_ex(A: Array, *, check_errors: bool = False) -> tuple[Array, Array]:
    """The inverse, and the position of the zero on the diagonal of U if there is none."""
    inverse, info = _invert(A)
    if check_errors:
        _raise_for_info("linalg.inv_ex", info, _SINGULAR)
    return inverse, info


@by_device
def check_inverse(info: Array) -> None:
    """Raise if linalg.inv met a singular matrix."""
    _raise_for_info("linalg.inv", info, _SINGULAR)


@native
def _invert(A: Array) -> tuple[Array, Array]:
    note_factorization(A)
    try:
        # The inverse of the transpose is the transpose of the inverse: columns then lie together, as PyTorch's do.
        return np.linalg.inv(A.swapaxes(-1, -2)).swapaxes(-1, -2), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = np.asarray(_factorize(A)[2])
        singular = (info != 0)[..., None, None]
        inverse = np.linalg.inv(np.where(singular, np.eye(A.shape[-1], dtype=A.dtype), A))
        return np.where(singular, np.array(np.inf, A.dtype), inverse), info


@by_device
@checked
def linalg_pinv(A: Array, atol: Any, rtol: Any, hermitian: bool = False) -> Array:
    """The pseudoinverse; singular values up to max(atol, rtol * the largest) count as zero."""
    if A.size == 0:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    note_factorization(A)
    if hermitian:
        require_square("linalg.eigh", A)
        values, vectors = np.linalg.eigh(A)
        inverted = _inverted(values, _tolerance(np.abs(values).max(-1, keepdims=True), A, atol, rtol))
        return (vectors * inverted[..., None, :]) @ vectors.swapaxes(-1, -2).conj()
    try:
        U, S, Vh = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        raise failed_factorization(_svd_problem(A)) from None
    inverted = _inverted(S, _tolerance(S.max(-1, keepdims=True), A, atol, rtol))
    return (Vh.swapaxes(-1, -2).conj() * inverted[..., None, :]) @ U.swapaxes(-1, -2).conj()


def _inverted(values: Array, tolerance: Array) -> Array:
    kept = np.abs(values) > tolerance
    return np.where(kept, 1 / np.where(kept, values, 1), 0).astype(values.dtype)


def _tolerance(largest: Array, A: Array, atol: Any, rtol: Any) -> Array:
    """The size up to which singular values count as zero, with a last dimension of 1."""
    absolute = np.asarray(0.0 if atol is None else atol)
    if rtol is None:
        default = max(A.shape[-2:]) * float(np.finfo(real_of(A.dtype)).eps)
        relative = np.where(absolute > 0, 0.0, default)
    else:
        relative = np.asarray(rtol)
    return np.maximum(absolute[..., None], relative[..., None] * largest).astype(largest.dtype)


@by_device
@checked
def linalg_matrix_rank(input: Array, atol: Any, rtol: Any, hermitian: bool = False) -> Array:
    """The number of singular values above max(atol, rtol * the largest)."""
    if input.size == 0:
        return np.zeros(input.shape[:-2], np.int64)
    note_factorization(input)
    if hermitian:
        require_square("linalg.eigh", input)
        values = np.abs(np.linalg.eigvalsh(input))
    else:
        values = singular_values(input)
    tolerance = _tolerance(values.max(-1, keepdims=True), input, atol, rtol)
    return np.sum(values > tolerance, axis=-1, dtype=np.int64)


# Coefficients of the numerators of the Padé approximations of exp; the denominators have alternating signs.
# The second entry is the largest 1-norm for which the approximation is good to the last bit.
_PADE = {
    4: ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.925724783138660),
    8: (
        (
            64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
            10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
        ),
        3.0,  # 5.37 would do for the approximation; there the denominator of 20 times a projection loses three bits more
    ),
}  # fmt: skip


@by_device
@checked
def linalg_matrix_exp(A: Array) -> Array:
    """The matrix exponential, by a Padé approximation of the scaled matrix, squared repeatedly."""
    if A.size == 0:
        return A.copy()
    if A.dtype.itemsize == 2:
        return linalg_matrix_exp(A.astype(np.float32)).astype(A.dtype)
    note_factorization(A)
    coefficients, bound = _PADE[real_of(A.dtype).itemsize]
    norms = np.abs(A).sum(-2).max(-1)
    finite = np.isfinite(norms)
    with np.errstate(divide="ignore"):
        steps = np.where(finite & (norms > bound), np.ceil(np.log2(np.where(finite, norms, 1) / bound)), 0).astype(int)
    scaled = A * np.exp2(-steps.astype(norms.dtype))[..., None, None].astype(norms.dtype)
    result = np.where(
        finite[..., None, None], _pade(np.where(finite[..., None, None], scaled, 0), coefficients), np.nan
    )
    result = result.astype(A.dtype, copy=False)
    for step in range(int(np.max(steps))):
        result = np.where((steps > step)[..., None, None], result @ result, result)
    return result


def _pade(A: Array, coefficients: tuple[float, ...]) -> Array:
    """p(A) / p(-A): the even and the odd part of p are sums of powers of A^2."""
    identity = np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape)
    square, power = A @ A, identity
    even, odd = coefficients[0] * identity, coefficients[1] * identity
    for position in range(2, len(coefficients), 2):
        power = power @ square
        even = even + coefficients[position] * power
        odd = odd + coefficients[position + 1] * power
    odd = A @ odd
    return np.linalg.solve(even - odd, even + odd)
