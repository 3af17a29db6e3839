"""A node that stands for the gradients of an operation: what PyTorch's own `..._backward` operations record.

# Note [Gradient nodes]
On Tensors a rule is a chain of operations, and each records a node. Where PyTorch computes a gradient by one operation
(`mse_loss_backward`), its graph has one node there (`MseLossBackwardBackward0`). So an operation may declare
`gradient_nodes=`. Its rule then records a graph of its own, from leaves that stand for what it reads, and one node in the
graph that users see leads past it: it runs the inner graph when its turn comes. Where anybody looks at operations
(transforms, tangents, modes), there is no such node.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

from pullback.backend.array_module import as_array
from pullback.engine.double_pullback import gradients, recorded_leaf
from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.graph.recording import metadata_of
from pullback.graph.shown_values import saved_under
from pullback.graph.source_lines import freed
from pullback.modes.switches import process, switches
from pullback.recording.fused_gradient import copied
from pullback.tensor.tensor import Tensor, new_tensor

Rule = Callable[[Any, Sequence[Any], Edges], Sequence[Any]]


class _Inside(threading.local):
    """How many inner graphs run in this thread: what they record of themselves is the chain of the rule."""

    depth = 0


_inside = _Inside()


class Group:
    """The lines of a rule that one node stands for: what it leads to, and the inputs they are gradients of."""

    def __init__(self, sources: str, lines: tuple[int, ...]) -> None:
        names = sources.strip("()").split(", ")
        self.sources = tuple([None if name == "None" else name for name in names])
        self.lines = lines


def read_groups(text: str, inputs: Sequence[str]) -> list[Group]:
    """What `gradient_nodes=` says: `(grad, input)` of all gradients, or `input: (grad, input); other: (grad, other)`."""
    groups = []
    for part in text.split("; "):
        targets, _, sources = part.rpartition(": ")
        names = targets.split(", ") if targets else inputs
        groups.append(Group(sources, tuple([inputs.index(name) for name in names])))
    return groups


def with_gradient_nodes(rule: Rule, text: str, inputs: Sequence[str]) -> Rule:
    """The rule of an operation on Tensors, which records the nodes that `text` names where nobody looks on."""
    groups = read_groups(text, inputs)
    grouped = {line for group in groups for line in group.lines}

    @wraps(rule)
    def apply(node: Any, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if not switches.records or (process.changed and not switches.plain) or process.finishing or _inside.depth:
            return rule(node, grads, edges)
        results: list[Any] = [None] * len(edges)
        rest = tuple([None if line in grouped else edge for line, edge in enumerate(edges)])
        if any(edge is not None for edge in rest):
            results = list(rule(node, grads, rest))
        for group in groups:
            wanted = tuple([edge if line in group.lines else None for line, edge in enumerate(edges)])
            if any(edge is not None for edge in wanted):
                for line, result in zip(group.lines, _record(group, rule, node, grads, wanted, inputs), strict=True):
                    results[line] = result
        return results

    return apply


def _record(
    group: Group, rule: Rule, node: Any, grads: Sequence[Any], edges: Edges, inputs: Sequence[str]
) -> list[Any]:
    """The gradients that a group names, as results of one node."""
    leads = _edges(group, node, grads, inputs)
    if not any(edge is not None for edge in leads):
        computed = rule(node, grads, edges)
        return [computed[line] for line in group.lines]
    made: Any = new_node(_class_of(type(node).__name__.replace("Backward", "BackwardBackward")))
    made.next_edges, made.sequence_nr, made.leaves = leads, next_sequence_nr(), {}
    reader = copied(node)
    reader.broadcast = None
    made.reader = reader
    kept = {"output_grad": grads[0], **{name: node.unpack(name) for name in node.tensor_names}}
    made.saved_names = made.tensor_names = tuple(kept)
    for name, value in kept.items():
        source = "grad" if name == "output_grad" else name
        leaf = value
        if source in group.sources and isinstance(value, Tensor) and leads[group.sources.index(source)] is not None:
            leaf = made.leaves[group.sources.index(source)] = recorded_leaf(value)
        kept[name] = leaf
        for owner, tensor in ((made, value), (reader, leaf)):
            version = tensor._counter.value if getattr(tensor, "_counter", None) is not None else 0
            setattr(owner, f"saved_{name}", tensor)
            setattr(owner, f"saved_{name}_version", version if isinstance(tensor, Tensor) else -1)
    computed = rule(reader, (kept["output_grad"], *grads[1:]), edges)
    made.results = [computed[line] for line in group.lines]
    shown = [None if result is None else new_tensor(result._array) for result in made.results]
    first = next(result for result in shown if result is not None)
    made.output_metadata = metadata_of([first if result is None else result for result in shown])
    made.output_count = len(shown)
    for number, result in enumerate(shown):
        if result is not None:
            result._requires_grad, result._edge = True, (made, number)
    return shown if node.broadcast is None else _undo_broadcasting(shown, node, group)


def _undo_broadcasting(results: list[Any], node: Any, group: Group) -> list[Any]:
    """Gradients in the shape and dtype of their inputs, outside of the node."""
    from pullback import generated as F  # lazy: above this layer

    pairs = zip(results, group.lines, strict=True)
    return [None if r is None else F.sum_to_like(r, *node.broadcast[line]) for r, line in pairs]


def _edges(group: Group, node: Any, grads: Sequence[Any], inputs: Sequence[str]) -> Edges:
    """Where the node leads: to the gradient, to the inputs of the operation, to its result."""
    found: list[Any] = []
    for source in group.sources:
        if source == "grad":
            found.append(gradient_edge(grads[0]))
        elif source in inputs:
            found.append(node.next_edges[inputs.index(source)])
        else:
            found.append(None if source is None else (node, 0))
    return tuple(found)


class GradientNode(Node):
    """Gradients of an operation, which have a graph of their own. See Note [Gradient nodes]."""

    leaves: dict[int, Tensor]
    """What stands for the tensors at the ends of its edges, by the number of the edge."""
    results: list[Any]
    """The gradients as the inner graph made them."""
    reader: Any
    """The operation's own node, reading the leaves."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        tensors = [None if grad is None else new_tensor(as_array(grad)) for grad in grads]
        found = self._pull_back(tensors, edges, create_graph=False)
        return [grad._array if isinstance(grad, Tensor) else grad for grad in found]

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self._pull_back(grads, edges, create_graph=True)

    def _pull_back(self, grads: Sequence[Any], edges: Edges, *, create_graph: bool) -> list[Any]:
        if self.released:
            raise freed(self)
        found: list[Any] = [None] * len(edges)
        wanted = {place: leaf for place, leaf in self.leaves.items() if edges[place] is not None}
        pairs = [(r, g) for r, g in zip(self.results, grads, strict=True) if r is not None and g is not None]
        pairs = [(result, grad) for result, grad in pairs if result._requires_grad]
        if pairs and wanted:
            outputs, cotangents = [list(column) for column in zip(*pairs, strict=True)]
            _inside.depth += 1
            try:
                pulled = gradients(outputs, cotangents, list(wanted.values()), create_graph=create_graph)
            finally:
                _inside.depth -= 1
            for place, grad in zip(wanted, pulled, strict=True):
                found[place] = grad
        return found

    def release_saved_tensors(self) -> None:
        super().release_saved_tensors()
        self.reader.release_saved_tensors()
        self.released, self.leaves, self.results = True, {}, []

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        try:
            return super()._read_saved(public, raw=raw)
        except AttributeError:  # a number or a size that the operation's own node saved
            return self.reader._read_saved(saved_under(self, public), raw=raw)


@cache
def _class_of(name: str) -> type[GradientNode]:
    return type(name, (GradientNode,), {})
