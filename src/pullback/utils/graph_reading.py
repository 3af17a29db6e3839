"""Reads nodes for pictures: what each was computed from, what a person calls it, how its leaves are named.

A fused node (Note [Fused nodes]) is read as the layer that it is; it is not taken apart for a picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pullback.graph.fused_node import edges_of

__all__ = ["Params", "inputs_of", "label_of", "layer_of", "names_of"]

Params: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]] | Any | None
"""What names leaves: a module, a mapping or pairs."""

LAYERS = {
    "linear_node": "Linear", "matmul_node": "Matmul", "outer_node": "Outer", "lstm_node": "LSTM", "gru_node": "GRU",
    "rnn_node": "RNN",
}  # fmt: skip


def inputs_of(node: Any) -> list[Any]:
    """The nodes that a node sends gradients to."""
    if not getattr(node, "fused", ""):
        return [following for following, _ in node.next_functions if following is not None]
    return [edge[0] for edge in edges_of(node) if edge is not None]


def layer_of(node: Any) -> str:
    """The name of the layer that a fused node is, "" for other nodes."""
    return LAYERS.get(getattr(node, "fused", ""), "")


def label_of(node: Any) -> str:
    """What a person calls the operation: `Linear`, `Relu`, the name of a custom Function's class.

    >>> import pullback
    >>> label_of(pullback.ones(1, requires_grad=True).exp().grad_fn)
    'Exp'
    """
    name: str = node.name().rpartition("::")[2]
    return layer_of(node) or name.rpartition("Backward")[0] or name


def names_of(params: Params) -> dict[int, str]:
    """Names by the identity of tensors."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        pairs = params.named_parameters()
    else:
        pairs = params.items() if isinstance(params, Mapping) else params
    return {id(tensor): name for name, tensor in pairs}
