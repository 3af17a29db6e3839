"""Choosing between elements by a condition."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.modes.interception import interceptable
from pullback.modes.user_warnings import warn_once
from pullback.tensor.foreign_arguments import any_foreign, ask_foreign
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of `input` where `condition` is true, of `other` elsewhere; the true positions if only it is given.

    `condition` (bool), `input` and `other` broadcast to the shape of the result. y = input if condition else other,
    element by element. `where(condition)` alone gives a tensor of indices for each dimension, as
    `nonzero(as_tuple=True)`.
    """
    if input is None and other is None:
        return _positions(condition)
    if input is None or other is None:
        raise no_signature_fits("where", ["Tensor", type(other if input is None else input).__name__])
    _advise_of_bytes(condition)
    return G.where(condition, input, other, out=out)


def _advise_of_bytes(condition: Any) -> None:
    if isinstance(condition, TensorBase) and condition._array.dtype.char == "B":
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
            "of PyTorch: use a condition of dtype bool."
        )


@declare(bare=True)
def method_where(input: Tensor, condition: Tensor, other: Any) -> Any:
    """Elements of this tensor where `condition` is true, of `other` elsewhere."""
    if (type(condition) is not Tensor or type(other) is not Tensor) and any_foreign((condition, other)):
        return ask_foreign(method_where, (input, condition, other))
    _advise_of_bytes(condition)
    return G.where(condition, input, other)


@interceptable
def _positions(condition: Tensor) -> Any:
    from pullback import functions

    return functions.nonzero(condition, as_tuple=True)
