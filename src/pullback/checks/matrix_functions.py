"""What the kernels of kernels/matrix_functions.py ask of their arguments."""

from __future__ import annotations

from typing import Any

from pullback.backend.dtype import scalar_type_name
from pullback.checks.matrices import refuse_half, require_floating, require_matrix, require_square
from pullback.typing import Array


def _check_slogdet(function: str, A: Array) -> None:
    require_square(function, A)
    require_floating(function, A, low_precision=False)


def linalg_det(A: Array) -> None:
    require_square("linalg.det", A)
    require_floating("linalg.det", A)
    refuse_half(A, "lu_cpu")


def linalg_slogdet(A: Array) -> None:
    _check_slogdet("linalg.slogdet", A)


def linalg_inv_ex(A: Array, *, check_errors: bool = False) -> None:
    require_square("linalg.inv", A)
    require_floating("linalg.inv", A, low_precision=False)


def linalg_pinv(A: Array, atol: Any, rtol: Any, hermitian: bool = False) -> None:
    if A.ndim < 2 or A.dtype.kind not in "fc" or A.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({scalar_type_name(A.dtype)}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )


def linalg_matrix_rank(input: Array, atol: Any, rtol: Any, hermitian: bool = False) -> None:
    if input.dtype.kind not in "fc" or input.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    require_matrix("torch.linalg.matrix_rank", input, "input")


def linalg_matrix_exp(A: Array) -> None:
    require_floating("linalg.matrix_exp", A)
    require_square("linalg.matrix_exp", A)
