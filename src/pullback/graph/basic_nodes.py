"""Nodes without an operation of their own: the root of a pass, nodes that only raise, and undefined gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.graph.edge import Edge, Edges
from pullback.graph.node import Node, next_sequence_nr
from pullback.tensor.tensor import Tensor, new_tensor


class GraphRoot(Node):
    """The start of a backward pass: hands out the gradients of the roots."""

    __slots__ = ("__dict__",)
    grads: tuple[Any, ...]

    def __init__(self, edges: Sequence[Edge], grads: Sequence[Any]) -> None:
        self.next_edges = tuple(edges)
        self.grads = tuple(grads)

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return self.grads

    apply_differentiable = apply


class Error(Node):
    """Raises when a gradient reaches it."""

    def __init__(self, message: str, next_edges: tuple[Edge | None, ...] = ()) -> None:
        self.message = message
        self.next_edges = next_edges
        self.sequence_nr = next_sequence_nr()

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        raise RuntimeError(self.message)

    apply_differentiable = apply


class DelayedError:
    """Attaches an `Error` to tensors: they can be used, but not differentiated."""

    def __init__(self, message: str, num_inputs: int = 1) -> None:
        self.message = message
        self.num_inputs = num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        outputs = []
        for tensor in tensors:
            output = new_tensor(tensor._array)
            output._counter = tensor._counter
            output._requires_grad = True
            output._edge = (Error(self.message), 0)
            outputs.append(output)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class UndefinedGrad(Node):
    """Passes an undefined gradient (None) on, whatever arrives."""

    def name(self) -> str:
        return "UndefinedGradBackward"

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (None,) * len(edges)

    apply_differentiable = apply


class Identity(Node):
    """Passes gradients on unchanged."""

    def __init__(self) -> None:
        self.sequence_nr = next_sequence_nr()

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return tuple(grads)

    apply_differentiable = apply
