"""Watches one backward pass: which node ran when, how long it took, and what gradient arrived at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backend.array_module import as_array
from pullback.backend.array_summary import ArraySummary, first_values, summarise
from pullback.backend.sparse_array import SparseArray
from pullback.engine.careful_run import as_value
from pullback.engine.passes import current_graph_task
from pullback.modes.node_observer import NodeObserver
from pullback.tensor.tensor import Tensor
from pullback.utils.graph_page.node_table import Row

__all__ = ["BackwardRecording", "Step"]


@dataclass
class Step:
    """The arrival of gradients at one row of the table, and the time that its node took with them."""

    row: int
    summaries: list[ArraySummary | None]
    values: list[float | str] = field(default_factory=list)
    start: float = 0.0
    microseconds: float | None = None


class BackwardRecording(NodeObserver):
    """Records the steps of a pass of this thread over the rows of a table while its block runs."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.steps: list[Step] = []
        self._rows = rows
        self._positions: dict[int, int] = {}
        self._depth: int | None = None

    def __enter__(self) -> BackwardRecording:
        for position, row in enumerate(self._rows):
            if row.kind in ("leaf", "operation"):
                extra = row.node.extra  # of an expanded node the outermost step runs: Note [Fused nodes]
                acting = row.node if extra is None or extra.outer is None else extra.outer
                self._positions[id(acting)] = position
        self.start_observing()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_observing()

    def see_arrival(self, node: Any, grad: Any) -> None:
        """Note the gradient of a leaf."""
        position = self._positions.get(id(node))
        if position is not None and self._is_of_the_pass():
            self._note(position, (grad,))

    def _is_of_the_pass(self) -> bool:
        """Whether the pass that runs is the one that is recorded, and not one inside of it."""
        task = current_graph_task()
        depth = 0 if task is None else task.depth
        if self._depth is None:
            self._depth = depth
        return depth == self._depth

    def _note(self, position: int, grads: Sequence[Any]) -> Step:
        arrays = [_array_of(grad) for grad in grads]
        step = Step(position, [None if array is None else summarise(array) for array in arrays])
        if arrays and arrays[0] is not None:
            step.values = first_values(arrays[0])
        step.start = _now()
        self.steps.append(step)
        return step

    def note_captures(self, nodes: Sequence[Any], grads: Sequence[Any]) -> None:
        """Add the gradients that the pass returned for inputs inside of the graph: their nodes did not run."""
        seen = {step.row for step in self.steps}
        for node, grad in zip(nodes, grads, strict=False):
            position = self._positions.get(id(node))
            if position is not None and position not in seen and grad is not None:
                self._note(position, (grad,))

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        """Run a node; its step learns how long it took."""
        position = self._positions.get(id(node))
        if not self._is_of_the_pass() or position is None:
            return run()
        step = self._note(position, grads)
        try:
            return run()
        finally:
            step.microseconds = _now() - step.start


def _now() -> float:
    return time.perf_counter_ns() / 1000


def _array_of(grad: Any) -> Any:
    """The elements of a gradient as it moves through a pass, those of a sparse one."""
    value = as_value(grad) if isinstance(grad, Tensor) else grad
    if value is None:
        return None
    return value.values if isinstance(value, SparseArray) else as_array(value)
