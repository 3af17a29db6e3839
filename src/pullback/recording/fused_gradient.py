"""The gradients of a fused operation: recorded as its rule computes them, shown as those of its steps.

See Note [Fused nodes]. The rule of a linear layer multiplies two matrices, where PyTorch's gradient of the same layer
transposes and views on the way. So what the rule recorded stands behind a node of its own. When somebody looks at that
node, the steps of the operation are recorded, run backward, and what that recorded takes its place. All gradients that one
application computed are replaced together, since they share steps. After the operation was released, nothing is replaced.
The steps that users see may run in another thread meanwhile: the pass that records their gradients runs over nodes of its
own, which stand for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

from pullback.engine.engine import engine
from pullback.graph.edge import Edge, Edges
from pullback.graph.fused_node import adjust_steps, edges_of, expanding, put_in_place, steps_behind
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, held_fields
from pullback.graph.renamed_node import RenamedNode
from pullback.modes.switches import SWITCH_DEFAULTS, kept_switches, process, set_switches, switches
from pullback.tensor.tensor import Tensor

Rule = Callable[[Any, Sequence[Any], Edges], Sequence[Any]]


def shown_by_steps(rule: Rule) -> Rule:
    """The rule of a fused operation on Tensors, whose results show the gradients of its steps."""

    @wraps(rule)
    def apply(node: Any, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        results = rule(node, grads, edges)
        if switches.records and not process.finishing and (switches.plain or not process.changed):
            application = Application(node, grads)
            for line, result in enumerate(results):
                if result is not None and result._requires_grad and all(result is not grad for grad in grads):
                    application.stand_for(result, line)
        return results

    return apply


class Application:
    """One application of a fused operation's rule: what its steps can be recorded from."""

    def __init__(self, node: Any, grads: Sequence[Any]) -> None:
        self.node, self.grads = node, tuple(grads)
        self.made: dict[int, FusedGradient] = {}

    def stand_for(self, result: Any, line: int) -> None:
        """Put a node in front of the one that made a gradient."""
        edge = result._gradient_edge()
        if edge is None or edge[1]:
            return
        self.made[line] = made = FusedGradient(edge[0], "shown")
        made.application = self
        info = result._extra.view if result._extra is not None else None
        if info is not None:
            info.edge = (made, 0)
        else:
            result._edge = (made, 0)

    def expand(self) -> None:
        """Record the steps, run them backward, and let each node show what was recorded of its gradient."""
        with expanding:
            made, self.made = self.made, {}
            with kept_switches(*SWITCH_DEFAULTS):
                set_switches(SWITCH_DEFAULTS)
                found = self._gradients(list(made)) if made else []
            for node, gradient in zip(made.values(), found, strict=True):
                edge = None if gradient is None else gradient_edge(gradient)
                node.show(None if edge is None else edge[0], self._boundary())

    def _gradients(self, lines: list[int]) -> list[Any]:
        """The gradients of some inputs as the steps compute them, recorded; None where what they read was released."""
        inputs, extra = self._inputs(), self.node.extra
        known = [edge for edge in inputs if edge is not None]
        is_expanded = extra is not None and extra.outer is not None
        if self.node.released and not is_expanded:
            return [None] * len(lines)
        if self.node.output_count > 1 or len(set(known)) < len(known):
            return [None] * len(lines) if is_expanded else self._from_steps_of_their_own(lines)
        end = self.node._expand()
        steps = steps_behind([(end, 0)], self._boundary())
        if any(step.released for step in steps):
            return [None] * len(lines)
        catches: list[Edge] = [(Catch(), 0) for _ in inputs]
        stand_ins = {step: StandIn(step) for step in steps}
        instead = {edge: catch for edge, catch in zip(inputs, catches, strict=True) if edge is not None}
        for stand_in in stand_ins.values():
            stand_in.lead_to(stand_ins, instead)
        return self._pull_back([(stand_ins[end], 0)], [catches[line] for line in lines])

    def _from_steps_of_their_own(self, lines: list[int]) -> list[Any]:
        """The gradients of inputs, where the operation has several results, or one input twice."""
        from pullback.functions import unfused  # lazy: it composes operations, which build on this layer

        inputs = self._inputs()
        catches = [None if edge is None else (Catch(), 0) for edge in inputs]
        node = copied(self.node)
        node.next_edges = tuple(catches)
        results = getattr(unfused, node.fused)(node)
        ends = [gradient_edge(result) for result in (results if isinstance(results, tuple) else (results,))]
        found = self._pull_back(ends, [catches[line] for line in lines])
        starts = [*ends, *[None if gradient is None else gradient_edge(gradient) for gradient in found]]
        instead = {catch: edge for catch, edge in zip(catches, inputs, strict=True) if catch is not None}
        replace_edges(steps_behind(starts, self._boundary()), instead)
        return found

    def _inputs(self) -> Edges:
        """The edges of the operation itself, which leads to its steps once somebody has looked at it."""
        return edges_of(self.node)

    def _boundary(self) -> set[Node]:
        """The nodes that were there before: those of the gradients and of the inputs."""
        edges = [*self._inputs(), *[gradient_edge(grad) for grad in self.grads if grad is not None]]
        return {edge[0] for edge in edges if edge is not None}

    def _pull_back(self, ends: list[Any], catches: list[Any]) -> list[Any]:
        """The gradients that arrive at some nodes, recorded."""
        pairs = [(end, grad) for end, grad in zip(ends, self.grads, strict=False) if end and grad is not None]
        return engine.execute(
            [end for end, _ in pairs], [grad for _, grad in pairs], keep_graph=True, create_graph=True,
            captures=catches, accumulate=False,
        )  # fmt: skip


def replace_edges(nodes: list[Node], instead: dict[Any, Any]) -> None:
    """Let nodes, and the tensors they saved, lead elsewhere."""
    for node in nodes:
        node.next_edges = tuple([instead.get(edge, edge) for edge in node.next_edges])
        for name in node.tensor_names:
            saved = getattr(node, f"saved_{name}", None)
            if isinstance(saved, Tensor) and isinstance((saved._edge or (None,))[0], Catch):
                saved._edge = instead.get(saved._edge, saved._edge)


class StandIn(RenamedNode):
    """Runs in place of a step that users see, and leaves its edges and hooks alone."""

    def __init__(self, step: Node) -> None:
        super().__init__(step)
        self.extra = None
        if step.extra is not None and step.extra.stream is not None:
            self.require_extra().stream = step.extra.stream

    def lead_to(self, stand_ins: dict[Node, StandIn], instead: dict[Edge, Edge]) -> None:
        """Send gradients to what stands for the steps and the inputs that the step sends them to."""
        self.next_edges = tuple(
            [None if edge is None else instead.get(edge) or (stand_ins[edge[0]], edge[1]) for edge in self.next_edges]
        )


class Catch(Node):
    """Where the gradient of an input arrives: where the steps lead to it, not where the input came from."""

    def __init__(self) -> None:
        self.sequence_nr = -1

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return ()


class FusedGradient(RenamedNode):
    """Stands in front of what the rule of a fused operation recorded, until somebody looks."""

    application: Application | None = None

    def seen(self) -> Node:
        if self.application is not None and not self.released:
            self.application.expand()
        return self

    def _expand(self) -> Node:
        self.seen()
        outer: Node | None = None if self.extra is None else self.extra.outer
        return self.inner if outer is None else outer

    def show(self, outer: Node | None, boundary: set[Node]) -> None:
        """Hand the work to the node that users are to see; None: what the rule recorded stays."""
        self.application = None
        if outer is None:
            outer = self.inner
        self.require_extra()  # passes that run look further from now on
        adjust_steps(self, steps_behind([(outer, 0)], boundary))
        put_in_place(self, outer)
        self.__class__ = _class_of(outer.name())

    def release_saved_tensors(self) -> None:
        super().release_saved_tensors()
        self.application = None
        if self.extra is not None and self.extra.outer is not None:
            self.extra.outer.release_saved_tensors()


def copied(node: Any) -> Any:
    """Another node with what a node has saved."""
    kind: Any = type(node)
    copy = kind.__new__(kind)
    for name, value in held_fields(node).items():
        setattr(copy, name, value)
    return copy


@cache
def _class_of(name: str) -> type[FusedGradient]:
    return type(name, (FusedGradient,), {})
