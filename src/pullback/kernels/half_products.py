"""Products of matrices of 16-bit floats, accumulated in float32 and rounded once.

Compiled for bfloat16 where the processor multiplies it: Note [Products of bfloat16].
"""

from __future__ import annotations

import numpy as np

from pullback.backend.halves import FLOAT32, cast_half
from pullback.backend.unpromised_bits import note_product
from pullback.native import native
from pullback.typing import Array, Scalar


@native
def multiply_halves(a: Array, b: Array) -> Array:
    """`a @ b`, as np.matmul has it."""
    note_product(a, b.shape[-1] if b.ndim > 1 else 1)
    return cast_half(np.matmul(cast_half(a, FLOAT32), cast_half(b, FLOAT32)), a.dtype)


@native
def add_product_of_halves(input: Array, mat1: Array, mat2: Array, beta: Scalar, alpha: Scalar) -> Array:
    """`beta * input + alpha * (mat1 @ mat2)` of matrices; `input` may be one row for all."""
    note_product(mat1, mat2.shape[-1])
    product = np.matmul(cast_half(mat1, FLOAT32), cast_half(mat2, FLOAT32))
    if alpha != 1:
        product *= np.float32(alpha)
    if beta != 0:
        start = cast_half(input, FLOAT32)
        product += start if beta == 1 else start * np.float32(beta)
    return cast_half(product, input.dtype)
