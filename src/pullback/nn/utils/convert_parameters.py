"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters, flattened and joined."""
    return functions.cat([p.view(-1) if p._array.flags.c_contiguous else p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give each parameter its slice of the vector as data."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__name__}")
    position = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[position : position + count].view_as(parameter).data
        position += count
