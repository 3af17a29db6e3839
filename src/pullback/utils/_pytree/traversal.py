"""The functions on trees: flatten, build, map, test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any, TypeAlias

from pullback.utils._pytree.key_path import KeyEntry, KeyPath
from pullback.utils._pytree.nodes import SUPPORTED_NODES, PyTree, node_type
from pullback.utils._pytree.treespec import TreeSpec, treespec_leaf

__all__ = [
    "arg_tree_leaves",
    "map_only",
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
    "treespec_pprint",
]

IsLeaf: TypeAlias = Callable[[PyTree], bool] | None
Types: TypeAlias = type | tuple[type, ...] | UnionType
TypesOrPredicate: TypeAlias = Types | Callable[[Any], bool]


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `tree` is a leaf: of a type that is not registered, or one that `is_leaf` says is.

    >>> tree_is_leaf(None), tree_is_leaf([])
    (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree in order, and its structure.

    >>> leaves, spec = tree_flatten({"b": 1, "a": (2, 3)})
    >>> leaves, tree_unflatten([10, 20, 30], spec)
    ([1, 2, 3], {'b': 10, 'a': (20, 30)})
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return treespec_leaf()
    kind = node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Build the tree of a structure from its leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}. "
            "The leaves come first: tree_unflatten(leaves, treespec)."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterate over the leaves of a tree."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree in order."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments in order."""
    return tree_leaves((args, kwargs))


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to every leaf, and to what sits at the same place in the further trees; keep the structure.

    >>> tree_map(lambda x, y: x + y, (1, [2]), (10, [20]))
    (11, [22])
    """
    if not rests and tree_is_leaf(tree, is_leaf):
        return func(tree)
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to every leaf for its effect, and return the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def map_only(type_or_types_or_pred: TypesOrPredicate, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator after which a function leaves all but the chosen values alone."""
    chosen = _predicate(type_or_types_or_pred)

    def wrap(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if chosen(leaf) else leaf

    return wrap


def _predicate(chosen: TypesOrPredicate) -> Callable[[Any], bool]:
    if isinstance(chosen, (type, tuple, UnionType)):
        types = chosen
        return lambda leaf: isinstance(leaf, types)
    if callable(chosen):
        return chosen
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(
    type_or_types_or_pred: TypesOrPredicate, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply a function to the leaves of the given types, or those a predicate chooses; keep the others.

    >>> tree_map_only(int, lambda x: x * 10, (1, "a"))
    (10, 'a')
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: TypesOrPredicate, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply a function to the chosen leaves for its effect, and return the tree."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for every leaf."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for some leaf."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf))


def tree_all_only(type_or_types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for every leaf of the given types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for some leaf of the given types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Return a leaf of `tree` for each leaf of `treespec`, repeating one that stands where the structure goes on.

    None if the structures do not agree, as in `in_dims=(0, None)` for three arguments.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    try:
        children = treespec.match_children(tree)
    except ValueError:
        return None
    leaves: list[Any] = []
    for child, spec in zip(children, treespec.children(), strict=True):
        flat = broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        leaves.extend(flat)
    return leaves


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves of a tree, each with its path, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, each with its path."""
    return list(_walk_with_path((), tree, is_leaf))


def _walk_with_path(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    for key, child in _children_with_keys(tree):
        yield from _walk_with_path((*path, key), child, is_leaf)


def _children_with_keys(tree: PyTree) -> list[tuple[KeyEntry, Any]]:
    node = SUPPORTED_NODES[node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    return node.flatten_with_keys_fn(tree)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to the path and the value of every leaf; otherwise as `tree_map`."""
    paths_and_leaves, spec = tree_flatten_with_path(tree, is_leaf)
    paths = [path for path, _ in paths_and_leaves]
    columns = [[leaf for _, leaf in paths_and_leaves], *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(paths, *columns, strict=True)])


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """Show a structure as a tree with asterisks for leaves.

    >>> treespec_pprint(tree_structure({"a": (1, 2)}))
    "{'a': (*, *)}"
    """
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))
