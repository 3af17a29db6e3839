"""The ledger of saved memory: what a recorded graph keeps for its backward, tensor by tensor."""

from __future__ import annotations

from typing import Any

from pullback.backend.storage_pieces import memory_of
from pullback.graph.saved_tensor import PackedTensor, SavedOutput
from pullback.inspection.nodes import (
    held_arrays,
    is_released,
    leaves_behind,
    line_of,
    module_of,
    nodes_behind,
    saved_values,
)
from pullback.report import Report, place_text

__all__ = ["saved_report"]

_COLUMNS = ("operation", "saved", "line", "module", "shape", "dtype", "bytes", "of_leaf", "shared_with")


def saved_report(loss: Any) -> Report:
    """Tell what the graph behind `loss` keeps for backward, and how many bytes it holds.

    `loss` is a tensor, or a list, tuple or dict of them. Each row is one saved tensor. Memory that several of them share
    counts once, in the first row; the others name it under `shared_with`. A view holds the whole memory it lies in. The
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
    seen: dict[int, str] = {}
    keep: list[Any] = []  # so that no array is made anew at the address of another
    leaves = {id(memory_of(leaf._array)) for leaf in leaves_behind(loss)}
    rows: list[dict[str, Any]] = []
    total = activations = 0
    for number, node in enumerate(nodes_behind(loss)):
        if is_released(node):
            continue
        for name, value in saved_values(node):
            label = f"{node.name()}#{number}.{name}"
            size, shared, of_leaf = 0, None, False
            for array in held_arrays(value):
                owner = memory_of(array)
                keep.append(owner)
                if id(owner) in seen:
                    shared = shared or seen[id(owner)]
                    continue
                seen[id(owner)] = label
                size += owner.nbytes
                of_leaf = id(owner) in leaves
                activations += 0 if of_leaf else owner.nbytes
            total += size
            rows.append(
                {
                    "operation": node.name(), "saved": name, "line": place_text(line_of(node)),
                    "module": module_of(node), **_described(value), "bytes": size, "of_leaf": of_leaf,
                    "shared_with": shared,
                }
            )  # fmt: skip
    facts = {"total_bytes": total, "activation_bytes": activations, "saved_tensors": len(rows)}
    return Report("Saved for backward", _COLUMNS, rows, facts)


def _described(value: Any) -> dict[str, Any]:
    if isinstance(value, PackedTensor):
        return {"shape": None, "dtype": "packed"}
    array = value._array if isinstance(value, SavedOutput) or hasattr(value, "_array") else value
    return {"shape": tuple(array.shape), "dtype": str(array.dtype)}
