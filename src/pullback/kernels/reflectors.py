"""Products of Householder reflectors, the form in which QR decompositions are stored."""

from __future__ import annotations

import numpy as np

from pullback.backend.unpromised_bits import note_product
from pullback.checks import checked
from pullback.kernels.decompositions import identity_like
from pullback.kernels.matrix_checks import _by_columns
from pullback.native import by_device
from pullback.typing import Array


def _reflectors(input: Array, count: int) -> Array:
    """The vectors v_i as columns: zeros above position i, one at it, and what is below the diagonal of `input`."""
    vectors = np.tril(input[..., :, :count], -1)
    index = np.arange(min(count, input.shape[-2]))
    vectors[..., index, index] = 1
    return vectors


@by_device
def apply_reflectors(input: Array, tau: Array, other: Array, transpose: bool) -> Array:
    """Q `other`, or Q^H `other`, for Q = H_1 ... H_k with H_i = 1 - tau_i v_i v_i^H."""
    count = tau.shape[-1]
    vectors = _reflectors(input, count)
    result = np.array(other)
    note_product(input, other.shape[-1])
    for position in range(count) if transpose else range(count - 1, -1, -1):
        vector = vectors[..., :, position, None]
        factor = tau[..., position, None, None]
        factor = factor.conj() if transpose else factor
        result = result - factor * vector * (vector.swapaxes(-1, -2).conj() @ result)
    return result


@by_device
@checked
def linalg_householder_product(input: Array, tau: Array) -> Array:
    """The first columns of the product of the reflectors that geqrf returns."""
    return _by_columns(apply_reflectors(input, tau, identity_like(input), False))


@by_device
@checked
def ormqr(input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False) -> Array:
    """Q `input3` or `input3` Q, with Q or its adjoint, for the product Q of the reflectors that geqrf returns."""
    tau, other = input2, input3
    if left:
        return _by_columns(apply_reflectors(input, tau, other, transpose))
    flipped = apply_reflectors(input, tau, other.swapaxes(-1, -2).conj(), not transpose)
    return _by_columns(flipped.swapaxes(-1, -2).conj())
