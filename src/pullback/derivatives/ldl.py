"""Rules of kernels/ldl.py: PyTorch differentiates neither."""

from __future__ import annotations

from pullback.rules import Pullback, Tensor, general, not_implemented, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    outputs=("LD", "pivots", "info"),
    differentiable=(True, False, False),
    structure="matrices",
    out_dtype="c_types",
    returns=True,
)
def linalg_ldl_factor_ex(grad: Tensor, A: Tensor) -> Pullback:
    return wrt(A=not_implemented("aten::linalg_ldl_factor_ex"))


@general(structure="matrices", vectors=("pivots",), out_dtype="c_types")
def linalg_ldl_solve(grad: Tensor, LD: Tensor, B: Tensor) -> Pullback:
    return wrt(LD=not_implemented("aten::linalg_ldl_solve"), B=not_implemented("aten::linalg_ldl_solve"))
