"""The operations that fused ones stand for, as far as one expression in `parts=` does not say it."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor


def mm_back_first(grad: Tensor, first: Tensor | None, second: Tensor, alpha: Any = 1) -> Any:
    """The gradient of a matrix product for its first factor, in the memory order of that factor."""
    if first is not None and _is_column_major(first):
        return _scaled(G.t(G.mm(conj(second), G.t(grad))), alpha)
    return _scaled(G.mm(grad, conj(G.t(second))), alpha)


def mm_back_second(grad: Tensor, first: Tensor, second: Tensor | None, alpha: Any = 1) -> Any:
    """The gradient of a matrix product for its second factor, in the memory order of that factor."""
    if second is not None and _is_column_major(second):
        return _scaled(G.t(G.mm(G.t(grad), conj(first))), alpha)
    return _scaled(G.mm(conj(G.t(first)), grad), alpha)


def _scaled(grad: Any, alpha: Any) -> Any:
    return grad if alpha == 1 else G.scaled_by(grad, alpha)


def _is_column_major(tensor: Tensor) -> bool:
    rows, columns = tensor.shape
    return tensor.stride() == (1, rows) and not (rows == 1 or columns == 1)


def conj(value: Any) -> Any:
    """The complex conjugate of a tensor or a number; real ones are given back."""
    return functions.conj(value) if isinstance(value, Tensor) else value.conjugate()


def times_operand(grad: Tensor, other: Any) -> Any:
    """A gradient times the conjugate of an operand, which ATen has as a tensor even where the user wrote a number."""
    return _as_written(functions.mul, grad, conj(other))


def over_operand(grad: Tensor, other: Any) -> Any:
    """A gradient divided by the conjugate of an operand."""
    return _as_written(functions.div, grad, conj(other))


def _as_written(function: Any, grad: Tensor, other: Any) -> Any:
    former, switches.current_node = switches.current_node, None
    try:
        return function(grad, other)
    finally:
        switches.current_node = former


def with_dim(grad: Tensor, shape: Any) -> Any:
    """The gradient of `squeeze` along one dimension, whose input had this shape."""
    if grad.ndim == len(shape):
        return grad
    return G.unsqueeze(grad, next((i for i, n in enumerate(grad.shape) if shape[i] != n), grad.ndim))
