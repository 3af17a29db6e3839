"""The forward values behind a graph, computed again from what is still there: leaves, saved operands, numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pullback.generated as G
from pullback.autograd.grad_mode import enable_grad
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.node import Node
from pullback.graph.source_lines import source_line_of
from pullback.inspection.nodes import acting_node
from pullback.tensor.tensor import Tensor

_TENSORS = frozenset(("tensor", "tensor or number"))


def replayed(nodes: Iterable[Node]) -> dict[Node, Tensor]:
    """The results of those nodes whose operands are known, recorded anew with the lines of the old.

    >>> import pullback
    >>> x = pullback.tensor([3.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> loss.backward()
    >>> [value.tolist() for value in replayed([loss.grad_fn, loss.grad_fn.next_functions[0][0]]).values()]
    [[9.0], 9.0]
    """
    made: dict[Node, Tensor] = {}
    with enable_grad():
        for node in sorted(nodes, key=lambda node: node.sequence_nr):
            result = _result(acting_node(node), made)
            if result is None or (node.shape, node.dtype) not in (
                (None, None),
                (result._array.shape, result._array.dtype),
            ):
                continue
            made[node] = result
            if result.grad_fn is not None:
                result.grad_fn.source = source_line_of(node)
    return made


def _result(node: Node, made: dict[Node, Tensor]) -> Tensor | None:
    operation = OPERATIONS.get(node.operation)
    if operation is None or operation.outputs != 1 or operation.draws:
        return None
    try:
        result = getattr(G, operation.name)(**_arguments(node, operation, made))
    except Exception:  # whatever is not as it was then is not known
        return None
    return result if isinstance(result, Tensor) else None


def _arguments(node: Node, operation: Operation, made: dict[Node, Tensor]) -> dict[str, Any]:
    """All arguments of the call that recorded a node; LookupError where one is not known."""
    found: dict[str, Any] = {}
    for name, role, _ in operation.parameters:
        if role in _TENSORS:
            found[name] = _operand(node, operation, name, made)
        elif name in node.value_names:
            found[name] = getattr(node, f"saved_{name}")
        elif name != "dtype":  # the dtype of the result says whether it was given
            raise LookupError(name)
    return found


def _operand(node: Node, operation: Operation, name: str, made: dict[Node, Tensor]) -> Any:
    edges = dict(zip(operation.differentiable_inputs, node.next_edges, strict=False))
    edge = edges.get(name)
    if edge is not None:
        before, place = edge
        known = getattr(before, "variable", None) if hasattr(before, "variable") else made.get(before)
        if known is not None and place == 0:
            return known
    saved = getattr(node, f"saved_{name}", None)
    if isinstance(saved, int | float | complex):
        return saved
    if type(saved) is Tensor and getattr(node, f"saved_{name}_version", -1) in (-1, saved._version):
        return saved.detach()
    raise LookupError(name)
