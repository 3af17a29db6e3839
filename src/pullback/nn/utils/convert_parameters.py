"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters, flattened and joined.

    In their order, one after the other; `vector_to_parameters` is the way back.

    >>> import pullback
    >>> pullback.nn.utils.parameters_to_vector([pullback.ones(1, 2), pullback.zeros(1)])
    tensor([1., 1., 0.])
    """
    return functions.cat([p.view(-1) if p._array.flags.c_contiguous else p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give each parameter its slice of the vector as data.

    In their order, each in its shape; gradients and histories stay as they were.

    >>> import pullback
    >>> layer = pullback.nn.Linear(2, 1)
    >>> pullback.nn.utils.vector_to_parameters(pullback.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer.bias.item()
    3.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__module__}.{type(vec).__name__}")
    position = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[position : position + count].view_as(parameter).data
        position += count
