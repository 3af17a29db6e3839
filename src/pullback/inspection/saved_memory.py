"""The ledger of saved memory: what a recorded graph keeps for its backward, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.backend.storage_pieces import memory_of
from pullback.graph.saved_tensor import PackedTensor, SavedOutput
from pullback.inspection.nodes import (
    held_arrays,
    held_behind,
    is_released,
    leaves_behind,
    line_of,
    module_of,
    nodes_behind,
    require_tensors,
    saved_values,
)
from pullback.report import Report, place_text
from pullback.tensor.tensor import Tensor

__all__ = ["saved_report"]

_COLUMNS = ("operation", "saved", "line", "module", "shape", "dtype", "bytes", "of_leaf", "shared_with")


def saved_report(loss: Any) -> Report:
    """Tell what the graph behind `loss` keeps for backward, and how many bytes it holds.

    `loss` is a tensor, or a list, tuple or dict of them. Each row is one saved tensor. Memory that several of them share
    counts once, in the first row; the others name it under `shared_with`. A view holds the whole memory it lies in. What
    is kept to compute a value again (the inputs of a checkpoint, say) counts in the first row that it serves. The
    facts: `total_bytes` is all memory that the graph holds by what was saved; `activation_bytes` leaves out what leaves
    (parameters) own anyway.

    >>> import pullback
    >>> x = pullback.ones(256, requires_grad=True)
    >>> y = x.exp()
    >>> report = saved_report((y * y).sum())
    >>> [(row["operation"], row["saved"], row["bytes"]) for row in report.rows]
    [('MulBackward0', 'input', 1024), ('MulBackward0', 'other', 0), ('ExpBackward0', 'result', 0)]
    >>> report.facts["total_bytes"]
    1024
    """
    require_tensors("saved_report", loss)
    ledger = _Ledger(leaves_behind(loss))
    rows: list[dict[str, Any]] = []
    packed: list[tuple[dict[str, Any], str, Any]] = []
    for number, node in enumerate(nodes_behind(loss)):
        if is_released(node):
            continue
        for name, value in saved_values(node):
            row = {
                "operation": node.name(), "saved": name, "line": place_text(line_of(node)), "module": module_of(node),
                **_described(value), "bytes": 0, "of_leaf": False, "shared_with": None,
            }  # fmt: skip
            label = f"{node.name()}#{number}.{name}"
            ledger.enter(row, label, held_arrays(value))
            rows.append(row)
            packed.append((row, label, value))
    for row, label, value in packed:  # last, so that each array counts where it is saved itself
        ledger.enter(row, label, held_behind(value))
    facts = {
        "total_bytes": ledger.total, "activation_bytes": ledger.activations, "saved_tensors": len(rows),
    }  # fmt: skip
    return Report("Saved for backward", _COLUMNS, rows, facts)


class _Ledger:
    """Counts memory once, in the first row that holds it."""

    def __init__(self, leaves: list[Tensor]) -> None:
        self._leaves = {id(memory_of(leaf._array)) for leaf in leaves}
        self._seen: dict[int, str] = {}
        self._keep: list[Any] = []  # so that no array is made anew at the address of another
        self.total = self.activations = 0

    def enter(self, row: dict[str, Any], label: str, arrays: Iterable[Any]) -> None:
        """Count the arrays that a row holds."""
        for array in arrays:
            owner = memory_of(array)
            self._keep.append(owner)
            if id(owner) in self._seen:
                first = self._seen[id(owner)]
                row["shared_with"] = row["shared_with"] or (None if first == label else first)
                continue
            self._seen[id(owner)] = label
            row["of_leaf"] = id(owner) in self._leaves
            row["bytes"] += owner.nbytes
            self.total += owner.nbytes
            self.activations += 0 if row["of_leaf"] else owner.nbytes


def _described(value: Any) -> dict[str, Any]:
    if isinstance(value, PackedTensor):
        return {"shape": None, "dtype": "packed"}
    array = value._array if isinstance(value, SavedOutput) or hasattr(value, "_array") else value
    return {"shape": tuple(array.shape), "dtype": str(array.dtype)}
