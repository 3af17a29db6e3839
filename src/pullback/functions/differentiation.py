"""`Tensor.backward`."""

from __future__ import annotations

from typing import Any

from pullback.tensor.tensor import Tensor

_backward: Any = None


def method_backward(
    input: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradient of this tensor and add it to the leaves it was computed from.

    `gradient` has this tensor's shape and is 1 for a tensor of one element unless given. `retain_graph` keeps what
    was saved for another pass, `create_graph` records the pass so that gradients can be differentiated; `inputs` are
    the only tensors whose `.grad` is added to. x.grad += d(sum of gradient * self) / dx.
    """
    global _backward
    if _backward is None:
        from pullback.autograd.differentiation import backward  # lazy: autograd is above functions

        _backward = backward
    _backward(input, gradient, retain_graph, create_graph, None, inputs)
