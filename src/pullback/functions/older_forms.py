"""Older forms of methods that PyTorch still takes, with a warning: the factor first, as `p.add_(-lr, grad)`."""

from __future__ import annotations

import warnings
from typing import Any

import pullback.generated as G
from pullback.tensor.tensor import Tensor

_SUM = ("Number alpha, Tensor other", "Tensor other, *, Number alpha")
_PRODUCT = ("Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value")


def _factor_first(name: str, forms: tuple[str, str], *arguments: Any) -> tuple[Any, ...]:
    """The arguments of the older form, in its own order, once it has been warned of."""
    older, newer = forms
    if len(arguments) != older.count(",") + 1:
        given = ", ".join(type(value).__name__ for value in arguments)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({given}), but expected ({newer} = 1)"
        )
    warnings.warn(
        f"This overload of {name} is deprecated: {name}({older}). Write {name}({newer}) instead.", stacklevel=3
    )
    return arguments


def method_add(input: Tensor, other: Any, *rest: Any, alpha: Any = 1, out: Any = None) -> Any:
    """Add `alpha` times `other`."""
    if rest:
        alpha, other = _factor_first("add", _SUM, other, *rest)
    return G.add(input, other, alpha=alpha, out=out)


def method_add_(input: Tensor, other: Any, *rest: Any, alpha: Any = 1) -> Any:
    """Add `alpha` times `other`, in place."""
    if rest:
        alpha, other = _factor_first("add_", _SUM, other, *rest)
    return G.add_(input, other, alpha=alpha)


def method_sub_(input: Tensor, other: Any, *rest: Any, alpha: Any = 1) -> Any:
    """Subtract `alpha` times `other`, in place."""
    if rest:
        alpha, other = _factor_first("sub_", _SUM, other, *rest)
    return G.sub_(input, other, alpha=alpha)


def method_addcmul(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the product of two tensors."""
    if rest:
        value, tensor1, tensor2 = _factor_first("addcmul", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcmul(input, tensor1, tensor2, value=value, out=out)


def method_addcmul_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the product of two tensors, in place."""
    if rest:
        value, tensor1, tensor2 = _factor_first("addcmul_", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcmul_(input, tensor1, tensor2, value=value)


def method_addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the quotient of two tensors."""
    if rest:
        value, tensor1, tensor2 = _factor_first("addcdiv", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcdiv(input, tensor1, tensor2, value=value, out=out)


def method_addcdiv_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the quotient of two tensors, in place."""
    if rest:
        value, tensor1, tensor2 = _factor_first("addcdiv_", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcdiv_(input, tensor1, tensor2, value=value)
