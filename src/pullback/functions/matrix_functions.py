"""Determinants, inverses, powers and ranks under PyTorch's names; those of torch.linalg have the prefix `linalg_`."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import int64, is_float_or_complex, scalar_type_name
from pullback.checks.matrices import require_square
from pullback.facts import declare
from pullback.functions.matrix_products import matmul
from pullback.graph.history import refuse_history
from pullback.graph.in_place import write_out
from pullback.kernels.matrix_functions import check_inverse, check_logdet
from pullback.modes.interception import interceptable, structured, taken_whole
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def det(input: Tensor) -> Tensor:
    """The determinant.

    >>> import pullback
    >>> pullback.det(pullback.tensor([[2., 0.], [0., 3.]]))
    tensor(6.)
    """
    return G.linalg_det(input)


def linalg_slogdet(A: Tensor, *, out: Any = None) -> Any:
    """The sign of the determinant and the logarithm of its magnitude.

    A is (*, n, n), both results (*). det(A) = sign * exp(logabsdet), without overflow.

    >>> import pullback
    >>> pullback.linalg.slogdet(pullback.tensor([[-2.]])).sign
    tensor(-1.)
    """
    return named_results("linalg_slogdet", G.linalg_slogdet, A, out=out)


@declare(returns="sign logabsdet", found="torch and method")
def slogdet(input: Tensor) -> Any:
    """As `linalg.slogdet`."""
    return named_results("slogdet", G.linalg_slogdet, input)


@declare(found="torch and method")
@structured("matrices")
@interceptable
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: nan if it is negative, -inf if it is zero.

    For square matrices (..., n, n) the result has the shape (...).

    >>> import pullback
    >>> pullback.logdet(2 * pullback.eye(2))
    tensor(1.3863)
    """
    check_logdet(input._array)
    sign, logarithm = G.linalg_slogdet(input)
    if input._array.dtype.kind == "c":
        return G.add(G.log(sign), logarithm)
    return G.where(G.eq(sign, -1.0), math.nan, logarithm)


@structured("matrices")
@interceptable
@declare(autocast="float32", out_dtype="c_types")
def linalg_inv(A: Tensor, *, out: Any = None) -> Tensor:
    """The inverse.

    >>> import pullback
    >>> pullback.linalg.inv(pullback.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = G.linalg_inv_ex(A)
    check_inverse(info._array)
    return inverse if out is None else write_out("linalg_inv", out, inverse)


@taken_whole
@declare(autocast="float32", found="torch and method")
def inverse(input: Tensor, *, out: Any = None) -> Tensor:
    """As `linalg.inv`.

    `input` is a square matrix, or a batch of them (*, n, n), and the result has its shape. input @ y is the identity.

    >>> import pullback
    >>> pullback.inverse(pullback.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return linalg_inv(input, out=out)


def linalg_inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """As `inv`, with the position of the zero pivot of a singular matrix instead of an error.

    `info` is 0 where the matrix could be inverted; `check_errors` raises nonetheless.

    >>> import pullback
    >>> pullback.linalg.inv_ex(pullback.tensor([[4.]])).inverse
    tensor([[0.2500]])
    """
    return named_results("linalg_inv_ex", G.linalg_inv_ex, A, check_errors=check_errors, out=out)


@interceptable
def linalg_pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    """The pseudoinverse.

    >>> import pullback
    >>> pullback.linalg.pinv(pullback.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    if isinstance(rcond, bool):
        rcond, hermitian = None, rcond
    relative = rtol if rcond is None else rcond
    refuse_history("linalg_pinv", atol=atol, rtol=relative)
    return G.linalg_pinv(A, _plain(atol), _plain(relative), hermitian, out=out)


@taken_whole
@declare(autocast="float32", found="torch and method")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """As `linalg.pinv`, with another default.

    Of matrices (..., n, m), in the shape (..., m, n); singular values up to `rcond` times the largest count as zero.

    >>> import pullback
    >>> pullback.pinverse(pullback.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return linalg_pinv(input, rcond)


def _plain(value: Any) -> Any:
    return value._array if isinstance(value, TensorBase) else value


@interceptable
def linalg_matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None,
    A: Any = None,
) -> Tensor:  # fmt: skip
    """The number of singular values that do not count as zero.

    Those below max(atol, rtol * the largest) do not count; rtol is max(n, m) * eps of the dtype unless given. A is (*,
    n, m), the result (*).

    >>> import pullback
    >>> pullback.linalg.matrix_rank(pullback.ones(3, 3))
    tensor(1)
    """
    input = input if A is None else A
    if isinstance(tol, bool):
        tol, hermitian = None, tol
    if tol is not None:
        atol, rtol = tol, 0.0
    return G.linalg_matrix_rank(input, _plain(atol), _plain(rtol), hermitian, out=out)


@declare(found="torch and method")
def matrix_exp(input: Tensor) -> Tensor:
    """The matrix exponential.

    Of square matrices (..., n, n), each by itself. y = I + A + A @ A / 2 + A @ A @ A / 6 + ...

    >>> import pullback
    >>> pullback.matrix_exp(pullback.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return G.linalg_matrix_exp(input)


def linalg_matrix_power(A: Tensor, n: int, *, out: Any = None) -> Tensor:
    """The product of n copies of A, or of its inverse.

    >>> import pullback
    >>> pullback.linalg.matrix_power(pullback.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if not isinstance(n, int):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    require_square("linalg.matrix_power", A._array)
    result = _power(A, n)
    return result if out is None else write_out("linalg_matrix_power", out, result)


@declare(found="torch and method")
def matrix_power(input: Tensor, n: int, *, out: Any = None) -> Tensor:
    """As `linalg.matrix_power`.

    Of square matrices (..., n, n): the product of `n` of them; n = 0 gives the identity, n < 0 powers of the inverse.

    >>> import pullback
    >>> pullback.matrix_power(pullback.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return linalg_matrix_power(input, n, out=out)


def _power(A: Tensor, n: int) -> Tensor:
    if n == 0:
        return G.copy(G.clone(A), G.identity_like(A))
    if n < 0:
        A, n = linalg_inv(A), -n
        if n == 1:
            return A
    elif n == 1:
        return G.clone(A)
    if n == 3:
        return matmul(matmul(A, A), A)
    result: Tensor | None = None
    square = A
    while True:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        if not n:
            assert result is not None
            return result
        square = matmul(square, square)


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension.

    >>> import pullback
    >>> pullback.linalg.vander(pullback.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if x._array.ndim == 0:
        x = G.unsqueeze(x, 0)
    size = x._array.shape[-1] if N is None else N
    if size <= 1:
        raise RuntimeError("N must be greater than 1.")
    dtype = x._array.dtype
    if dtype.kind not in "fciu" or dtype == "float16":
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {scalar_type_name(dtype)}"
        )
    return _powers(x, size)


def _powers(x: Tensor, size: int) -> Tensor:
    """The powers 0 to size - 1 along a new last dimension."""
    wide = G.expand(G.unsqueeze(x, x._array.ndim), (*x._array.shape, size - 1))
    powers = G.cumprod(wide, -1)
    ones = G.ones_in_shape_of(G.slice_view(powers, powers._array.ndim - 1, 0, 1, 1))
    return G.cat([ones, powers], powers._array.ndim - 1)


@declare(found="torch")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector as columns, in descending order unless `increasing`.

    For n elements the shape is (n, N), with N = n if it is not given. y[i, j] = x[i] ** (N - 1 - j).

    >>> import pullback
    >>> pullback.vander(pullback.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if not is_float_or_complex(x._array.dtype):
        x = G.to_integer(x, int64.numpy_dtype)
    size = x._array.shape[0] if N is None else N
    if size < 0:
        raise RuntimeError("N must be non-negative.")
    if size > 1:
        result = _powers(x, size)
    else:
        whole = G.expand(G.unsqueeze(x, 1), (x._array.shape[0], 1))
        result = G.slice_view(G.ones_in_shape_of(whole), 1, 0, size, 1)
    return result if increasing else G.flip(result, (1,))


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices.

    (*, n, m) with the dimensions `dim1` and `dim2` becomes (*, the diagonal's size); `offset` moves to the right.

    >>> import pullback
    >>> pullback.linalg.diagonal(pullback.eye(2))
    tensor([1., 1.])
    """
    return G.diagonal(A, offset, dim1, dim2)
