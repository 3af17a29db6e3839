"""Paths from the root of a tree to a leaf: positions, keys and attribute names, one step each."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, TypeAlias

__all__ = ["GetAttrKey", "KeyEntry", "KeyPath", "MappingKey", "SequenceKey", "key_get", "keystr"]


class KeyEntry(Protocol):
    """One step of a path from the root of a tree to a leaf."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """Take this step from `parent`."""
        ...


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A step by position."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Take this step from `sequence`."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A step by key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Take this step from `mapping`."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A step by attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Take this step from `obj`."""
        return getattr(obj, self.name)


KeyPath: TypeAlias = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """Show a path as Python would write it after the name of the tree.

    >>> keystr((MappingKey("layers"), SequenceKey(0), GetAttrKey("weight")))
    "['layers'][0].weight"
    """
    return "".join(str(step) for step in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Follow a path from `obj`."""
    for step in kp:
        obj = step.get(obj)
    return obj
