"""Rules of kernels/grouped_products.py: every form's gradients are products in the same groups."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, multilinear, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@multilinear(out=False)
def grouped_mm(grad: Tensor, input: Tensor, mat2: Tensor, offs: Tensor) -> Pullback:
    return wrt(
        input=F.grouped_mm(grad, F.transpose(mat2, -2, -1), offs),
        mat2=F.grouped_mm(F.transpose(input, -2, -1), grad, offs),
    )
