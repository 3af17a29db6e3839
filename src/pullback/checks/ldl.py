"""What the kernels of kernels/ldl.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.matrices import refuse_half, require_dimensions, require_floating, require_rows, require_square
from pullback.typing import Array


def linalg_ldl_factor_ex(A: Array, *, hermitian: bool = False, check_errors: bool = False) -> None:
    require_square("torch.linalg.ldl_factor_ex", A)
    require_floating("torch.linalg.ldl_factor_ex", A)
    refuse_half(A, "ldl_factor_kernel_cpu")


def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> None:
    require_square("torch.linalg.ldl_solve", LD, "LD")
    require_dimensions("torch.linalg.ldl_solve", B, "B")
    require_rows("torch.linalg.ldl_solve", LD, B)
