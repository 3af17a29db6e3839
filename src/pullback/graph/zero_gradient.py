"""Nodes whose gradient is zero: of values that depend on nothing, or change only in steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.array_module import zeros_beside
from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.tensor.tensor import Tensor, new_tensor


class ZeroGradient(Node):
    """The history of a tensor that was overwritten with numbers that depend on nothing."""

    kinds: Sequence[tuple[Any, Any]] = ()
    """Shape and dtype of each input, where they may differ from the result's."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if grads[0] is None:
            return (None,) * len(edges)
        kinds = self.kinds or [(grads[0].shape, grads[0].dtype)] * len(edges)
        return tuple([zeros_beside(grads[0], shape, dtype) for shape, dtype in kinds])

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if grads[0] is None:
            return (None,) * len(edges)
        return tuple([new_tensor(zeros) for zeros in self.apply((grads[0]._array,), edges)])


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
    node.kinds = [(t._array.shape, t._array.dtype) for t in inputs]
    result._requires_grad, result._edge = True, (node, 0)
