"""An edge of the graph: the node that a gradient flows to, and which of the node's inputs it is.

# Note [Edges]
An edge is a plain `(node, input_nr)` tuple: it is made for every recorded tensor, and a tuple costs a fifth of a named
one. A missing edge (the input needs no gradient) is None. `next_functions` shows it as `(None, 0)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pullback.graph.node import Node

Edge: TypeAlias = "tuple[Node, int]"
Edges: TypeAlias = "tuple[Edge | None, ...]"
"""The edges of a node, one per input of the operation."""
