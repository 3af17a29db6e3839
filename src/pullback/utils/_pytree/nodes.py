"""The registry of node types: how a container is taken apart into children, and built from them again."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from pullback.tensor.return_types import RETURN_TYPES
from pullback.tensor.size import Size
from pullback.utils._pytree.key_path import GetAttrKey, KeyEntry, MappingKey, SequenceKey

__all__ = [
    "BUILTIN_TYPES",
    "SUPPORTED_NODES",
    "Context",
    "NodeDef",
    "PyTree",
    "is_namedtuple_instance",
    "register_dataclass",
    "register_pytree_node",
]

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFunc: TypeAlias = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]]


class NodeDef(NamedTuple):
    """How one type of container is taken apart and built again."""

    type: Any
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: FlattenWithKeysFunc | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}

DICT_TYPES = (dict, OrderedDict, defaultdict)


def register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """Make instances of exactly `cls` nodes: `flatten_fn` gives (children, context), `unflatten_fn` takes them.

    The arguments about serialisation are accepted; structures are not serialised here.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a dataclass nodes whose children are the fields, or those named."""
    if field_names is None:
        dropped = set(drop_field_names or ())
        field_names = [field.name for field in dataclasses.fields(cls) if field.init and field.name not in dropped]
    names = field_names

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        return [getattr(obj, name) for name in names], [names, []]

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        return [(GetAttrKey(name), getattr(obj, name)) for name in names], [names, []]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)


def _register_sequence(
    cls: Any, build: Callable[[Iterable[Any], Context], Any], context_of: Callable[[Any], Any]
) -> None:
    register_pytree_node(
        cls,
        lambda node: (list(node), context_of(node)),
        build,
        flatten_with_keys_fn=lambda node: (
            [(SequenceKey(position), child) for position, child in enumerate(node)],
            context_of(node),
        ),
    )


def _builder_of(cls: Callable[[Iterable[Any]], Any]) -> Callable[[Iterable[Any], Context], Any]:
    return lambda values, context: cls(values)


def _register_mapping(
    cls: Any, build: Callable[[Iterable[Any], Context], Any], context_of: Callable[[Any], Any]
) -> None:
    register_pytree_node(
        cls,
        lambda node: (list(node.values()), context_of(node)),
        build,
        flatten_with_keys_fn=lambda node: (
            [(MappingKey(key), child) for key, child in node.items()],
            context_of(node),
        ),
    )


_register_sequence(tuple, lambda values, context: tuple(values), lambda node: None)
_register_sequence(list, lambda values, context: list(values), lambda node: None)
_register_sequence(deque, lambda values, maxlen: deque(values, maxlen=maxlen), lambda node: node.maxlen)
_register_mapping(dict, lambda values, keys: dict(zip(keys, values, strict=True)), list)
_register_mapping(OrderedDict, lambda values, keys: OrderedDict(zip(keys, values, strict=True)), list)
_register_mapping(
    defaultdict,
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    lambda node: [node.default_factory, list(node)],
)
register_pytree_node(
    namedtuple,
    lambda node: (list(node), type(node)),
    lambda values, cls: cls(*values),
    flatten_with_keys_fn=lambda node: (
        [(GetAttrKey(name), child) for name, child in zip(node._fields, node, strict=True)],
        type(node),
    ),
)

BUILTIN_TYPES: frozenset[Any] = frozenset(SUPPORTED_NODES)

_register_sequence(Size, lambda values, context: tuple(values), lambda node: None)
for _return_type in RETURN_TYPES.values():
    _register_sequence(_return_type, _builder_of(_return_type), lambda node: None)


def is_namedtuple_instance(obj: object) -> bool:
    """Whether `obj` is an instance of a class that `collections.namedtuple` or `typing.NamedTuple` made."""
    return isinstance(obj, tuple) and hasattr(type(obj), "_fields") and hasattr(type(obj), "_make")


def node_type(tree: PyTree) -> Any:
    """Return the type under which `tree` would be registered."""
    cls = type(tree)
    if cls not in SUPPORTED_NODES and is_namedtuple_instance(tree):
        return namedtuple
    return cls
