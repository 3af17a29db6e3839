"""What the kernels of kernels/triangular.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.matrices import (
    refuse_half,
    require_dimensions,
    require_fitting,
    require_matrix,
    require_rows,
    require_square,
)
from pullback.typing import Array


def linalg_solve_triangular(A: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> None:
    require_square("linalg.solve_triangular", A)
    require_matrix("linalg.solve_triangular", B, "B")
    require_fitting("linalg.solve_triangular", A, B, left=left)
    refuse_half(A, "triangular_solve_cpu")


def triangular_solve(
    input: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> None:
    require_dimensions("torch.triangular_solve", input, "b")
    require_dimensions("torch.triangular_solve", A, "A")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    require_rows("triangular_solve", A, input)
