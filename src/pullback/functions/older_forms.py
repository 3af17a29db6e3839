"""Older forms of methods that PyTorch still takes, with a warning: the factor first, as `p.add_(-lr, grad)`."""

from __future__ import annotations

import warnings
from typing import Any

import pullback.generated as G
from pullback.tensor.tensor import Tensor


def _warn(name: str, older: str, newer: str) -> None:
    warnings.warn(
        f"This overload of {name} is deprecated: {name}({older}). Write {name}({newer}) instead.", stacklevel=3
    )


def method_add(input: Tensor, other: Any, *rest: Any, alpha: Any = 1, out: Any = None) -> Any:
    """Add `alpha` times `other`."""
    if rest:
        _warn("add", "Number alpha, Tensor other", "Tensor other, *, Number alpha")
        alpha, (other,) = other, rest
    return G.add(input, other, alpha=alpha, out=out)


def method_add_(input: Tensor, other: Any, *rest: Any, alpha: Any = 1) -> Any:
    """Add `alpha` times `other`, in place."""
    if rest:
        _warn("add_", "Number alpha, Tensor other", "Tensor other, *, Number alpha")
        alpha, (other,) = other, rest
    return G.add_(input, other, alpha=alpha)


def method_sub_(input: Tensor, other: Any, *rest: Any, alpha: Any = 1) -> Any:
    """Subtract `alpha` times `other`, in place."""
    if rest:
        _warn("sub_", "Number alpha, Tensor other", "Tensor other, *, Number alpha")
        alpha, (other,) = other, rest
    return G.sub_(input, other, alpha=alpha)


def method_addcmul(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the product of two tensors."""
    if rest:
        _warn(
            "addcmul", "Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value"
        )
        value, tensor1, (tensor2,) = tensor1, tensor2, rest
    return G.addcmul(input, tensor1, tensor2, value=value, out=out)


def method_addcmul_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the product of two tensors, in place."""
    if rest:
        _warn(
            "addcmul_",
            "Number value, Tensor tensor1, Tensor tensor2",
            "Tensor tensor1, Tensor tensor2, *, Number value",
        )
        value, tensor1, (tensor2,) = tensor1, tensor2, rest
    return G.addcmul_(input, tensor1, tensor2, value=value)


def method_addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the quotient of two tensors."""
    if rest:
        _warn(
            "addcdiv", "Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value"
        )
        value, tensor1, (tensor2,) = tensor1, tensor2, rest
    return G.addcdiv(input, tensor1, tensor2, value=value, out=out)


def method_addcdiv_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the quotient of two tensors, in place."""
    if rest:
        _warn(
            "addcdiv_",
            "Number value, Tensor tensor1, Tensor tensor2",
            "Tensor tensor1, Tensor tensor2, *, Number value",
        )
        value, tensor1, (tensor2,) = tensor1, tensor2, rest
    return G.addcdiv_(input, tensor1, tensor2, value=value)
