"""The nodes whose gradients are complete, the one to run next first.

# Note [Queue order]
Higher sequence numbers (later operations) come first, then older entries. One queue serves one graph task: a re-entrant
backward runs to its end inside the outer node, so deeper tasks come first by Python's own call stack.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

from pullback.graph.node import Node


class NodeTask(NamedTuple):
    """A node with the gradients it is to run on, and which of them are owned (Note [Owned gradients])."""

    priority: int
    order: int
    node: Node
    grads: list[Any]
    owned: list[bool]


class ReadyQueue:
    """A heap of tasks. See Note [Queue order]."""

    __slots__ = ("count", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Node, list[Any], list[bool]]] = []
        self.count = 0

    def push(self, node: Node, grads: list[Any], owned: list[bool]) -> None:
        """Add a node that is ready."""
        self.count += 1
        heappush(self.heap, (-node.sequence_nr, self.count, node, grads, owned))

    def pop(self) -> NodeTask:
        """Take the node to run next."""
        return NodeTask(*heappop(self.heap))

    def __len__(self) -> int:
        return len(self.heap)
