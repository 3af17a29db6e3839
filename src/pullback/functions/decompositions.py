"""Decompositions under PyTorch's names, of torch.linalg (here with the prefix `linalg_`) and the older ones."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import write_out
from pullback.kernels.decompositions import check_cholesky
from pullback.modes.interception import interceptable, structured
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_of_former_function
from pullback.tensor.return_types import named_results, return_type
from pullback.tensor.tensor import Tensor


@structured("matrices")
@interceptable
@declare(autocast="float32", out_dtype="c_types")
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Any = None) -> Tensor:
    """The lower triangular L of A = L L^H, or its adjoint.

    >>> import pullback
    >>> pullback.linalg.cholesky(pullback.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    L, info = G.linalg_cholesky_ex(A, upper=upper)
    check_cholesky(info._array)
    return L if out is None else write_out("linalg_cholesky", out, L)


def cholesky(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """As `linalg.cholesky`, under the older name.

    `input` is (*, n, n), symmetric and positive definite; the result L has its shape. input = L @ L^H, or U^H @ U with
    `upper`.

    >>> import pullback
    >>> pullback.cholesky(pullback.tensor([[4., 0.], [0., 9.]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    warn_of_former_function("cholesky", "torch.linalg.cholesky")
    return G.cholesky(input, upper, out=out)


def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As `cholesky`, with the order of the first minor that is not positive instead of an error.

    `info` is 0 where it succeeded; `check_errors` raises nonetheless.

    >>> import pullback
    >>> pullback.linalg.cholesky_ex(pullback.tensor([[4.]])).info
    tensor(0, dtype=pullback.int32)
    """
    return named_results("linalg_cholesky_ex", G.linalg_cholesky_ex, A, upper=upper, check_errors=check_errors, out=out)


def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q with orthonormal columns and R upper triangular of A = QR.

    >>> import pullback
    >>> pullback.linalg.qr(pullback.eye(2)).R.shape
    pullback.Size([2, 2])
    """
    return named_results("linalg_qr", G.linalg_qr, A, mode, out=out)


@declare(autocast="float32", returns="Q R", found="torch and method")
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """As `linalg.qr`, under the older name.

    `input` is (*, m, n). With `some` Q is (*, m, min(m, n)), else square. input = Q @ R, where R has zeros below its
    diagonal.

    >>> import pullback
    >>> pullback.qr(pullback.ones(3, 2)).R.shape
    pullback.Size([2, 2])
    """
    warn_of_former_function("qr", "torch.linalg.qr")
    return named_results("qr", G.linalg_qr, input, "reduced" if some else "complete", out=out)


@declare(found="torch and method")
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """The QR decomposition as reflectors and their factors."""
    return named_results("geqrf", G.geqrf, input, out=out)


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """U, S and Vh of A = U diag(S) Vh.

    >>> import pullback
    >>> pullback.linalg.svd(pullback.diag(pullback.tensor([1., 3.]))).S
    tensor([3., 1.])
    """
    return named_results("linalg_svd", G.linalg_svd, A, full_matrices, driver=driver, out=out)


@declare(autocast="float32", out_dtype="c_types")
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Any = None) -> Tensor:
    """The singular values, in descending order.

    A is (*, n, m), the result (*, min(n, m)) and real.

    >>> import pullback
    >>> pullback.linalg.svdvals(pullback.tensor([[3., 0.], [0., 4.]]))
    tensor([4., 3.])
    """
    result = G.linalg_svd(A, False, driver=driver)[1] if _is_differentiated(A) else G.singular_values(A)
    return result if out is None else write_out("linalg_svdvals", out, result)


@declare(autocast="float32", out_dtype="c_types", returns="U S V", found="torch and method")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V of A = U diag(S) V^H.

    `input` is (*, m, n). With `some` the matrices have min(m, n) columns, else all; without `compute_uv` they are
    zeros. `linalg.svd` returns V^H in the place of V.

    >>> import pullback
    >>> pullback.svd(pullback.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    if input._array.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input._array.ndim} dimensions instead"
        )
    if compute_uv:
        U, S, Vh = G.linalg_svd(input, not some)
        V: Any = G.transpose(Vh, -2, -1)
        V = G.conjugated(V) if V._array.dtype.kind == "c" else V
    else:
        S = linalg_svdvals(input)
        *batch, rows, columns = input._array.shape
        U = G.zeros_in_shape(input, (*batch, rows, rows))
        V = G.zeros_in_shape(input, (*batch, columns, columns))
    if out is not None:
        return return_type("svd_out")(write_out("svd", tuple(out), (U, S, V)))
    return return_type("svd")((U, S, V))


def _is_differentiated(A: Tensor) -> bool:
    """Whether a graph or a tangent will want the vectors too."""
    records = not process.changed or switches.records
    return (records and A._requires_grad) or bool(
        process.changed and (switches.dual_level >= 0 or switches.interceptors)
    )


def linalg_eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues, ascending, and the eigenvectors of a Hermitian matrix.

    >>> import pullback
    >>> pullback.linalg.eigh(pullback.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    return named_results("linalg_eigh", G.linalg_eigh, A, UPLO, out=out)


@declare(autocast="float32", out_dtype="c_types")
def linalg_eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """The eigenvalues of a Hermitian matrix, ascending.

    A is (*, n, n), the result (*, n) and real; one triangle is read, `UPLO`.

    >>> import pullback
    >>> pullback.linalg.eigvalsh(pullback.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    result = G.linalg_eigh(A, UPLO)[0] if _is_differentiated(A) else G.hermitian_eigenvalues(A, UPLO)
    return result if out is None else write_out("linalg_eigvalsh", out, result)


def linalg_eig(A: Tensor, *, out: Any = None) -> Any:
    """The eigenvalues and the eigenvectors of a square matrix, always complex.

    A is (*, n, n); the results are (*, n) and (*, n, n). A V = V diag(L), columns of V of norm 1 up to their phase.

    >>> import pullback
    >>> pullback.linalg.eig(pullback.tensor([[2., 0.], [0., 3.]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    return named_results("linalg_eig", G.linalg_eig, A, out=out)


@declare(autocast="float32")
def linalg_eigvals(A: Tensor, *, out: Any = None) -> Tensor:
    """The eigenvalues of a square matrix, always complex.

    A is (*, n, n), the result (*, n) in no certain order.

    >>> import pullback
    >>> pullback.linalg.eigvals(pullback.tensor([[2., 0.], [0., 3.]]))
    tensor([2.+0.j, 3.+0.j])
    """
    result = G.linalg_eig(A)[0] if _is_differentiated(A) else G.eigenvalues(A)
    return result if out is None else write_out("linalg_eigvals", out, result)


def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U of A = PLU.

    >>> import pullback
    >>> pullback.linalg.lu(pullback.tensor([[1., 2.], [3., 4.]])).L
    tensor([[1.0000, 0.0000],
            [0.3333, 1.0000]])
    """
    return named_results("linalg_lu", G.linalg_lu, A, pivot=pivot, out=out)


@structured("matrices")
@interceptable
@declare(out_dtype="c_types", returns="LU pivots")
def linalg_lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """L and U in one matrix, and the pivots.

    A is (*, n, m); `LU` holds L below and U on and above the diagonal, `pivots` (int32) the rows exchanged, from 1.

    >>> import pullback
    >>> pullback.linalg.lu_factor(pullback.tensor([[1., 2.], [4., 4.]])).pivots
    tensor([2, 2], dtype=pullback.int32)
    """
    LU, pivots, info = G.linalg_lu_factor_ex(A, pivot=pivot)
    failed = [int(value) for value in info._array.reshape(-1) if value]
    if failed:
        raise RuntimeError(
            f"torch.linalg.lu_factor: U[{failed[0]},{failed[0]}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )
    if out is not None:
        return return_type("linalg_lu_factor_out")(write_out("linalg_lu_factor", tuple(out), (LU, pivots)))
    return return_type("linalg_lu_factor")((LU, pivots))


def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As `lu_factor`, with the position of the first zero pivot instead of an error."""
    return named_results(
        "linalg_lu_factor_ex", G.linalg_lu_factor_ex, A, pivot=pivot, check_errors=check_errors, out=out
    )


@declare(found="torch")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """P, L and U from what lu_factor returns."""
    return named_results("lu_unpack", G.lu_unpack, LU_data, LU_pivots, unpack_data, unpack_pivots, out=out)


@declare(out_resized="silently", written_in="functional", found="torch and method")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """As `linalg.lu_factor_ex`, under the older name."""
    warn_of_former_function("lu", "torch.linalg.lu_factor / torch.linalg.lu_factor_ex")
    LU, pivots, info = G.linalg_lu_factor_ex(A, pivot=pivot)
    results = return_type("_lu_with_info")((LU, pivots, info)) if get_infos else (LU, pivots)
    return results if out is None else write_out("lu", tuple(out), results)


@structured("matrices")
@interceptable
@declare(out_dtype="c_types", returns="LD pivots")
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """The factors of A = L D L^T (or L D L^H) in one matrix, and the pivots. Needs SciPy."""
    LD, pivots, _ = G.linalg_ldl_factor_ex(A, hermitian=hermitian)
    if out is not None:
        return return_type("linalg_ldl_factor_out")(write_out("linalg_ldl_factor", tuple(out), (LD, pivots)))
    return return_type("linalg_ldl_factor")((LD, pivots))


def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As `ldl_factor`, with the position of a zero in D."""
    return named_results(
        "linalg_ldl_factor_ex", G.linalg_ldl_factor_ex, A, hermitian=hermitian, check_errors=check_errors, out=out
    )


@declare(autocast="float32", found="torch and method")
def orgqr(input: Tensor, input2: Tensor, *, out: Any = None) -> Tensor:
    """As `linalg.householder_product`, under the older name."""
    return G.linalg_householder_product(input, input2, out=out)
