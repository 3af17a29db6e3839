"""Older forms of added matrix products that PyTorch still takes, with a warning: the factors stand before the tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pullback.functions.matrix_products as _products
import pullback.generated as G
from pullback.backend.array_module import is_number
from pullback.facts import declare
from pullback.functions.deprecated_signatures import _warn_of
from pullback.tensor.foreign_arguments import explain_errors
from pullback.tensor.tensor import TensorBase


def _method(operation: Callable[..., Any], factors: str) -> Any:
    """A method that also takes beta, or beta and alpha, before the two factors of the product."""

    @functools.wraps(operation)
    def product(input: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 and is_number(args[0]):
            beta, *middle, first, second = args
            if len(middle) < 2:
                _warn_of(
                    operation.__name__, f"Number beta, {'Number alpha, ' * len(middle)}{factors}", _NEWER % factors
                )
                return operation(input, first, second, beta=beta, alpha=middle[0] if middle else 1, **kwargs)
        return operation(input, *args, **kwargs)

    return product


def _public(operation: Callable[..., Any], factors: str) -> Any:
    """A function that also takes beta before the tensor, and alpha before the two factors of the product."""

    @functools.wraps(operation)
    def product(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 3 and is_number(args[0]) and isinstance(args[1], TensorBase):
            beta, input, *middle, first, second = args
            if len(middle) < 2:
                alpha = middle[0] if middle else 1
                older = f"Number beta, Tensor input, {'Number alpha, ' * len(middle)}{factors}"
                _warn_of(operation.__name__, older, f"Tensor input, {_NEWER % factors}")
                return operation(input, first, second, beta=beta, alpha=alpha, **kwargs)
        return operation(*args, **kwargs)

    return product


_NEWER = "%s, *, Number beta = 1, Number alpha = 1"
_MATRICES = "Tensor mat1, Tensor mat2"
_BATCHES = "Tensor batch1, Tensor batch2"
_MATRIX_AND_VECTOR = "Tensor mat, Tensor vec"
_VECTORS = "Tensor vec1, Tensor vec2"

method_addmm = declare(bare=True)(_method(G.addmm, _MATRICES))
method_addmm_ = declare(bare=True)(_method(explain_errors(_products.addmm_, "addmm_"), _MATRICES))
public_addmm = _public(G.addmm, _MATRICES)
method_addmv = declare(bare=True)(_method(G.addmv, _MATRIX_AND_VECTOR))
method_addmv_ = declare(bare=True)(_method(G.addmv_, _MATRIX_AND_VECTOR))
public_addmv = _public(G.addmv, _MATRIX_AND_VECTOR)
method_addr = declare(bare=True)(_method(G.addr, _VECTORS))
method_addr_ = declare(bare=True)(_method(G.addr_, _VECTORS))
public_addr = _public(G.addr, _VECTORS)
method_addbmm = declare(bare=True)(_method(G.addbmm, _BATCHES))
method_addbmm_ = declare(bare=True)(_method(explain_errors(_products.addbmm_, "addbmm_"), _BATCHES))
public_addbmm = _public(G.addbmm, _BATCHES)
method_baddbmm = declare(bare=True)(_method(G.baddbmm, _BATCHES))
method_baddbmm_ = declare(bare=True)(_method(explain_errors(_products.baddbmm_, "baddbmm_"), _BATCHES))
public_baddbmm = _public(G.baddbmm, _BATCHES)
