"""What the kernels of kernels/solvers.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.matrices import (
    is_vector,
    refuse_half,
    require_fitting,
    require_floating,
    require_matrix,
    require_same_dtype,
    require_square,
)
from pullback.typing import Array

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _check_lstsq(A: Array, B: Array, driver: str | None) -> None:
    if A.dtype.kind not in "fc" or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if A.dtype != B.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{scalar_type_name(A.dtype)} and other's dtype {scalar_type_name(B.dtype)}"
        )
    difference = A.ndim - B.ndim
    if not 0 <= difference <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(A.shape, B.shape)
    if A.shape[-2] != (B.shape[-1] if vector else B.shape[-2]):
        side = "other.size(-1)" if vector else "other.size(-2)"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match {side}")
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of ({', '.join(_DRIVERS)})")


def linalg_solve_ex(A: Array, B: Array, *, left: bool = True, check_errors: bool = False) -> None:
    require_floating("linalg.solve", A)
    require_square("linalg.solve", A)
    require_same_dtype("linalg.solve", A, B)
    vector = is_vector(A.shape, B.shape)
    if not vector:
        require_matrix("linalg.solve", B, "B")
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Incompatible shapes of A and B for the equation XA = B "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-1]}x1)"
        )
    require_fitting("linalg.solve", A, B, left=left, columns=not vector)
    refuse_half(A, "linalg_solve_ex")


def cholesky_solve(input: Array, input2: Array, upper: bool = False) -> None:
    L = input2
    if input.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {input.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    if L.shape[-1] != L.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {L.shape[-2]} by {L.shape[-1]} matrices"
        )
    if L.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b "
            f"matrix is {input.shape[-2]} by {input.shape[-1]}"
        )
    if L.dtype != input.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_type_name(input.dtype)} and A of type "
            f"{scalar_type_name(L.dtype)} instead."
        )
    refuse_half(L, "cholesky_solve_cpu")


def cholesky_inverse(input: Array, upper: bool = False) -> None:
    require_square("cholesky_inverse", input)
    refuse_half(input, "cholesky_inverse_out_cpu")


def linalg_lstsq(A: Array, B: Array, rcond: float | None = None, *, driver: str | None = None) -> None:
    _check_lstsq(A, B, driver)
