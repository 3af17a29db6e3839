"""What the kernels of kernels/reflectors.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.matrices import refuse_half
from pullback.typing import Array


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


def linalg_householder_product(input: Array, tau: Array) -> None:
    _check("torch.linalg.householder_product", input, tau)
    refuse_half(input, "orgqr_cpu")


def ormqr(input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False) -> None:
    tau, other = input2, input3
    _check_product(input, tau, other, left)
    refuse_half(input, "ormqr_cpu")
