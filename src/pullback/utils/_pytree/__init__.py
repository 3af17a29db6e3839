"""Trees of containers: take nested tuples, lists, dicts and registered classes apart into leaves, and build them again.

Names and structure reprs are those of `torch.utils._pytree`. Anything whose exact type is not registered is a leaf,
None and subclasses of containers included; a namedtuple of any class is a node.
"""

from __future__ import annotations

from pullback.utils._pytree.key_path import GetAttrKey, KeyEntry, KeyPath, MappingKey, SequenceKey, key_get, keystr
from pullback.utils._pytree.nodes import (
    BUILTIN_TYPES,
    SUPPORTED_NODES,
    Context,
    NodeDef,
    PyTree,
    is_namedtuple_instance,
    register_dataclass,
    register_pytree_node,
)
from pullback.utils._pytree.nodes import node_type as _get_node_type
from pullback.utils._pytree.traversal import (
    arg_tree_leaves,
    map_only,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)
from pullback.utils._pytree.traversal import broadcast_to_and_flatten as _broadcast_to_and_flatten
from pullback.utils._pytree.treespec import (
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
    treespec_dict,
    treespec_leaf,
    treespec_tuple,
)

_register_pytree_node = register_pytree_node

__all__ = [
    "BUILTIN_TYPES",
    "SUPPORTED_NODES",
    "Context",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "_broadcast_to_and_flatten",
    "_get_node_type",
    "_register_pytree_node",
    "arg_tree_leaves",
    "is_namedtuple_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_leaf",
    "treespec_pprint",
    "treespec_tuple",
]
