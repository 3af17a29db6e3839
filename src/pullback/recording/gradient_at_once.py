"""A node that computes the gradients of a gradient itself, where a kernel says how; its chain is recorded when it is needed.

See Note [Gradient nodes]. The chain of a layer norm's gradient has twenty nodes; a pass that records nothing needs none of
them. So where a rule declares `again=True`, for which `kernels/` has `<operation>_again`, a recorded gradient is computed as
an unrecorded one is, by the rule on arrays, and the node keeps what the operation's own node saved. A pass on arrays calls
that kernel. A pass that records (a third derivative) first records the chain, which then runs as a graph of its own; after
`spread` the engine runs it instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from typing import Any

from pullback import kernels
from pullback.backend.device_array import DeviceArray
from pullback.facts import fact_of
from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import new_node, next_sequence_nr
from pullback.graph.saved_tensor import SavedOutput, raise_stale
from pullback.graph.source_lines import freed
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.switches import switches
from pullback.recording.fused_gradient import copied
from pullback.recording.gradient_node import GradientNode, Group, Rule, results_of
from pullback.tensor.tensor import Tensor


class Again:
    """How the gradients of a group of lines are differentiated: the kernel, and the saved values that it takes."""

    def __init__(self, kernel: Callable[..., Any], first: Group, group: Group, rule: Rule) -> None:
        self.kernel, self.group, self.rule = kernel, group, rule
        stands_for = dict(zip(first.sources, group.sources, strict=True))
        self.names = tuple([stands_for.get(name, name) for name in list(signature(kernel).parameters)[3:]])


def find_again(operation: str, groups: Sequence[Group], rule: Rule) -> list[Again | None]:
    """The same for each group of an operation; None where no kernel is declared for it."""
    if not fact_of(operation, "again"):
        return [None] * len(groups)
    kernel = getattr(kernels, f"{operation}_again")
    return [Again(kernel, groups[0], group, rule) for group in groups]


def record_at_once(again: Again, node: Any, grad: Any, edges: Edges, leads: Edges) -> list[Any] | None:
    """The gradients that a group names, as results of a node without a chain; None where they need one."""
    if grad is None or not _is_plain(grad):
        return None
    saved = {
        name: (getattr(node, f"saved_{name}"), getattr(node, f"saved_{name}_version")) for name in node.tensor_names
    }
    if not all(
        value is None or type(value) in (Tensor, SavedOutput) or _is_parameter(value) for value, _ in saved.values()
    ):
        return None
    reader = node
    if node.broadcast is not None:  # gradients are brought to the shapes of inputs outside of the node
        reader = copied(node)
        reader.broadcast = None
    computed = reader.apply([grad._array], edges)
    results = [computed[line] for line in again.group.lines]
    kinds = {(type(result), result.dtype) for result in results if result is not None}
    if kinds != {(type(grad._array), grad._array.dtype)}:
        return None
    made: Any = new_node(_class_of(type(node).__name__.replace("Backward", "BackwardBackward")))
    made.next_edges = made.shown_edges = leads
    made.sequence_nr = next_sequence_nr()
    made.again, made.reader, made.saved, made.output_grad, made.lines = again, node, saved, grad, edges
    return results_of(made, results)


def _is_plain(tensor: Any) -> bool:
    array = tensor._array
    return array.dtype.char in "fd" and type(array) is not DeviceArray and tensor._bottom is tensor


def _is_parameter(value: Any) -> bool:
    return isinstance(value, Tensor) and value._is_param


class GradientAtOnce(GradientNode):
    """Gradients of an operation that a kernel differentiates again."""

    again: Again
    saved: dict[str, tuple[Any, int]]
    """What the operation's node saved, with versions: that node may be released before this one."""
    lines: Edges
    """The edges that the rule is asked for, as the operation's node has them."""
    is_spread = False
    """Whether the engine runs the chain, and this node hands gradients on to it."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.is_spread:
            return super().apply(grads, edges, owned)
        if self.released:
            raise freed(self)
        values: list[Any] = []
        for name in self.again.names:
            if name in self.saved:
                value, version = self.saved[name]
                if value is not None and value._counter is not None and value._counter.value != version:
                    raise_stale(self._own_reader(), name)
                    value = self._own_reader().unpack(name)
                values.append(None if value is None else value._array)
            else:
                values.append(getattr(self.reader, f"saved_{name}"))
        found: Sequence[Any] = self.again.kernel(
            tuple([edge is not None for edge in edges]), grads, self.output_grad._array, *values
        )
        return found

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if not self.is_spread and self.chain is None:
            self.end_chain(*self._record_chain())
        return super().apply_differentiable(grads, edges)

    def spread(self) -> None:
        """Hand gradients on to the chain from now on: observers of the running graph see only operations."""
        if not self.is_spread and self.chain is None and not self.released:
            self.next_edges, self.first_number = self._record_chain()
            self.is_spread = True

    def _record_chain(self) -> tuple[Edges, int]:
        if self.released:
            raise freed(self)
        reader = self._own_reader()
        first_number = next_sequence_nr()
        records = switches.records
        set_grad_mode(True)
        try:
            computed = self.again.rule(reader, (self.output_grad,), self.lines)
        finally:
            set_grad_mode(records)
        results = [computed[line] for line in self.again.group.lines]
        ends = tuple([None if result is None else gradient_edge(result) for result in results])
        return ends, first_number

    def _own_reader(self) -> Any:
        """The operation's node with what it had saved."""
        if self.reader.released or self.reader.broadcast is not None:
            self.reader = copied(self.reader)
            self.reader.broadcast, self.reader.released = None, False
            for name, (value, version) in self.saved.items():
                setattr(self.reader, f"saved_{name}", value)
                setattr(self.reader, f"saved_{name}_version", version)
        return self.reader

    def _separate_chain(self) -> None:
        """Separate the chain, unless the engine runs it: what leaves this node is seen anyway."""
        if self.is_spread:
            super()._separate_chain()

    def release_saved_tensors(self) -> None:
        super().release_saved_tensors()
        self.saved = {}

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        if not self.released:
            self._own_reader()
        return super()._read_saved(public, raw=raw)


@cache
def _class_of(name: str) -> type[GradientAtOnce]:
    return type(name, (GradientAtOnce,), {})
