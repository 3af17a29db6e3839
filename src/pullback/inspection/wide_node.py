"""A node again with everything it saved in 64 bits, to see what its rule loses in fewer."""

from __future__ import annotations

from typing import Any

from pullback.backend.array_module import ndarray
from pullback.backend.gradient_statistics import wide_dtype, widest
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import Node, new_node
from pullback.graph.saved_tensor import PackedTensor, SavedList, SavedOutput
from pullback.inspection.nodes import acting_node
from pullback.tensor.tensor import Tensor, new_tensor


def wide_node(node: Node) -> Node | None:
    """A copy of an operation's node in 64 bits; None of nodes that are not an operation's."""
    node = acting_node(node)
    if not node.operation or node.needs_tensors or node.released:
        return None
    wide: Any = new_node(type(node))
    wide.next_edges, wide.sequence_nr, wide.shape = node.next_edges, node.sequence_nr, node.shape
    wide.dtype = None if node.dtype is None else wide_dtype(node.dtype)
    if node.output_metadata is not None:
        wide.output_metadata = tuple(InputMetadata(m.shape, wide_dtype(m.numpy_dtype)) for m in node.output_metadata)
        if node.output_count != type(node).output_count:
            wide.output_count = node.output_count
    if node.broadcast is not None:
        wide.broadcast = tuple(None if given is None else (given[0], wide_dtype(given[1])) for given in node.broadcast)
    for name in (*node.saved_names, *node.fact_names):
        setattr(wide, f"saved_{name}", _wide_value(getattr(node, f"saved_{name}")))
    for name in node.tensor_names:
        version = getattr(node, f"saved_{name}_version", -1)
        setattr(wide, f"saved_{name}_version", min(version, 0))
    made: Node = wide
    return made


def _wide_value(value: Any) -> Any:
    if isinstance(value, Tensor | SavedOutput | PackedTensor):
        return new_tensor(widest(value._array))
    if isinstance(value, SavedList):
        return SavedList([new_tensor(widest(tensor._array)) for tensor in value.values])
    if isinstance(value, ndarray):
        return widest(value)
    if hasattr(value, "itemsize") and hasattr(value, "kind"):  # a dtype that the rule casts to
        return wide_dtype(value)
    return value
