"""In which order the elements of an operation's input lay, as far as its node can tell later."""

from __future__ import annotations

from typing import Any

from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.node import Node
from pullback.tensor.tensor import Tensor

_TRANSPOSITIONS = ("TBackward0", "PermuteBackward0", "TransposeBackward0")
"""What a matrix was transposed by: `t()`, `T` and `mT`."""


def is_column_major(node: Node, name: str, place: int) -> bool:
    """Whether a matrix that a node had as input was in column-major order.

    If it was not saved, its own history may tell: a leaf has a layout, and a transposed matrix the opposite one.
    """
    saved = None if node.released else node.unpack(name) if name in node.tensor_names else None
    if isinstance(saved, Tensor):
        return _has_columns(saved, flipped=False)
    edge, flipped = node.next_edges[place], False
    while edge is not None and edge[0].name() in _TRANSPOSITIONS:
        edge, flipped = edge[0].next_edges[0], not flipped
    if edge is None:
        return False
    if isinstance(edge[0], AccumulateGrad):
        return _has_columns(edge[0].variable, flipped=flipped)
    return flipped


def _has_columns(matrix: Any, *, flipped: bool) -> bool:
    order = -1 if flipped else 1
    return matrix.ndim == 2 and tuple(matrix.stride())[::order] == (1, matrix.shape[::order][0])
