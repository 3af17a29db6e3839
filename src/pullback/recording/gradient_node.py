"""A node that stands for the gradients of an operation: what PyTorch's own `..._backward` operations record.

# Note [Gradient nodes]
On Tensors a rule is a chain of operations, and each records a node. Where PyTorch computes a gradient by one operation
(`mse_loss_backward`), its graph has one node there (`MseLossBackwardBackward0`). So an operation may declare
`gradient_nodes=`: then one node stands in front of the chain. The engine sees a node that hands gradients on to the chain,
and users see a node that leads past it (`next_functions`, `_saved_...`). Code that needs the gradients that leave it (a hook
on the node, a call of it) makes it run the chain as a graph of its own, which ends where the node leads; a pass that runs
meanwhile has counted the chain's nodes, so until it ends the node stays as it is.
Where a kernel differentiates the gradient again, no chain is recorded before somebody needs it (gradient_at_once.py).
Where anybody looks at operations (transforms, tangents, modes), there is no such node. Neither do the gradients of the
chain's own operations have any: PyTorch's second derivative of a convolution is a formula, not one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

from pullback.backend.array_module import as_array
from pullback.engine.engine import engine
from pullback.engine.passes import is_running
from pullback.graph.edge import Edges
from pullback.graph.fused_node import steps_behind
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr, seen_edge
from pullback.graph.recording import metadata_of
from pullback.graph.shown_values import saved_under
from pullback.graph.source_lines import freed
from pullback.modes.saved_tensor_hooks import are_saved_tensors_seen
from pullback.modes.switches import process, switches
from pullback.recording.fused_gradient import Catch, StandIn, copied
from pullback.tensor.tensor import Tensor, new_tensor

Rule = Callable[[Any, Sequence[Any], Edges], Sequence[Any]]


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


def with_gradient_nodes(rule: Rule, text: str, inputs: Sequence[str], operation: str) -> Rule:
    """The rule of an operation on Tensors, which records the nodes that `text` names where nobody looks on."""
    from pullback.recording.gradient_at_once import find_again  # lazy: it builds on this module

    groups = read_groups(text, inputs)
    how = find_again(operation, groups, rule)
    grouped = {line for group in groups for line in group.lines}

    @wraps(rule)
    def apply(node: Any, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if not switches.records or (process.changed and not switches.plain) or process.finishing or node.is_step:
            return rule(node, grads, edges)
        results: list[Any] = [None] * len(edges)
        rest = tuple([None if line in grouped else edge for line, edge in enumerate(edges)])
        if any(edge is not None for edge in rest):
            results = list(rule(node, grads, rest))
        for group, again in zip(groups, how, strict=True):
            wanted = tuple([edge if line in group.lines else None for line, edge in enumerate(edges)])
            if any(edge is not None for edge in wanted):
                found = _record(group, again, rule, node, grads, wanted, inputs)
                for line, result in zip(group.lines, found, strict=True):
                    results[line] = result
        return results

    return apply


def _record(
    group: Group, again: Any, rule: Rule, node: Any, grads: Sequence[Any], edges: Edges, inputs: Sequence[str]
) -> list[Any]:
    """The gradients that a group names, as results of one node."""
    leads = _edges(group, node, grads, inputs)
    if not any(edge is not None for edge in leads):
        computed = rule(node, grads, edges)
        return [computed[line] for line in group.lines]
    if again is not None and not (process.changed and (are_saved_tensors_seen() or switches.anomaly_mode)):
        from pullback.recording.gradient_at_once import record_at_once  # lazy: it builds on this module

        results = record_at_once(again, node, grads[0], edges, leads)
        if results is not None:
            return results if node.broadcast is None else _undo_broadcasting(results, node, group)
    reader = node
    if node.broadcast is not None:  # gradients are brought to the shapes of inputs outside of the node
        reader = copied(node)
        reader.broadcast = None
    first_number = next_sequence_nr()
    computed = rule(reader, grads, edges)
    results = [computed[line] for line in group.lines]
    made: Any = new_node(_class_of(type(node).__name__.replace("Backward", "BackwardBackward")))
    made.next_edges = tuple([None if result is None else gradient_edge(result) for result in results])
    made.first_number, made.sequence_nr = first_number, next_sequence_nr()
    made.shown_edges, made.reader, made.output_grad = leads, reader, grads[0]
    shown = results_of(made, [None if result is None else result._array for result in results])
    return shown if node.broadcast is None else _undo_broadcasting(shown, node, group)


def results_of(node: Any, arrays: Sequence[Any]) -> list[Any]:
    """The gradients that a node of gradients computed, as Tensors that lead to it."""
    results: list[Any] = [None if array is None else new_tensor(array) for array in arrays]
    first = next(result for result in results if result is not None)
    node.output_metadata = metadata_of([first if result is None else result for result in results])
    node.output_count = len(results)
    for number, result in enumerate(results):
        if result is not None:
            result._requires_grad, result._edge = True, (node, number)
    return results


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
    """Gradients of an operation, which a chain of nodes computes. See Note [Gradient nodes]."""

    shown_edges: Edges
    """Where users see it lead."""
    reader: Any
    """The operation's own node, which knows what the rule read."""
    output_grad: Any
    """The gradient that the rule was given."""
    first_number: int
    """The sequence number from which on the chain was recorded."""
    chain: Edges | None = None
    """The edges that lead into the chain, where the node runs it as a graph of its own."""
    steps: list[Node]
    """The nodes of the chain, then."""
    is_marked = False
    """Whether the nodes of the chain know that they are steps: a pass that records enters it here, and tells them."""
    catches: Edges
    """Where that graph ends, in the order of the edges."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.chain is None:
            return grads
        tensors = [None if grad is None else new_tensor(as_array(grad)) for grad in grads]
        found = self._run_chain(tensors, create_graph=False)
        return [grad._array if isinstance(grad, Tensor) else grad for grad in found]

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if self.chain is not None:
            return self._run_chain(grads, create_graph=True)
        if not self.is_marked:
            self.is_marked = True
            self._mark_steps(self.next_edges, self.first_number)
        return grads

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple([(None, 0) if edge is None else seen_edge(edge) for edge in self.shown_edges])

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> Any:
        self._separate_chain()
        return super().register_hook(fn)

    def __call__(self, *grads: Any, **named: Any) -> Any:
        self._separate_chain()
        return super().__call__(*grads, **named)

    def _separate_chain(self) -> None:
        """Let the chain end at nodes of its own, so that this node sends what arrives there."""
        if self.chain is not None or is_running():
            return
        self.end_chain(self.next_edges, self.first_number)
        self.next_edges = self.shown_edges

    def end_chain(self, ends: Edges, first_number: int) -> None:
        """Run the chain as a graph of its own from now on, which ends where this node leads.

        What runs are nodes that stand for those of the chain: these lead on, for programs that differentiate once more.
        """
        catches: dict[Any, Any] = {edge: (Catch(), 0) for edge in self.shown_edges if edge is not None}
        self.steps = self._mark_steps(ends, first_number)
        stand_ins = {step: StandIn(step) for step in self.steps}
        for stand_in in stand_ins.values():
            stand_in.lead_to(stand_ins, catches)
        self.chain = tuple(
            [None if edge is None else catches.get(edge) or (stand_ins[edge[0]], edge[1]) for edge in ends]
        )
        places: list[Any] = []
        for edge in self.shown_edges:  # where two edges lead to one place, the first takes what arrives
            places.append(None if edge is None else catches.pop(edge, None))
        self.catches = tuple(places)

    def _mark_steps(self, ends: Edges, first_number: int) -> list[Node]:
        """Tell the nodes of a chain what they are: not those that were there before, as far as it leads to them."""
        leads = (*self.shown_edges, *self.reader.next_edges)
        known: set[Node] = {self.reader, *[edge[0] for edge in leads if edge is not None]}
        steps = steps_behind(ends, known, first_number)
        for step in steps:
            step.is_step = True
        return steps

    def _run_chain(self, grads: Sequence[Any], *, create_graph: bool) -> list[Any]:
        assert self.chain is not None
        pairs = [(end, grad) for end, grad in zip(self.chain, grads, strict=True) if end and grad is not None]
        captures = [catch for catch in self.catches if catch is not None]
        arrived = iter(
            engine.execute(
                [end for end, _ in pairs], [grad for _, grad in pairs], keep_graph=True, create_graph=create_graph,
                captures=captures, accumulate=False, ends_at_captures=True,
            )
        )  # fmt: skip
        return [None if catch is None else next(arrived) for catch in self.catches]

    def release_saved_tensors(self) -> None:
        self.released, self.output_grad = True, None
        if self.chain is not None:
            for step in self.steps:
                step.release_saved_tensors()

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        own = saved_under(self, public)
        if own != "grad_output":
            return self.reader._read_saved(own, raw=raw)
        if self.released:
            raise freed(self)
        return self.output_grad


@cache
def _class_of(name: str) -> type[GradientNode]:
    return type(name, (GradientNode,), {})
