"""Arguments and results as flat lists: tuples, lists, dictionaries and dataclasses, taken apart and put together again.

# Note [Objects as containers]
An instance of a dataclass is taken apart where it holds tensors and numbers, nested in what else is taken apart here: then
it is another object in each call, as the outputs of models are. It is put together without its class's `__init__`. One that
holds anything else, a model or an optimizer, is an object like others, with what it can reach.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.tensor.return_types import ReturnType
from pullback.tensor.tensor import Tensor, TensorBase

Build = Callable[[list[Any]], Any]


def flatten(value: Any, leaves: list[Any], containers: dict[int, Any] | None = None) -> Any:
    """Append the leaves of `value`; what describes its structure, comparable and hashable.

    `containers` gets what can be changed of them, by identity.
    """
    kind = type(value)
    if kind is Tensor or kind is int or kind is float:  # most leaves
        leaves.append(value)
        return None
    if containers is not None and (kind is list or kind is dict or kind is OrderedDict):
        containers[id(value)] = value
    if kind is tuple or kind is list:
        return (kind, *[flatten(part, leaves, containers) for part in value])
    if kind is dict or kind is OrderedDict:
        return (kind, tuple(value), *[flatten(part, leaves, containers) for part in value.values()])
    if isinstance(value, tuple) and (isinstance(value, ReturnType) or hasattr(kind, "_fields")):
        return (kind, *[flatten(part, leaves, containers) for part in value])
    if hasattr(kind, "__dataclass_fields__") and is_data(value):
        if containers is not None:
            containers[id(value)] = value
        attributes = vars(value)
        return (kind, tuple(attributes), *[flatten(part, leaves, containers) for part in attributes.values()])
    leaves.append(value)
    return None


_MOST_NESTED = 8
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def is_data(value: Any) -> bool:
    """Whether an object is a dataclass's that holds tensors, and plain data. See Note [Objects as containers]."""
    kinds: set[type] = set()
    return _collect_kinds(value, kinds, _MOST_NESTED) and any(issubclass(kind, TensorBase) for kind in kinds)


def _collect_kinds(value: Any, kinds: set[type], depth: int) -> bool:
    """Collect the types of leaves; False where there is something that is not data, or data nested deeply."""
    kind = type(value)
    if isinstance(value, (TensorBase, *_PLAIN)):
        kinds.add(kind)
        return True
    if not depth:
        return False
    if isinstance(value, (tuple, list)) and (kind is tuple or kind is list or hasattr(kind, "_fields")):
        return all(_collect_kinds(part, kinds, depth - 1) for part in value)
    if kind is dict or kind is OrderedDict:
        return all(_collect_kinds(part, kinds, depth - 1) for part in value.values())
    if isinstance(value, type) or not hasattr(kind, "__dataclass_fields__"):
        return False
    attributes = getattr(value, "__dict__", None)
    if attributes is None or not all("__dataclass_fields__" in vars(base) for base in kind.__mro__[:-1]):
        return False
    return all(_collect_kinds(part, kinds, depth - 1) for part in attributes.values())


def unflatten(structure: Any, leaves: Any) -> Any:
    """The value that `flatten` took apart; `leaves` is an iterator."""
    if structure is None:
        return next(leaves)
    kind = structure[0]
    if kind is dict or kind is OrderedDict or hasattr(kind, "__dataclass_fields__"):
        made = {key: unflatten(part, leaves) for key, part in zip(structure[1], structure[2:], strict=True)}
        if kind is dict:
            return made
        if kind is OrderedDict:
            return OrderedDict(made)
        new = object.__new__(kind)
        vars(new).update(made)
        return new
    parts = [unflatten(part, leaves) for part in structure[1:]]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def with_leaves(value: Any, leaves: Any) -> Any:
    """`value` with other leaves; lists and their like that keep theirs are the same objects as before."""
    former: list[Any] = []
    structure = flatten(value, former)
    if structure is None:
        return next(leaves)
    now = [next(leaves) for _ in former]
    if all(one is other for one, other in zip(former, now, strict=True)):
        return value
    kind, rest = type(value), iter(now)
    if kind is dict:
        return {key: with_leaves(part, rest) for key, part in value.items()}
    if kind is tuple or kind is list:
        return kind([with_leaves(part, rest) for part in value])
    return unflatten(structure, rest)
