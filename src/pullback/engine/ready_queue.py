"""The nodes whose gradients are complete, the one to run next first.

# Note [Queue order]
Deeper re-entrant tasks come first, then higher sequence numbers (later operations), then older entries. One queue serves
one graph task: a re-entrant backward runs to its end inside the outer node, so depth is the depth of Python's calls.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from pullback.engine.input_buffer import InputBuffer
from pullback.graph.node import Node


class NodeTask(NamedTuple):
    """A node with the gradients it is to run on."""

    priority: int
    order: int
    node: Node
    buffer: InputBuffer


class ReadyQueue:
    """A heap of NodeTasks. See Note [Queue order]."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Node, InputBuffer]] = []
        self._count = 0

    def push(self, node: Node, buffer: InputBuffer) -> None:
        """Add a node that is ready."""
        self._count += 1
        heapq.heappush(self._heap, (-node.sequence_nr, self._count, node, buffer))

    def pop(self) -> NodeTask:
        """Take the node to run next."""
        return NodeTask(*heapq.heappop(self._heap))

    def __len__(self) -> int:
        return len(self._heap)
