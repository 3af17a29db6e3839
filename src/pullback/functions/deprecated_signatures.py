"""Older forms of functions that PyTorch still takes, with a warning: the factor first, as `p.add_(-lr, grad)`.

The public function is `public_<name>` here, where functions of this package call the operation itself.
"""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_number
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.modes.user_warnings import warn_user
from pullback.tensor.foreign_arguments import any_foreign, ask_about
from pullback.tensor.tensor import Tensor, TensorBase

_SUM = ("Number alpha, Tensor other", "Tensor other, *, Number alpha")
# Where alpha is not given, the operation is called without keywords, and found without its module: small sums are many.
_ONE = 1
_add, _add_, _sub, _sub_ = G.add, G.add_, G.sub, G.sub_
_PRODUCT = ("Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value")


_METHODS: Any = Tensor


def _warn_of(name: str, older: str, newer: str) -> None:
    """Warn of an older form at the line that used it."""
    warn_user(f"This overload of {name} is deprecated: {name}({older}). Write {name}({newer}) instead.")


def _factor_first(name: str, forms: tuple[str, str], *arguments: Any) -> tuple[Any, ...]:
    """The arguments of the older form, in its own order, once it has been warned of."""
    older, newer = forms
    factor = arguments[0]
    is_factor = is_number(factor) or (isinstance(factor, TensorBase) and factor._array.ndim == 0)
    if not is_factor or len(arguments) != older.count(",") + 1:
        raise no_signature_fits(name, [type(value).__name__ for value in arguments])
    _warn_of(name, older, newer)
    return arguments


@declare(bare=True)
def method_add(input: Tensor, other: Any, *rest: Any, alpha: Any = _ONE, out: Any = None) -> Any:
    """Add `alpha` times `other`.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result, in the dtype that both
    promote to. y = input + alpha * other.
    """
    if rest:
        alpha, other = _factor_first("add", _SUM, other, *rest)
    elif alpha is _ONE and out is None:
        return _add(input, other)
    return G.add(input, other, alpha=alpha, out=out)


public_add = method_add


@declare(bare=True)
def method_add_(input: Tensor, other: Any, *rest: Any, alpha: Any = _ONE) -> Any:
    """Add `alpha` times `other`, in place."""
    if rest:
        alpha, other = _factor_first("add_", _SUM, other, *rest)
    elif alpha is _ONE:
        return _add_(input, other)
    return G.add_(input, other, alpha=alpha)


@declare(bare=True)
def method_sub(input: Tensor, other: Any, *rest: Any, alpha: Any = _ONE, out: Any = None) -> Any:
    """Subtract `alpha` times `other`.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result, in the dtype that both
    promote to. y = input - alpha * other.
    """
    if rest:
        alpha, other = _factor_first("sub", _SUM, other, *rest)
    elif alpha is _ONE and out is None:
        return _sub(input, other)
    return G.sub(input, other, alpha=alpha, out=out)


public_sub = method_sub


@declare(bare=True)
def method_sub_(input: Tensor, other: Any, *rest: Any, alpha: Any = _ONE) -> Any:
    """Subtract `alpha` times `other`, in place."""
    if rest:
        alpha, other = _factor_first("sub_", _SUM, other, *rest)
    elif alpha is _ONE:
        return _sub_(input, other)
    return G.sub_(input, other, alpha=alpha)


@declare(bare=True)
def method_addcmul(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the product of two tensors.

    The three are broadcast together. y = input + value * tensor1 * tensor2.

    >>> import pullback
    >>> pullback.addcmul(pullback.ones(2), pullback.tensor([1.0, 2.0]), pullback.tensor([3.0, 4.0]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    if rest:
        if any_foreign((tensor1, tensor2, *rest)):
            return ask_about(_METHODS.addcmul, input, tensor1, tensor2, *rest)
        value, tensor1, tensor2 = _factor_first("addcmul", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcmul(input, tensor1, tensor2, value=value, out=out)


public_addcmul = method_addcmul


@declare(bare=True)
def method_addcmul_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the product of two tensors, in place."""
    if rest:
        if any_foreign((tensor1, tensor2, *rest)):
            return ask_about(_METHODS.addcmul_, input, tensor1, tensor2, *rest)
        value, tensor1, tensor2 = _factor_first("addcmul_", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcmul_(input, tensor1, tensor2, value=value)


@declare(bare=True)
def method_addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1, out: Any = None) -> Any:
    """Add `value` times the quotient of two tensors.

    The three are broadcast together. y = input + value * tensor1 / tensor2.

    >>> import pullback
    >>> pullback.addcdiv(pullback.ones(2), pullback.tensor([1.0, 2.0]), pullback.tensor([4.0, 4.0]), value=2)
    tensor([1.5000, 2.0000])
    """
    if rest:
        if any_foreign((tensor1, tensor2, *rest)):
            return ask_about(_METHODS.addcdiv, input, tensor1, tensor2, *rest)
        value, tensor1, tensor2 = _factor_first("addcdiv", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcdiv(input, tensor1, tensor2, value=value, out=out)


public_addcdiv = method_addcdiv


@declare(bare=True)
def method_addcdiv_(input: Tensor, tensor1: Any, tensor2: Any, *rest: Any, value: Any = 1) -> Any:
    """Add `value` times the quotient of two tensors, in place."""
    if rest:
        if any_foreign((tensor1, tensor2, *rest)):
            return ask_about(_METHODS.addcdiv_, input, tensor1, tensor2, *rest)
        value, tensor1, tensor2 = _factor_first("addcdiv_", _PRODUCT, tensor1, tensor2, *rest)
    return G.addcdiv_(input, tensor1, tensor2, value=value)
