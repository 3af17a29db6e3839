"""strict_derivatives: a derivative that does not exist raises where the operation is called, not in backward."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from pullback.autograd.function import Function, _FunctionCall
from pullback.errors import derivative_not_implemented
from pullback.generated.registry import OPERATIONS
from pullback.graph.basic_nodes import NotImplementedNode
from pullback.graph.node import Node, next_sequence_nr
from pullback.inspection.derivative_use import has_second_derivative
from pullback.inspection.nodes import nodes_since, tensors_in
from pullback.modes.interception import pop_interceptor, push_interceptor

__all__ = ["strict_derivatives"]


class strict_derivatives(ContextDecorator):
    """Raise NotImplementedError at the call of an operation, if a derivative that is asked for later does not exist.

    `order` is how often the result will be differentiated; with `forward_mode` tangents are to flow as well. Looked at are
    operations on tensors that require grad: inputs without a gradient, second derivatives that are known to be missing,
    custom Functions whose backward is once differentiable, or that have no `jvp`.

    >>> import pullback
    >>> x = pullback.ones(3, 2, requires_grad=True)
    >>> try:
    ...     with strict_derivatives():
    ...         pullback.geqrf(x)
    ... except NotImplementedError as error:
    ...     print(error)
    the derivative for 'geqrf' is not implemented.
    """

    def __init__(self, order: int = 1, *, forward_mode: bool = False) -> None:
        if isinstance(order, bool) or not isinstance(order, int) or order < 1:
            raise ValueError(f"strict_derivatives expects an order of at least 1, got {order!r}")
        self.order = order
        self.forward_mode = forward_mode

    def __enter__(self) -> strict_derivatives:
        push_interceptor(self._operation)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_interceptor()

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, _FunctionCall) and any(t.requires_grad for t in tensors_in([args, kwargs])):
            self._check_function(function.function)
        first = next_sequence_nr()
        result = function(*args, **kwargs)
        for node in nodes_since(result, first):
            self._check_node(node)
        return result

    def _check_node(self, node: Node) -> None:
        if isinstance(node, NotImplementedNode):
            raise _refusal(node.operation, "it has no derivative")
        operation = OPERATIONS.get(node.operation)
        if operation is None:
            return
        for name, edge in zip(operation.differentiable_inputs, node.next_edges, strict=False):
            if edge is not None and name in operation.not_implemented:
                raise _refusal(operation.message_name, f"it has no gradient of '{name}'")
        if self.order > 1 and not has_second_derivative(operation.name):
            raise _refusal(operation.message_name, "it has no second derivative")
        if self.forward_mode and (operation.not_implemented or not has_second_derivative(operation.name)):
            raise _refusal(operation.message_name, "it has no tangent in forward mode")

    def _check_function(self, function: type[Function]) -> None:
        backward = function._backward_function()
        if self.order > 1 and getattr(backward, "is_once_differentiable", False):
            raise _refusal(function.__name__, "its backward is marked once_differentiable, and order is 2 or more")
        if self.order > 1 and not getattr(function, "records_backward", True):
            raise _refusal(function.__name__, "its gradients have no history: pass use_reentrant=False to checkpoint()")
        if self.forward_mode and function.jvp is Function.jvp:
            raise _refusal(function.__name__, "it has no jvp")


def _refusal(name: str, why: str) -> Exception:
    error = derivative_not_implemented(name)
    error.add_note(f"strict_derivatives: a later derivative of {name} is asked for, and {why}")
    return error
