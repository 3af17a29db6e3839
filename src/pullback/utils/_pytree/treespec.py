"""TreeSpec: the structure of a tree without its leaves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, cast

from pullback.utils._pytree.nodes import DICT_TYPES, SUPPORTED_NODES, Context, PyTree, node_type

__all__ = ["LeafSpec", "PyTreeSpec", "TreeSpec", "treespec_dict", "treespec_leaf", "treespec_tuple"]


class TreeSpec:
    """The structure of a tree: a node's type, its context (the keys of a dict, say) and its children's structures."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        is_leaf = type is None
        self.num_leaves: int = 1 if is_leaf else sum(child.num_leaves for child in self._children)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self._children)

    @property
    def context(self) -> Context:
        """What `flatten_fn` gave beside the children."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether this is the structure of a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """Return the structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Build the tree with these leaves."""
        leaves = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Take `tree` apart as far as this structure reaches: what sits at its leaves may be trees themselves."""
        subtrees: list[PyTree] = []
        self._collect(tree, subtrees)
        return subtrees

    def _collect(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        if self.type is None:
            subtrees.append(tree)
            return
        for spec, child in zip(self._children, self.match_children(tree), strict=True):
            spec._collect(child, subtrees)

    def match_children(self, tree: PyTree) -> list[PyTree]:
        """Return the children of `tree` in the order of this structure's, or raise if its root is another node."""
        actual_type = node_type(tree)
        both_dicts = self.type in DICT_TYPES and actual_type in DICT_TYPES
        if actual_type != self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {actual_type!r}.")
        children, context = SUPPORTED_NODES[actual_type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both_dicts:
            return [tree[key] for key in self._checked_keys(tree)]
        if self.type is not deque and context != self._context:
            raise ValueError(f"Node context mismatch for node type {self.type!r}: {self._context!r} != {context!r}.")
        return children

    def _checked_keys(self, tree: Mapping[Any, Any]) -> list[Any]:
        keys = cast("list[Any]", self._context[1] if self.type is defaultdict else self._context)
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            parts = [f"{word} key(s): {found}" for word, found in (("missing", missing), ("extra", extra)) if found]
            raise ValueError(f"Node keys mismatch; {'; '.join(parts)}.")
        return keys

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return bool(self.type == other.type and self._context == other._context and self._children == other._children)

    def __hash__(self) -> int:
        return hash((self.type, _freeze(self._context), tuple(self._children)))

    def __repr__(self) -> str:
        return self._describe(0)

    def _describe(self, indent: int) -> str:
        if self.type is None:
            return "*"
        children = [child._describe(indent + 2) for child in self._children]
        separator = ",\n" + " " * (indent + 2)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{separator.join(children)}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __reduce__(self) -> Any:
        return LeafSpec, ()


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def _freeze(value: Any) -> Hashable:
    """Return something hashable that is equal for equal contexts."""
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(member) for member in value)
    try:
        hash(value)
    except TypeError:
        return type(value).__qualname__
    return cast(Hashable, value)


def treespec_leaf() -> LeafSpec:
    """Return the structure of a single leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple of these structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """Return the structure of a dict of these structures."""
    members: dict[Any, TreeSpec] = dict(mapping, **kwargs)
    return TreeSpec(dict, list(members), list(members.values()))
