"""Nodes without an operation of their own: the root of a pass, nodes that only raise, and undefined gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.errors import derivative_not_implemented
from pullback.graph.edge import Edge, Edges
from pullback.graph.history import link
from pullback.graph.node import Node, begin_recording, new_node
from pullback.modes.switches import process, switches
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

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self.grads


class _BasicNode(Node):
    """A node of the engine's own: its class cannot be called, and its name shows where it comes from."""

    def __init__(self, *arguments: Any) -> None:
        raise RuntimeError("Cannot construct")

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self.apply(grads, edges)


class Error(_BasicNode):
    """Raises when a gradient reaches it."""

    message: str

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        raise RuntimeError(self.message)


class NotImplementedNode(_BasicNode):
    """The node of an operation that PyTorch has no derivative for."""

    operation: str

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple([edge for edge in self.next_edges if edge is not None])

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        raise derivative_not_implemented(self.operation)


NotImplementedNode.__name__ = NotImplementedNode.__qualname__ = "NotImplemented"


def attach_unimplemented(operation: str, results: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Make results depend on inputs by an operation without a derivative, under PyTorch's name."""
    given = [t for t in inputs if isinstance(t, Tensor)]
    if not any(t._requires_grad for t in given) or (process.changed and not switches.records):
        return
    node = new_node(NotImplementedNode)
    link(node, given)
    node.operation, node.output_count = operation if operation == "set_" else f"aten::{operation}", len(results)
    for place, result in enumerate(results):
        result._requires_grad, result._edge = True, (node, place)


class UndefinedGradBackward(_BasicNode):
    """Passes an undefined gradient (None) on, whatever arrives."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (None,) * len(edges)


class Identity(_BasicNode):
    """Passes gradients on unchanged."""

    def __init__(self) -> None:
        begin_recording(self)

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return tuple(grads)


class _Attaching(_BasicNode):
    """A node that is called in forward: it gives aliases of tensors another history."""

    count = 1

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        if len(tensors) != self.count:
            raise TypeError(f"expected {self.count} arguments, got {len(tensors)} instead")
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"argument {index} is not a Variable but {type(tensor).__name__}")
        aliases = [None if tensor is None else _alias(tensor) for tensor in tensors]
        given = [tensor for tensor in tensors if tensor is not None]
        if (not process.changed or switches.records) and any(tensor._requires_grad for tensor in given):
            node = self.make_node()
            link(node, tensors)
            node.output_count = len(tensors)
            for index, alias in enumerate(aliases):
                if alias is not None:
                    alias._requires_grad, alias._edge = True, (node, index)
        return aliases[0] if len(aliases) == 1 else tuple(aliases)

    def make_node(self) -> Node:
        """The node that the aliases come from."""
        raise NotImplementedError


def _alias(tensor: Tensor) -> Tensor:
    alias = new_tensor(tensor._array)
    alias._counter = tensor._counter
    return alias


class DelayedError(_Attaching):
    """Attaches an `Error` to as many tensors as it was made for: they can be used, but not differentiated.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> DelayedError("no further", 1)(x)
    tensor([1., 1.], grad_fn=<Error>)
    """

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) != 2:
            raise RuntimeError(f"Requires two arguments, got {len(arguments)}: the message and the number of tensors")
        message, self.count = arguments
        self.message = message.decode() if isinstance(message, bytes) else message
        begin_recording(self)

    def make_node(self) -> Node:
        node = new_node(Error)
        node.message = self.message
        return node


class UndefinedGrad(_Attaching):
    """Attaches a node that lets no gradient through."""

    def __init__(self) -> None:
        begin_recording(self)

    def make_node(self) -> Node:
        return new_node(UndefinedGradBackward)
