"""GradientEdge: a place in the graph that gradients can be asked for or started at, without its tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.graph.history import gradient_edge
from pullback.graph.node import Node
from pullback.tensor.tensor import Tensor


class GradientEdge(NamedTuple):
    """The node and the number of its output at which a tensor stands; usable as inputs or outputs of `grad`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of `tensor`.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = gradient_edge(tensor)
    assert edge is not None
    return GradientEdge(edge[0], edge[1], None)
