"""The forward values behind a graph, computed again from what is still there: leaves, saved operands, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pullback.generated as G
from pullback.autograd.grad_mode import enable_grad
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.node import Node
from pullback.graph.source_lines import source_line_of
from pullback.inspection.nodes import acting_node, is_finite
from pullback.tensor.tensor import Tensor

_TENSORS = frozenset(("tensor", "tensor or number"))


def replayed(nodes: Iterable[Node]) -> dict[Node, Tensor]:
    """The results of those nodes whose operands are known, recorded anew with the lines of the old.

    Of several results it is the first that is not finite, or else the first.

    >>> import pullback
    >>> x = pullback.tensor([3.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> loss.backward()
    >>> [value.tolist() for value in replayed([loss.grad_fn, loss.grad_fn.next_functions[0][0]]).values()]
    [[9.0], 9.0]
    """
    made: dict[Node, Sequence[Any]] = {}
    with enable_grad():
        for node in sorted(nodes, key=lambda node: node.sequence_nr):
            results = _results(node, made)
            if results is None:
                continue
            made[node] = results
            for result in results:
                if isinstance(result, Tensor) and result.grad_fn is not None:
                    result.grad_fn.source = source_line_of(node)
    return {node: _telling(results) for node, results in made.items()}


def _telling(results: Sequence[Any]) -> Tensor:
    tensors = [result for result in results if isinstance(result, Tensor)]
    return next((tensor for tensor in tensors if not is_finite(tensor._array)), tensors[0])


def _results(node: Node, made: dict[Node, Sequence[Any]]) -> Sequence[Any] | None:
    """What the call gave that recorded a node; None where an argument is not known, or what it gives now is another."""
    acting = acting_node(node)
    operation = OPERATIONS.get(acting.operation)
    if operation is None or operation.draws:
        return None
    try:
        arguments = _arguments(acting, operation, made)
        results = _called(operation, arguments)
        if not _fits(node, results) and any(name == "dtype" for name, _, _ in operation.parameters):
            results = _called(operation, {**arguments, "dtype": node.dtype})
    except Exception:  # whatever is not as it was then is not known
        return None
    return results if _fits(node, results) else None


def _called(operation: Operation, arguments: dict[str, Any]) -> Sequence[Any]:
    if any(name == "dtype" and name not in arguments and not keyword for name, _, keyword in operation.parameters):
        return ()  # a cast, which cannot do without
    result = getattr(G, operation.name)(**arguments)
    return result if isinstance(result, list | tuple) else (result,)


def _fits(node: Node, results: Sequence[Any]) -> bool:
    """Whether results have the shape and the dtype that the node noted."""
    known = node.input_metadata(0)
    first = results[0] if results else None
    return isinstance(first, Tensor) and (
        known is None or (known.shape, known.numpy_dtype) == (first._array.shape, first._array.dtype)
    )


def _arguments(node: Node, operation: Operation, made: dict[Node, Sequence[Any]]) -> dict[str, Any]:
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


def _operand(node: Node, operation: Operation, name: str, made: dict[Node, Sequence[Any]]) -> Any:
    edges = dict(zip(operation.differentiable_inputs, node.next_edges, strict=False))
    edge = edges.get(name)
    if edge is not None:
        before, place = edge
        if hasattr(before, "variable"):
            return before.variable
        if before in made:
            return made[before][place]
    saved = getattr(node, f"saved_{name}", None)
    if isinstance(saved, int | float | complex):
        return saved
    if type(saved) is Tensor and getattr(node, f"saved_{name}_version", -1) in (-1, saved._version):
        return saved.detach()
    raise LookupError(name)
