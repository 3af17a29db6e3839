"""Products of Householder reflectors, the form in which QR decompositions are stored."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.kernels.decompositions import identity_like
from pullback.kernels.matrix_checks import _by_columns, _refuse_half
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
    for position in range(count) if transpose else range(count - 1, -1, -1):
        vector = vectors[..., :, position, None]
        factor = tau[..., position, None, None]
        factor = factor.conj() if transpose else factor
        result = result - factor * vector * (vector.swapaxes(-1, -2).conj() @ result)
    return result


@by_device
def linalg_householder_product(input: Array, tau: Array) -> Array:
    """The first columns of the product of the reflectors that geqrf returns."""
    _check("torch.linalg.householder_product", input, tau)
    _refuse_half(input, "orgqr_cpu")
    return _by_columns(apply_reflectors(input, tau, identity_like(input), False))


@by_device
def ormqr(input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False) -> Array:
    """Q `input3` or `input3` Q, with Q or its adjoint, for the product Q of the reflectors that geqrf returns."""
    tau, other = input2, input3
    _check_product(input, tau, other, left)
    _refuse_half(input, "ormqr_cpu")
    if left:
        return _by_columns(apply_reflectors(input, tau, other, transpose))
    flipped = apply_reflectors(input, tau, other.swapaxes(-1, -2).conj(), not transpose)
    return _by_columns(flipped.swapaxes(-1, -2).conj())


def _check(function: str, input: Array, tau: Array) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{function}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{function}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{function}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{function}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{function}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if input.dtype != tau.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {scalar_type_name(tau.dtype)} does not match input dtype "
            f"{scalar_type_name(input.dtype)}"
        )


def _check_product(input: Array, tau: Array, other: Array, left: bool) -> None:
    if input.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if other.shape[side] < tau.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] > input.shape[-1]:
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if input.ndim - tau.ndim != 1 or input.ndim != other.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected tau to have one dimension less than input and other to have as many, but got "
            f"tau.ndim equal to {tau.ndim}, input.ndim equal to {input.ndim}, other.ndim equal to {other.ndim}"
        )
    for name, value in (("tau", tau), ("other", other)):
        if value.dtype != input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{scalar_type_name(input.dtype)} and {name} has dtype {scalar_type_name(value.dtype)}"
            )
