"""Nodes whose gradient is zero: of values that depend on nothing, or by steps only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.kernels.broadcasting import sum_to
from pullback.tensor.tensor import Tensor


class ZeroGradient(Node):
    """The history of a tensor that was overwritten with numbers that depend on nothing."""

    shapes: Sequence[Any] = ()

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return self._zeros(grads[0], edges, sum_to)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self._zeros(grads[0], edges, lambda zeros, shape: zeros.sum_to_size(shape))

    def _zeros(self, grad: Any, edges: Edges, summed: Callable[[Any, Any], Any]) -> Sequence[Any]:
        if grad is None:
            return (None,) * len(edges)
        zeros = grad * 0
        return tuple([zeros if shape is None else summed(zeros, shape) for shape in self.shapes or [None] * len(edges)])


_nodes: dict[str, type[ZeroGradient]] = {}


def zero_node(name: str) -> ZeroGradient:
    """A new node of this name, without edges."""
    if name not in _nodes:
        _nodes[name] = type(name, (ZeroGradient,), {})
    node = new_node(_nodes[name])
    node.sequence_nr = next_sequence_nr()
    return node


def attach_zero_node(result: Tensor, name: str, inputs: Sequence[Tensor]) -> None:
    """Make `result` depend on the inputs, with the gradient zero."""
    node = zero_node(name)
    node.next_edges = tuple([gradient_edge(t) for t in inputs])
    node.shapes = [t._array.shape for t in inputs]
    result._requires_grad, result._edge = True, (node, 0)
