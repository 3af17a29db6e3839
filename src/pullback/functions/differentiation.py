"""`Tensor.backward`."""

from __future__ import annotations

from typing import Any

from pullback.tensor.tensor import Tensor


def method_backward(
    input: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradient of this tensor and add it to the leaves it was computed from."""
    from pullback.autograd.differentiation import backward  # lazy: autograd is above functions

    backward(input, gradient, retain_graph, create_graph, inputs=inputs)
