"""Watches one backward pass: which node ran when, how long it took, and what gradient arrived at it.

Hooks see the gradients and the profiler's slot sees the times; both are taken away when the pass has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backend.array_summary import ArraySummary, first_values, summarise
from pullback.backend.sparse_array import SparseArray
from pullback.engine.engine import as_value
from pullback.modes.switches import switches
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


class BackwardRecording:
    """Records the steps of a pass over the rows of a table while its block runs; a profile must be running around it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.steps: list[Step] = []
        self._rows = rows
        self._positions: dict[int, int] = {}
        self._latest: dict[int, Step] = {}
        self._handles: list[Any] = []
        self._profile: Any = None

    def __enter__(self) -> BackwardRecording:
        for position, row in enumerate(self._rows):
            if row.kind == "leaf":
                self._handles.append(row.node.variable.register_hook(self._leaf_hook(position)))
            elif row.kind == "operation":
                self._handles.append(row.node.register_prehook(self._node_hook(position)))
                extra = row.node.extra  # of an expanded node the outermost step runs: Note [Fused nodes]
                self._positions[id(row.node if extra.outer is None else extra.outer)] = position
        self._profile, switches.profiler = switches.profiler, self
        return self

    def __exit__(self, *exception: object) -> None:
        switches.profiler = self._profile
        for handle in self._handles:
            handle.remove()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profile, name)  # what others tell the profile in between

    def _node_hook(self, position: int) -> Callable[[Any], None]:
        def arrived(grads: tuple[Any, ...]) -> None:
            self._arrived(position, grads)

        return arrived

    def _leaf_hook(self, position: int) -> Callable[[Any], None]:
        def arrived(grad: Any) -> None:
            self._arrived(position, (grad,))

        return arrived

    def _arrived(self, position: int, grads: tuple[Any, ...]) -> None:
        arrays = [_array_of(grad) for grad in grads]
        step = Step(position, [None if array is None else summarise(array) for array in arrays])
        if arrays and arrays[0] is not None:
            step.values = first_values(arrays[0])
        step.start = _now()
        self.steps.append(step)
        self._latest[position] = step

    def evaluate(self, node: Any, run: Callable[[], Any]) -> Any:
        """Run a node; its step learns how long it took."""
        step = self._latest.get(self._positions.get(id(node), -1))
        if step is None:
            return self._profile.evaluate(node, run)
        step.start = _now()
        try:
            return self._profile.evaluate(node, run)
        finally:
            step.microseconds = _now() - step.start


def _now() -> float:
    return time.perf_counter_ns() / 1000


def _array_of(grad: Any) -> Any:
    if not isinstance(grad, Tensor):
        return None
    value = as_value(grad)
    return value.values if isinstance(value, SparseArray) else value
