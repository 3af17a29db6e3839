"""GraphTask: everything one backward pass knows while it runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.engine.input_buffer import InputBuffer
from pullback.engine.ready_queue import ReadyQueue
from pullback.graph.edge import Edge
from pullback.graph.node import Node

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

    def should_execute(self) -> bool:
        return self.needed


class GraphTask:
    """The state of one backward pass."""

    __slots__ = (
        "captured", "create_graph", "dependencies", "depth", "exec_info", "final_callbacks", "id", "keep_graph",
        "not_ready", "ready_queue", "sole_root",
    )  # fmt: skip

    def __init__(self, *, keep_graph: bool, create_graph: bool, depth: int) -> None:
        self.id = _next_id()
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.depth = depth
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.ready_queue = ReadyQueue()
        self.exec_info: dict[Node, ExecInfo] | None = None
        self.captured: list[Any] = []
        self.final_callbacks: list[Callable[[], None]] = []
        self.sole_root: Node | None = None

    def count_dependencies(self, roots: list[Node]) -> None:
        """Count, for every reachable node, how many nodes send it gradients. Iterative: graphs may be deep."""
        dependencies: dict[Node, int] = self.dependencies
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

    def without_unneeded(self, node: Node, results: Sequence[Any]) -> list[Any]:
        """The gradients that a node computed, None for those that no needed node receives: hooks see them so."""
        info = self.exec_info
        assert info is not None
        pairs = zip(results, node.next_edges, strict=False)
        return [None if edge is None or edge[0] not in info else result for result, edge in pairs]

    def capture(self, info: ExecInfo, grads: Sequence[Any]) -> None:
        """Keep the gradients that were asked for at a node."""
        for capture in info.captures:
            if self.captured[capture.index] is None:
                self.captured[capture.index] = grads[capture.input_nr]

    def apply_needed(self, node: Node, grads: Sequence[Any], owned: bool) -> Sequence[Any]:
        """Compute a node's gradients in a pass that wants only some: those that no needed node receives are left out."""
        info = self.exec_info
        edges: tuple[Edge | None, ...] = node.next_edges
        assert info is not None
        needed = [edge if edge is not None and edge[0] in info else None for edge in edges]
        node.next_edges = tuple(needed)  # which is where a node reads what is asked of it
        try:
            return node.apply_differentiable(grads) if self.create_graph else node.apply(grads, owned)
        finally:
            node.next_edges = edges

    def mark_needed(self, root: Node, captures: list[tuple[Node, int]], wanted: Sequence[Node]) -> None:
        """Mark the nodes on a path to a captured edge or to one of `wanted`: only these will run."""
        info: dict[Node, ExecInfo] = {}
        for index, (node, input_nr) in enumerate(captures):
            info.setdefault(node, ExecInfo()).captures.append(Capture(input_nr, index))
        for node in wanted:
            info.setdefault(node, ExecInfo()).needed = True
        if len(root.next_edges) == 1 and root.next_edges[0] is not None:
            self.sole_root = root.next_edges[0][0]
        self.captured = [None] * len(captures)
        # A node is needed if one of its next nodes is captured or needed: from the targets back to the root.
        senders = self._senders(root)
        pending: list[Node] = list(info)
        while pending:
            for node in senders.get(pending.pop(), ()):
                use = info.get(node)
                if use is None:
                    use = info[node] = ExecInfo()
                if not use.needed:
                    use.needed = True
                    pending.append(node)
        self.exec_info = info

    def _senders(self, root: Node) -> dict[Node, list[Node]]:
        """For every node below `root`, the nodes that send it gradients."""
        senders: dict[Node, list[Node]] = {}
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
