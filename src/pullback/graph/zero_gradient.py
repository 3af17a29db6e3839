"""Nodes whose gradient is zero: of values that depend on nothing, or by steps only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.tensor.tensor import Tensor


class ZeroGradient(Node):
    """The history of a tensor that was overwritten with numbers that depend on nothing."""

    shapes: Sequence[Any] = ()

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if grads[0] is None:
            return (None,) * len(edges)
        return tuple([_summed_to(grads[0] * 0, shape) for shape in self.shapes or [None] * len(edges)])

    apply_differentiable = apply


def _summed_to(zeros: Any, shape: Any) -> Any:
    """Zeros in the shape that was broadcast."""
    if shape is None or tuple(zeros.shape) == shape:
        return zeros
    lead = len(zeros.shape) - len(shape)
    return zeros[(0,) * lead][tuple([slice(0, 1) if size == 1 else slice(None) for size in shape])]


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
