"""Arguments and results as flat lists: nested tuples, lists and dictionaries, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.tensor.return_types import ReturnType

Build = Callable[[list[Any]], Any]


def flatten(value: Any, leaves: list[Any], containers: dict[int, Any] | None = None) -> Any:
    """Append the leaves of `value`; what describes its structure, comparable and hashable.

    `containers` gets the lists and dictionaries, by identity.
    """
    kind = type(value)
    if containers is not None and (kind is list or kind is dict):
        containers[id(value)] = value
    if kind is tuple or kind is list:
        return (kind, *[flatten(part, leaves, containers) for part in value])
    if kind is dict:
        return (dict, tuple(value), *[flatten(part, leaves, containers) for part in value.values()])
    if isinstance(value, tuple) and (isinstance(value, ReturnType) or hasattr(kind, "_fields")):
        return (kind, *[flatten(part, leaves, containers) for part in value])
    leaves.append(value)
    return None


def unflatten(structure: Any, leaves: Any) -> Any:
    """The value that `flatten` took apart; `leaves` is an iterator."""
    if structure is None:
        return next(leaves)
    kind = structure[0]
    if kind is dict:
        return {key: unflatten(part, leaves) for key, part in zip(structure[1], structure[2:], strict=True)}
    parts = [unflatten(part, leaves) for part in structure[1:]]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
