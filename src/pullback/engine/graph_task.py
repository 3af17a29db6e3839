"""GraphTask: everything one backward pass knows while it runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.engine.input_buffer import InputBuffer
from pullback.engine.ready_queue import ReadyQueue
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.edge import Edges
from pullback.graph.node import Node
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import new_tensor
from pullback.tensor.version_counter import VersionCounter

_next_id = itertools.count().__next__


class Capture:
    """A gradient that `grad()` returns or `inputs=` accumulates: which input of the node, and where it goes."""

    __slots__ = ("index", "input_nr")

    def __init__(self, input_nr: int, index: int) -> None:
        self.input_nr = input_nr
        self.index = index


class ExecInfo:
    """Whether a node must run in a pass that wants only some gradients, and what is captured at it."""

    __slots__ = ("captures", "needed")

    def __init__(self) -> None:
        self.needed = False
        self.captures: list[Capture] = []


class GraphTask:
    """The state of one backward pass."""

    __slots__ = (
        "called_at", "captured", "carries_tangents", "create_graph", "dependencies", "depth", "errors", "exec_info",
        "final_callbacks", "id", "is_counted", "keep_graph", "moves_tensors", "not_ready", "ready_queue", "root", "streams",
    )  # fmt: skip

    def __init__(self, *, keep_graph: bool, create_graph: bool, depth: int) -> None:
        self.id = _next_id()
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.moves_tensors = create_graph
        """Whether gradients are Tensors from node to node: they are recorded, have tangents, or dispatch modes see them."""
        self.carries_tangents = False
        """Whether the pass runs inside of a dual level: gradients get the tangents that follow from what was saved."""
        self.depth = depth
        self.is_counted = False
        self.errors: Any = None
        """What NumPy does about floating-point errors in the program's own code. See Note [Silent arithmetic]."""
        self.called_at: Any = None
        """The Pass that nodes are marked with when they are freed, where lines are noted (Note [Leak sentinel])."""
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.ready_queue = ReadyQueue()
        self.root: Node | None = None
        self.exec_info: dict[Node, ExecInfo] | None = None
        self.captured: list[Any] = []
        self.final_callbacks: list[Callable[[], None]] = []
        self.streams: Any = None
        """Its PassStreams, where streams are in use. See Note [Streams]."""

    def run_callbacks(self) -> None:
        """Run the callbacks that were queued for the end of the pass, and those that are queued meanwhile."""
        for callback in self.final_callbacks:  # a list that grows is followed to its end
            callback()

    def count_dependencies(self, roots: list[Node], ends: Sequence[Node] = ()) -> None:
        """Count, for every node reached before `ends`, how many nodes send it gradients. Iterative: graphs may be deep."""
        dependencies: dict[Node, int] = self.dependencies
        for end in ends:
            dependencies[end] = 0  # a node that is known is not followed
        stack: list[Node] = list(roots)
        node: Node
        while stack:
            node = stack.pop()
            for edge in node.next_edges:
                if edge is None:
                    continue
                following = edge[0]
                known = dependencies.get(following)
                if known is None:
                    dependencies[following] = 1
                    stack.append(following)
                else:
                    dependencies[following] = known + 1

    def expand_layers(self, root: Node) -> None:
        """Let fused nodes expand where their steps will be seen. See Note [Fused nodes]."""
        while layers := [
            node for node in self.dependencies if node.fused and (node.extra is None or not node.extra.outer)
        ]:
            for node in layers:
                node._expand()
            self.dependencies.clear()
            self.count_dependencies([root])

    def count_steps(self, node: Node, outer: Node) -> None:
        """Count the steps of a fused node that expanded after this pass had begun. See Note [Fused nodes]."""
        assert node.extra is not None
        dependencies = self.dependencies
        if all(edge is None or edge[0] in dependencies for edge in outer.next_edges):
            return
        stack: list[Node] = [outer]
        while stack:
            for edge in stack.pop().next_edges:
                if edge is not None and edge[0] not in dependencies:
                    stack.append(edge[0])
                if edge is not None:
                    dependencies[edge[0]] = dependencies.get(edge[0], 0) + 1
        for edge in node.extra.fused_edges:
            if edge is not None:
                dependencies[edge[0]] -= 1
        if self.exec_info is not None:
            self._mark_senders(outer, self.exec_info)

    def acting_for(self, node: Node, edges: Edges) -> tuple[Node, Edges]:
        """Return the node that runs, and its edges: the outermost step where a fused node was looked at.

        `edges` are those of the node, read before. Another thread may look at any time: see Note [Expansion].
        """
        outer: Node | None = None if node.extra is None else node.extra.outer
        if outer is None:
            return node, edges
        self.count_steps(node, outer)
        return outer, self.wanted_edges(outer)

    def capture(self, info: ExecInfo, grads: Sequence[Any], owned: Sequence[int]) -> None:
        """Keep the gradients that were asked for at a node; an array that was added to becomes a Tensor of that version."""
        for capture in info.captures:
            if self.captured[capture.index] is None:
                grad, writes = grads[capture.input_nr], owned[capture.input_nr] - 1
                if writes > 0 and type(grad) is ndarray:
                    grad = new_tensor(grad)
                    grad._counter = VersionCounter(writes)
                self.captured[capture.index] = grad

    def will_execute(self, node: Node) -> bool:
        """Whether the pass runs a node, or returns a gradient that arrives at it."""
        if self.exec_info is None:
            return node in self.dependencies
        info = self.exec_info.get(node)
        return info is not None and (info.needed or bool(info.captures))

    def captures_at(self, node: Node) -> bool:
        """Whether the pass returns a gradient that arrives at a node."""
        return self.exec_info is not None and node in self.exec_info and bool(self.exec_info[node].captures)

    def execution_order(self) -> list[Node]:
        """List the nodes that the pass runs, in order: what the engine does, without gradients."""
        assert self.root is not None
        plan = GraphTask(keep_graph=True, create_graph=False, depth=0)
        plan.count_dependencies([self.root])
        order: list[Node] = []
        node: Node = self.root
        while True:
            for edge in self.wanted_edges(node):
                if edge is not None:
                    plan.dependencies[edge[0]] -= 1
                    if not plan.dependencies[edge[0]]:
                        plan.ready_queue.push(edge[0], [], [])
            if not len(plan.ready_queue):
                return order
            node = plan.ready_queue.pop()[0]
            order.append(node)

    def only_accumulates(self, leaf: AccumulateGrad) -> bool:
        """Whether nobody sees the gradient of a leaf before `.grad`: it is added there as soon as it is complete."""
        if self.moves_tensors or not leaf.takes_arrays():
            return False
        if process.changed and switches.node_observer is not None:
            return False
        return self.exec_info is None or (leaf in self.exec_info and not self.exec_info[leaf].captures)

    def wanted_edges(self, node: Node) -> Edges:
        """Return the edges of a node, with None in place of those along which this pass wants no gradient."""
        info = self.exec_info
        if info is None:
            return node.next_edges
        return tuple([edge if edge is not None and edge[0] in info else None for edge in node.next_edges])

    def mark_needed(
        self, root: Node, captures: list[tuple[Node, int]], wanted: Sequence[Node], ends: Sequence[Node] = ()
    ) -> None:
        """Mark the nodes on a path to a captured edge or to one of `wanted`: only these will run."""
        info: dict[Node, ExecInfo] = {}
        for index, (node, input_nr) in enumerate(captures):
            info.setdefault(node, ExecInfo()).captures.append(Capture(input_nr, index))
        for node in wanted:
            info.setdefault(node, ExecInfo()).needed = True
        self.captured = [None] * len(captures)
        self._mark_senders(root, info, ends)
        self.exec_info = info

    def _mark_senders(self, root: Node, info: dict[Node, ExecInfo], ends: Sequence[Node] = ()) -> None:
        """Mark every node below `root` with a next node that is captured or needed, from the targets back to the root."""
        senders = self._senders(root, ends)
        pending: list[Node] = list(info)
        while pending:
            for node in senders.get(pending.pop(), ()):
                use = info.get(node)
                if use is None:
                    use = info[node] = ExecInfo()
                if not use.needed:
                    use.needed = True
                    pending.append(node)

    def _senders(self, root: Node, ends: Sequence[Node]) -> dict[Node, list[Node]]:
        """Map every node from `root` to `ends` to the nodes that send it gradients."""
        senders: dict[Node, list[Node]] = {node: [] for node in ends}
        stack: list[Node] = [root]
        while stack:
            node = stack.pop()
            for edge in node.next_edges:
                if edge is None:
                    continue
                following = edge[0]
                known = senders.get(following)
                if known is None:
                    senders[following] = [node]
                    stack.append(following)
                else:
                    known.append(node)
        return senders
