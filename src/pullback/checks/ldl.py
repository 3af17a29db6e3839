"""What the kernels of kernels/ldl.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.matrices import refuse_half, require_floating, require_square
from pullback.typing import Array


def linalg_ldl_factor_ex(A: Array, *, hermitian: bool = False, check_errors: bool = False) -> None:
    require_square("torch.linalg.ldl_factor_ex", A)
    require_floating("torch.linalg.ldl_factor_ex", A)
    refuse_half(A, "ldl_factor_kernel_cpu")


def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> None:
    require_square("torch.linalg.ldl_solve", LD, "LD")
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but "
            f"each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
