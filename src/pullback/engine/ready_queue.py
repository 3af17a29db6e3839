"""The nodes whose gradients are complete, the one to run next first.

# Note [Queue order]
Higher sequence numbers (later operations) come first. AccumulateGrad nodes all have the highest one: those that are ready
together run in the order in which a binary heap gives equals back, which is the order that hooks on leaves have in PyTorch.
Threads may record nodes of equal numbers: of these, the last that was ready comes first. One queue serves one graph
task: a re-entrant backward runs to its end inside the outer node, so deeper tasks come first by Python's own call stack.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, TypeAlias

from pullback.graph.node import FIRST, Node

NodeTask: TypeAlias = "tuple[Node, list[Any], list[int]]"
"""A node with the gradients it is to run on, and which of them are owned (Note [Owned gradients])."""


class ReadyQueue:
    """A heap of NodeTasks. See Note [Queue order]."""

    __slots__ = ("count", "heap", "leaves")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Node, list[Any], list[int]]] = []
        self.leaves: list[NodeTask] = []
        self.count = 0

    def push(self, node: Node, grads: list[Any], owned: list[int]) -> None:
        """Add a node that is ready."""
        if node.sequence_nr == FIRST:
            self.leaves.append((node, grads, owned))
            return
        self.count += 1
        heappush(self.heap, (-node.sequence_nr, -self.count, node, grads, owned))

    def pop(self) -> NodeTask:
        """Take the node to run next."""
        if self.leaves:
            return self._pop_leaf()
        _, _, node, grads, owned = heappop(self.heap)
        return node, grads, owned

    def _pop_leaf(self) -> NodeTask:
        """Take one of the nodes that run as soon as they are ready."""
        leaves = self.leaves
        last = leaves.pop()
        count = len(leaves)
        if not count:
            return last
        # A binary heap of equals: the right child moves up into the hole, and the last one fills the hole at the bottom.
        taken = leaves[0]
        hole = child = 0
        while child < (count - 1) // 2:
            child = 2 * (child + 1)
            leaves[hole] = leaves[child]
            hole = child
        if count % 2 == 0 and child == (count - 2) // 2:
            leaves[hole] = leaves[2 * child + 1]
            hole = 2 * child + 1
        leaves[hole] = last
        return taken

    def __len__(self) -> int:
        return len(self.heap) + len(self.leaves)
