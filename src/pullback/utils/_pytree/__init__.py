"""Trees of containers: take nested tuples, lists, dicts and registered classes apart into leaves, and build them again.

Names and structure reprs are those of `torch.utils._pytree`. Anything whose exact type is not registered is a leaf,
None and subclasses of containers included; a namedtuple of any class is a node.
"""

from __future__ import annotations

from pullback.utils._pytree import key_path, nodes, traversal, treespec
from pullback.utils._pytree.key_path import *
from pullback.utils._pytree.nodes import *
from pullback.utils._pytree.nodes import node_type as _get_node_type
from pullback.utils._pytree.traversal import *
from pullback.utils._pytree.traversal import broadcast_to_and_flatten as _broadcast_to_and_flatten
from pullback.utils._pytree.treespec import *

_register_pytree_node = nodes.register_pytree_node

__all__ = ["_broadcast_to_and_flatten", "_get_node_type", "_register_pytree_node"]
__all__ += key_path.__all__
__all__ += nodes.__all__
__all__ += traversal.__all__
__all__ += treespec.__all__
