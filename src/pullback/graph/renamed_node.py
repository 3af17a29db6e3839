"""A node that computes what another one does, under another name: `ViewBackward0_copy`, `TBackward1`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pullback.graph.edge import Edges
from pullback.graph.node import Node
from pullback.graph.shown_results import result_of
from pullback.graph.shown_values import has_row
from pullback.graph.source_lines import source_line_of


class RenamedNode(Node):
    """Stands in the graph in place of `inner`, which it asks for the gradients."""

    def __init__(self, inner: Node, fused: str = "") -> None:
        self.inner = inner
        self.fused = fused
        self.sequence_nr = inner.sequence_nr
        self.source = source_line_of(inner)
        self.next_edges = inner.next_edges
        self.shape, self.dtype = inner.shape, inner.dtype
        self.output_metadata = inner.output_metadata
        self.output_count = inner.output_count
        self.extra = inner.extra
        self.needs_tensors = inner.needs_tensors

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return self.inner.apply(grads, edges, owned)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return self.inner.apply_differentiable(grads, edges)

    def release_saved_tensors(self) -> None:
        self.inner.release_saved_tensors()

    def __dir__(self) -> list[str]:
        return super().__dir__() if self.fused or has_row(self) else self.inner.__dir__()

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        if self.fused:
            return super()._read_saved(public, raw=raw)
        compute = None if raw else result_of(self, public)
        return self.inner._read_saved(public, raw=raw) if compute is None else compute(self)


@cache
def _class_of(name: str) -> type[RenamedNode]:
    return type(name, (RenamedNode,), {"__module__": RenamedNode.__module__})


def renamed(node: Node, name: str, fused: str = "") -> RenamedNode:
    """A node called `name` that does what `node` does; `fused` names its steps (Note [Fused nodes])."""
    return _class_of(name)(node, fused)
