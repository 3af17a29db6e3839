"""Limits on the size of gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.backend.array_module import is_plain
from pullback.backend.device import in_use
from pullback.graph.history import bump_version
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(tensors: Any) -> list[Any]:
    if isinstance(tensors, Tensor):
        return [tensors]
    return list(tensors)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of all tensors together, as if they were one vector.

    (The sum over tensors of their norms ** norm_type) ** (1 / norm_type). Raises where it is not finite, if so asked.

    >>> import pullback
    >>> pullback.nn.utils.get_total_norm([pullback.tensor([3.0]), pullback.tensor([4.0])])
    tensor(5.)
    """
    tensors = _listed(tensors)
    if not tensors:
        return creation.tensor(0.0)
    norm_type = float(norm_type)
    with no_grad():
        norms = [functions.linalg_vector_norm(t, norm_type) for t in tensors]
        are_on_meshes = any(hasattr(t, "device_mesh") for t in tensors)
        if are_on_meshes:
            from pullback.distributed.tensor.norms import (
                norms_of_wholes,
                on_meshes,
            )  # lazy: processes are above this layer

            norms = norms_of_wholes(tensors, norms, norm_type)
        if in_use:  # the first tensor's device is that of the norm
            norms = [norm.to(norms[0].device) for norm in norms]
        total_norm = functions.linalg_vector_norm(functions.stack(norms), norm_type) if len(norms) > 1 else norms[0]
        if are_on_meshes:
            total_norm = on_meshes(tensors, total_norm)
    if error_if_nonfinite and not math.isfinite(total_norm.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped: "
            f"it is {total_norm.item()}. With error_if_nonfinite=False the gradients are scaled by it all the same."
        )
    return total_norm


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale the gradients of the parameters by `max_norm / total_norm` where that is less than one."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if not grads:
        return
    with no_grad():
        coefficient = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            if not is_plain(coefficient._array) or coefficient._array != 1:
                grad.mul_(coefficient.to(grad.device, grad.dtype) if in_use else coefficient.to(grad.dtype))
            else:
                bump_version(grad)


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Scale the gradients so that their norm together is at most `max_norm`; return what it was.

    >>> import pullback
    >>> x = pullback.zeros(2, requires_grad=True)
    >>> x.grad = pullback.tensor([3.0, 4.0])
    >>> clip_grad_norm_([x], 1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    if not isinstance(parameters, Tensor):
        is_generator = not isinstance(parameters, (list, tuple))
        parameters = list(parameters)
        if is_generator and not parameters:
            warn_user("`parameters` is an empty generator, no gradient clipping will occur.")
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Old name of `clip_grad_norm_`."""
    warn_user(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Iterable[Any] | Tensor, clip_value: float, foreach: bool | None = None) -> None:
    """Clip each element of the gradients to [-clip_value, clip_value].

    In place, for a tensor or several; those without a gradient are left out.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> (x * pullback.tensor([3.0, -0.5])).sum().backward()
    >>> pullback.nn.utils.clip_grad_value_(x, 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    limit = float(clip_value)
    with no_grad():
        for parameter in _listed(parameters):
            if parameter._grad is not None:
                parameter._grad.clamp_(min=-limit, max=limit)
