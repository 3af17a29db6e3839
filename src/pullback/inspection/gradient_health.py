"""grad_health: what gradients lose on their way in few bits, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import as_array, ndarray
from pullback.backend.gradient_statistics import (
    flushed_exponents,
    is_narrow,
    limits,
    squared_error,
    statistics,
    widest,
)
from pullback.engine.passes import current_graph_task
from pullback.inspection.nodes import acting_node, line_of, module_of
from pullback.inspection.wide_node import wide_node
from pullback.modes.node_observer import NodeObserver
from pullback.report import Report, place_text
from pullback.tensor.tensor import Tensor

__all__ = ["grad_health"]

_COLUMNS = (
    "operation", "line", "module", "dtype", "elements", "zero_share", "flushed_share", "subnormal_share", "infinite_share",
    "nan_share", "largest", "smallest", "own_error", "total_error", "loss_scale",
)  # fmt: skip


class grad_health(NodeObserver):
    """Watch the gradients that backward passes in the block compute, node by node.

    Each node's rule runs a second time in float64 on the same gradients: `flushed_share` is the share of elements that
    became zero though they are not, `own_error` the relative error that this node adds. With `shadow=True` a whole
    second pass in float64 runs beside: `total_error` is the relative error that has added up so far. `subnormal_share`,
    `infinite_share` and `nan_share` count what arrived at the inputs of each operation. `loss_scale` is the smallest power
    of two by which the loss must be multiplied so that what was flushed to zero in this node is not; the fact of that
    name serves all nodes, as far as the largest gradient does not overflow, and `saved_share` is the share of flushed
    elements that it saves.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 1e-4], dtype=pullback.float16, requires_grad=True)
    >>> with grad_health() as health:
    ...     ((x * x) * 1e-5).sum().backward()
    >>> [(row["operation"], row["flushed_share"]) for row in health.rows]
    [('SumBackward0', 0.0), ('MulBackward0', 0.0), ('MulBackward0', 0.5)]
    >>> health.facts["loss_scale"]
    64.0
    """

    def __init__(self, *, shadow: bool = False) -> None:
        self.shadow = shadow
        self._rows: dict[Any, _Row] = {}
        self._passes: dict[int, int] = {}
        self._exact: dict[Any, Any] = {}

    def __enter__(self) -> grad_health:
        self.start_observing()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_observing()
        self._exact.clear()

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        """Count what a node gives out, and what its rule gives in float64."""
        wide = wide_node(node) if any(is_narrow(_array(grad).dtype) for grad in grads if grad is not None) else None
        own = None if wide is None else _applied(wide, [_widened(grad) for grad in grads], edges)
        exact = None
        if self.shadow:
            arrived = [self._arrived(node, index, grad) for index, grad in enumerate(grads)]
            exact = None if wide is None else _applied(wide, arrived, edges)
        results = run()
        row = self._row_of(node)
        for index, result in enumerate(results):
            if result is None or edges[index] is None:
                continue
            array = _array(result)
            if not isinstance(array, ndarray):
                continue
            row.add(array, _at(own, index), _at(exact, index))
            if self.shadow:
                self._send(edges[index], _at(exact, index) if exact is not None else widest(array))
        return results

    def _arrived(self, node: Any, index: int, grad: Any) -> Any:
        known = self._exact.pop((node, index), None)
        return _widened(grad) if known is None else known

    def _send(self, edge: Any, grad: Any) -> None:
        key = (acting_node(edge[0]), edge[1])
        before = self._exact.get(key)
        self._exact[key] = grad if before is None else before + grad

    def _row_of(self, node: Any) -> _Row:
        """The row of a node: of the same place in each pass, so that the passes of a loop add up."""
        task = current_graph_task()
        number = 0 if task is None else task.id
        position = self._passes[number] = self._passes.get(number, -1) + 1
        key = (position, node.name(), node.shape)
        if key not in self._rows:
            self._rows[key] = _Row(node)
        return self._rows[key]

    # What is shown.

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per node, in the order in which backward ran them."""
        return [row.to_dict() for row in self._rows.values() if row.elements]

    @property
    def facts(self) -> dict[str, Any]:
        """What holds for all nodes together."""
        rows = [row for row in self._rows.values() if row.elements]
        elements = sum(row.elements for row in rows) or 1
        flushed: dict[Any, int] = {}
        for row in rows:
            for power, count in row.flushed.items():
                flushed[power, row.smallest_number] = flushed.get((power, row.smallest_number), 0) + count
        needed = max([row.loss_scale() for row in rows], default=1.0)
        # A factor of two is left for the sums of gradients that meet.
        allowed = min([_power_below(row.largest_number / max(row.largest, 1.0) / 2) for row in rows], default=1.0)
        scale = min(needed, allowed) if flushed else 1.0
        total = sum(flushed.values())
        saved = sum(count for (power, smallest), count in flushed.items() if math.ldexp(scale, power) >= smallest)
        return {
            "loss_scale": scale, "largest_loss_scale": allowed, "flushed_share": total / elements,
            "saved_share": saved / total if total else 1.0,
            "infinite_share": sum(row.infinite for row in rows) / elements,
            "nan_share": sum(row.nans for row in rows) / elements,
        }  # fmt: skip

    def report(self) -> Report:
        """Everything as a report."""
        return Report("Gradients, node by node", _COLUMNS, self.rows, self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return self.report().to_dict()

    def __str__(self) -> str:
        return str(self.report())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


class _Row:
    """The counts of one node."""

    def __init__(self, node: Any) -> None:
        self.operation, self.line, self.module = node.name(), place_text(line_of(node)), module_of(node)
        self.dtype = ""
        self.elements = self.zeros = self.subnormal = self.infinite = self.nans = 0
        self.largest, self.smallest = 0.0, math.inf
        self.smallest_number, self.largest_number = 0.0, math.inf
        self.flushed: dict[int, int] = {}
        self.own, self.total = [0.0, 0.0], [0.0, 0.0]
        self.is_compared = self.is_shadowed = False

    def add(self, array: Any, own: Any, exact: Any) -> None:
        """Count one gradient; `own` and `exact` are what float64 gives for it."""
        self.dtype = self.dtype or str(array.dtype)
        found = statistics(array)
        self.elements += found.elements
        self.zeros += found.zeros
        self.subnormal += found.subnormal
        self.infinite += found.infinite
        self.nans += found.nans
        self.largest, self.smallest = max(self.largest, found.largest), min(self.smallest, found.smallest)
        if array.dtype.kind in "fVc":
            self.smallest_number, _, self.largest_number = limits(array.dtype)
        if own is not None and own.shape == array.shape:
            self.is_compared = True
            for power, count in flushed_exponents(array, own).items():
                self.flushed[power] = self.flushed.get(power, 0) + count
            self.own = [a + b for a, b in zip(self.own, squared_error(array, own), strict=True)]
        if exact is not None and exact.shape == array.shape:
            self.is_shadowed = True
            self.total = [a + b for a, b in zip(self.total, squared_error(array, exact), strict=True)]

    def loss_scale(self) -> float:
        """The smallest power of two that lifts what was flushed to the smallest number there is; 1 if nothing was."""
        if not self.flushed:
            return 1.0
        return max(1.0, _power_above(self.smallest_number / math.ldexp(1.0, min(self.flushed))))

    def to_dict(self) -> dict[str, Any]:
        """The counts as shares."""
        return {
            "operation": self.operation, "line": self.line, "module": self.module, "dtype": self.dtype,
            "elements": self.elements, "zero_share": self.zeros / self.elements,
            "flushed_share": sum(self.flushed.values()) / self.elements if self.is_compared else None,
            "subnormal_share": self.subnormal / self.elements, "infinite_share": self.infinite / self.elements,
            "nan_share": self.nans / self.elements, "largest": self.largest,
            "smallest": None if math.isinf(self.smallest) else self.smallest,
            "own_error": _ratio(self.own) if self.is_compared else None,
            "total_error": _ratio(self.total) if self.is_shadowed else None,
            "loss_scale": self.loss_scale() if self.is_compared else None,
        }  # fmt: skip


def _applied(node: Any, grads: list[Any], edges: Any) -> Sequence[Any] | None:
    """What a rule gives in float64; None where it does not take that."""
    try:
        results = node.apply(grads, edges)
    except Exception:  # whatever it is: the pass itself goes on
        return None
    return [None if result is None else as_array(getattr(result, "whole", lambda r=result: r)()) for result in results]


def _array(grad: Any) -> Any:
    return grad._array if isinstance(grad, Tensor) else grad


def _widened(grad: Any) -> Any:
    return None if grad is None else widest(_array(grad))


def _at(results: Sequence[Any] | None, index: int) -> Any:
    return None if results is None else results[index]


def _ratio(squares: list[float]) -> float:
    return 0.0 if squares[0] == 0 else math.sqrt(squares[0] / squares[1]) if squares[1] else math.inf


def _power_above(value: float) -> float:
    return 2.0 ** math.ceil(math.log2(value)) if 0 < value < math.inf else 1.0


def _power_below(value: float) -> float:
    return 2.0 ** math.floor(math.log2(value)) if 0 < value < math.inf else 1.0
