"""Newton and Schulz's iteration towards an orthogonal matrix, as Muon does it: rounded to 16 bits after each product."""

from __future__ import annotations

import numpy as np

from pullback.backend.unpromised_bits import note_product
from pullback.checks import checked
from pullback.native import native
from pullback.typing import Array, DType


@native
@checked
def newton_schulz(matrix: Array, coefficients: tuple[float, float, float], steps: int) -> Array:
    """Iterate x -> a x + (b x x' + c (x x')^2) x; `matrix` has no more rows than columns and a norm of at most one.

    Values stay in float32 between the roundings, so that they are converted once, and symmetric products are written
    as a matrix times its own transpose: NumPy then computes half of them. Compiled for bfloat16 where the processor
    multiplies it.
    """
    dtype = matrix.dtype
    a, b, c = [np.float32(coefficient) for coefficient in coefficients]
    x = matrix.astype(np.float32, order="C")
    note_product(x, len(x))
    for _ in range(steps):
        gram = _rounded(x @ x.T, dtype)
        weights = gram @ gram.T
        weights *= c
        weights += gram * b
        product = _rounded(weights, dtype) @ x
        x *= a
        product += x
        x = _rounded(product, dtype)
    return x.astype(dtype)


def _rounded(values: Array, dtype: DType) -> Array:
    return values.astype(dtype).astype(np.float32)
