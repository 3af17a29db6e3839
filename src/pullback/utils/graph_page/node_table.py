"""Reads the graph behind tensors into a table: one row per output, operation and leaf, in plain data.

A fused node (Note [Fused nodes]) stays one row, as the layer that it is: a linear layer reads "Linear".
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backend.array_module import storage_of
from pullback.graph.node import Node
from pullback.graph.source_lines import place_of, source_line_of
from pullback.tensor.tensor import Tensor
from pullback.utils.graph_reading import Params, inputs_of, label_of, names_of

__all__ = ["Row", "Saved", "read_table", "saved_by"]


@dataclass
class Saved:
    """A tensor that a node keeps for its backward. Those with equal `storage` share memory."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    storage: int


@dataclass
class Row:
    """One box of the graph, and the rows whose values it was computed from."""

    kind: str
    label: str
    name: str
    node: Any = None
    module: str = ""
    outputs: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    place: tuple[str, int, str] | None = None
    sequence_nr: int = -1


def read_table(tensors: Sequence[Tensor], params: Params = None, others: Params = None) -> list[Row]:
    """Read the graph behind `tensors`: first their own rows, then nodes from the outputs to the leaves.

    `params` names leaves and tells which module each belongs to: a module, a mapping or pairs. `others` names the rest.

    >>> import pullback
    >>> x = pullback.ones(2, 3, requires_grad=True)
    >>> [row.label for row in read_table([pullback.nn.functional.linear(x, x).sum()], {"x": x})]
    ['output', 'Sum', 'Linear', 'x']
    """
    names = {**names_of(others), **names_of(params)}
    rows: list[Row] = []
    positions: dict[Any, int] = {}
    paths: dict[int, str] = {}
    waiting: list[tuple[Any, Row]] = []
    for tensor in tensors:
        label = names.get(id(tensor), "output")
        row = Row("output", label, label, outputs=[(tuple(tensor.shape), _dtype_text(tensor.dtype))])
        rows.append(row)
        if tensor.grad_fn is not None:
            waiting.append((tensor.grad_fn, row))
    while waiting:
        node, consumer = waiting.pop()
        if node not in positions:
            positions[node] = len(rows)
            rows.append(_row_of(node, names, paths))
            waiting.extend((following, rows[-1]) for following in reversed(inputs_of(node)))
        consumer.inputs.append(positions[node])
    return rows


def _row_of(node: Any, names: Mapping[int, str], paths: dict[int, str]) -> Row:
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        name = names.get(id(leaf), "leaf")
        module, _, last = name.rpartition(".")
        outputs = [(tuple(leaf.shape), _dtype_text(leaf.dtype))]
        return Row("leaf", last or name, name, node, module=module, outputs=outputs)
    return Row(
        "operation", label_of(node), node.name(), node, _module_path(node, paths),
        outputs=[(tuple(m.shape), _dtype_text(m.dtype)) for m in getattr(node, "_input_metadata", None) or ()],
        saved=saved_by(node), place=_place(node), sequence_nr=getattr(node, "sequence_nr", -1),
    )  # fmt: skip


def _dtype_text(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _module_path(node: Any, known: dict[int, str]) -> str:
    """The path of the module whose forward recorded the node, where that was remembered.

    Looking a path up walks through modules, so each is looked up once: `known` holds them by their identity.
    """
    line = source_line_of(node)
    if line is None or line.module is None:
        return ""
    key = id(line.module)
    if key not in known:
        known[key] = line.module.describe()
    return known[key]


def _place(node: Any) -> tuple[str, int, str] | None:
    place = place_of(node) if isinstance(node, Node) else None
    return None if place is None else (*place, linecache.getline(*place).strip())


def saved_by(node: Any) -> list[Saved]:
    """The tensors that a node keeps for its backward, as `saved_report` tells them."""
    from pullback.inspection.nodes import held_arrays, held_behind, is_released, saved_values  # lazy: above this layer

    if not isinstance(node, Node) or is_released(node):
        return []
    return [
        _saved(name, array)
        for name, value in saved_values(node)
        for array in (*held_arrays(value), *held_behind(value))
    ]


def _saved(name: str, array: Any) -> Saved:
    owner = storage_of(array)
    return Saved(name, tuple(array.shape), str(array.dtype), int(owner.nbytes), id(owner))
