"""Solvers of linear systems under PyTorch's names, of torch.linalg (with the prefix `linalg_`) and the older ones."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.facts import declare
from pullback.graph.in_place import write_out
from pullback.kernels.solvers import check_solution
from pullback.modes.interception import interceptable, taken_whole
from pullback.modes.user_warnings import warn_of_former_function
from pullback.tensor.dims import wrap_dim
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor


@interceptable
@declare(autocast="float32", out_dtype="c_types")
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """X of AX = B, or of XA = B.

    >>> import pullback
    >>> pullback.linalg.solve(pullback.tensor([[2., 0.], [0., 4.]]), pullback.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    result, info = G.linalg_solve_ex(A, B, left=left)
    check_solution(info._array)
    return result if out is None else write_out("linalg_solve", out, result)


def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As `solve`, with the position of the zero pivot of a singular matrix instead of an error.

    `info` is 0 where the system could be solved; `check_errors` raises nonetheless.

    >>> import pullback
    >>> pullback.linalg.solve_ex(pullback.tensor([[4.]]), pullback.tensor([[8.]])).result
    tensor([[2.]])
    """
    return named_results("linalg_solve_ex", G.linalg_solve_ex, A, B, left=left, check_errors=check_errors, out=out)


def linalg_solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Tensor:
    """X of AX = B, or of XA = B, for a triangular A.

    >>> import pullback
    >>> A = pullback.tensor([[1., 1.], [0., 2.]])
    >>> pullback.linalg.solve_triangular(A, pullback.tensor([[3.], [2.]]), upper=True)
    tensor([[2.],
            [1.]])
    """
    _require_native("triangular_solve_cpu", A)
    return G.linalg_solve_triangular(A, G.to_dtype(B, A._array.dtype), upper=upper, left=left,
                                     unitriangular=unitriangular, out=out)  # fmt: skip


def _require_native(kernel: str, A: Tensor) -> None:
    if A._array.dtype.char not in "fdFD":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type_name(A._array.dtype)}'")


@declare(found="torch and method")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """X of AX = b for a triangular A, or its adjoint."""
    warn_of_former_function("triangular_solve", "torch.linalg.solve_triangular")
    if input._array.dtype != A._array.dtype:
        first, second = scalar_type_name(input._array.dtype), scalar_type_name(A._array.dtype)
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {first} and A of type {second} instead."
        )
    return named_results("triangular_solve", G.triangular_solve, input, A, upper, transpose, unitriangular, out=out)


def linalg_lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None
) -> Any:
    """The X of least norm for which AX is nearest to B.

    >>> import pullback
    >>> A = pullback.tensor([[1., 0.], [0., 2.], [0., 0.]])
    >>> pullback.linalg.lstsq(A, pullback.ones(3, 1)).solution
    tensor([[1.0000],
            [0.5000]])
    """
    return named_results("linalg_lstsq", G.linalg_lstsq, A, B, rcond, driver=driver, out=out)


@declare(autocast="float32", found="torch and method")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """X of AX = `input` from the LU factorization of A, under the older name."""
    return G.linalg_lu_solve(LU_data, LU_pivots, input, out=out)


@taken_whole
@declare(autocast="float32")
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Any = None) -> Tensor:
    """X of tensordot(A, X) = B.

    >>> import pullback
    >>> pullback.linalg.tensorsolve(pullback.eye(6).reshape(2, 3, 6), pullback.ones(2, 3)).shape
    pullback.Size([6])
    """
    ndim = A._array.ndim
    moved = A
    if dims is not None:
        wrapped = [wrap_dim(dim, ndim) for dim in dims]
        moved = G.permute(A, (*[d for d in range(ndim) if d not in wrapped], *wrapped))
    shape, split = moved._array.shape, B._array.ndim
    unknown, known = math.prod(shape[split:]), B._array.size
    if unknown != known:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
            f"got {unknown} != {known}"
        )
    square = G.reshape(moved, (known, known))
    result = G.reshape(linalg_solve(square, G.reshape(B, (known,))), tuple(shape[split:]))
    return result if out is None else write_out("linalg_tensorsolve", out, result)


@taken_whole
@declare(autocast="float32")
def linalg_tensorinv(A: Tensor, ind: int = 2, *, out: Any = None) -> Tensor:
    """The inverse of the map that tensordot with A is.

    The first `ind` sizes have the product of the others; the result has the others first.

    >>> import pullback
    >>> pullback.linalg.tensorinv(2 * pullback.eye(4).reshape(4, 2, 2), ind=1).shape[0]
    2
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = A._array.shape
    start, rest = shape[:ind], shape[ind:]
    if math.prod(rest) != math.prod(start):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(rest)} != {math.prod(start)}"
        )
    from pullback.functions.matrix_functions import linalg_inv

    square = G.reshape(A, (math.prod(start), math.prod(rest)))
    result = G.reshape(linalg_inv(square), (*rest, *start))
    return result if out is None else write_out("linalg_tensorinv", out, result)
