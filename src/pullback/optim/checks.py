"""Checks of optimizers' arguments."""

from __future__ import annotations

from typing import Any

from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.naming import typename
from pullback.tensor.tensor import Tensor


def check_new_group(group: dict[str, Any], groups: list[dict[str, Any]], *, differentiable: bool) -> None:
    """Refuse a group with parameters that cannot be optimized, or that are optimized already."""
    params = group["params"]
    for param in params:
        if not isinstance(param, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(param))
        if not differentiable and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")
    own = {id(param) for param in params}
    if len(own) != len(params):
        warn_user(
            "optimizer contains a parameter group with duplicate parameters: each is updated as often as it is listed"
        )
    if groups and ("param_names" in group) != ("param_names" in groups[0]):
        known = "with names" if "param_names" in groups[0] else "without names"
        given = "with names" if "param_names" in group else "without names"
        raise ValueError(
            f"all optimizer param groups should be with/without names. cannot add param group {given} to the optimizer: "
            f"its groups are {known}"
        )
    if any(id(param) in own for known_group in groups for param in known_group["params"]):
        raise ValueError("some parameters appear in more than one parameter group")


def check_lr(lr: Any, *, foreach: bool | None = None, capturable: bool = False) -> None:
    """Refuse a learning rate below zero."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(what: str, value: Any) -> None:
    """Refuse a value below zero."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {what}: {value}")


def check_betas(betas: Any) -> None:
    """Refuse decay rates outside of [0, 1)."""
    for position, beta in enumerate(betas[:2]):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {beta}")


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Refuse `fused` with what PyTorch refuses it with; otherwise it changes nothing."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
