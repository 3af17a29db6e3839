"""What stands between a tensor and its node after something that was not recorded changed the tensor's shape or dtype.

`y.unsqueeze_(0)` under no_grad, or `y.data = other`, leaves y's history as it is, so the gradients of y are no longer like
what the node gave out. What y is used for from then on sends them here; the engine brings them into the former shape and
dtype, or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pullback.graph.edge import Edge, Edges
from pullback.graph.node import Node
from pullback.tensor.tensor import Tensor, _Graph


class FormerShape(Node):
    """Looks like the node it leads to, and hands gradients on to it; `NodeExtra.former_shape` marks it."""

    def __init__(self, edge: Edge) -> None:
        self.inner = edge[0]
        self.sequence_nr = self.inner.sequence_nr
        self.next_edges = (edge,)
        metadata = self.inner.input_metadata(edge[1])
        assert metadata is not None
        self.shape, self.dtype = metadata.shape, metadata.numpy_dtype
        self.require_extra().former_shape = True

    def name(self) -> str:
        return self.inner.name()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return self.inner.next_functions

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (grads[0],)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return (grads[0],)

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        return self.inner._read_saved(public, raw=raw)


@cache
def _class_of(name: str) -> type[FormerShape]:
    return type(name, (FormerShape,), {})


def keep_former_shape(tensor: Tensor) -> None:
    """Note that an unrecorded operation changed shape or dtype of `tensor`, which a recorded one made."""
    info = tensor._extra.view if tensor._extra is not None else None
    edge = tensor._edge if info is None else info.edge
    if edge is None:
        return
    metadata = edge[0].input_metadata(edge[1])
    array = tensor._array
    if metadata is None or (metadata.shape == array.shape and metadata.numpy_dtype == array.dtype):
        return
    node, output_nr = edge[0], edge[1]
    if isinstance(node, FormerShape):
        return
    former: Edge = (_class_of(type(node).__name__)((node, output_nr)), 0)
    if info is None:
        tensor._edge = former
    else:
        info.edge = former


_Graph.keep_former_shape = staticmethod(keep_former_shape)
