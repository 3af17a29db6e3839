"""What the kernels of kernels/lu.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.checks.matrices import refuse_half, require_fitting, require_same_dtype, require_square
from pullback.typing import Array


def _check_lu(function: str, A: Array, pivot: bool) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{function}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    refuse_half(A, "lu_cpu")


def linalg_lu_factor_ex(A: Array, *, pivot: bool = True, check_errors: bool = False) -> None:
    _check_lu("torch.lu_factor", A, pivot)


def linalg_lu(A: Array, *, pivot: bool = True) -> None:
    _check_lu("linalg.lu", A, pivot)


def lu_unpack(LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True) -> None:
    if LU_data.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    if LU_pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )


def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> None:
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    require_square("linalg.lu_solve", LU, "LU")
    require_same_dtype("linalg.lu_solve", LU, B)
    require_fitting("linalg.lu_solve", LU, B, left=left)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
