"""Puts Python's own numbers where a recorded call left some that are followed: in attributes, containers, globals."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable
from typing import Any

from pullback.backend.traced_array import ReadNumber
from pullback.compiling.numbers import TracedInt, TracedNumber, plain_number
from pullback.compiling.surroundings import Place, is_users
from pullback.tensor.size import Size
from pullback.tensor.tensor import TensorBase

_FOLLOWED = (ReadNumber, TracedInt, TracedNumber)


def without_followed(value: Any) -> Any:
    """A value with Python's own numbers: one that is followed, or sizes."""
    kind = type(value)
    if kind is Size:
        return tuple.__new__(Size, [plain_number(size) for size in value])
    return float.__float__(value) if kind is ReadNumber else plain_number(value)


def release_followed(places: Iterable[Place], values: Iterable[Any]) -> None:
    """Replace followed numbers in what stands in places now and did not before, and in values."""
    places = list(places)
    known = {id(place.holder) for place in places} | {id(value) for place in places for value in place.values}
    release = _Release(known)
    for place in places:
        if not place.is_as_it_was():
            release.inside(place.holder)
    for value in values:
        release.of(value)


class _Release:
    """Goes through new objects once. `known` are objects that were there: what changed in them is a place of its own."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self._seen: list[Any] = []

    def of(self, value: Any) -> Any:
        """What to put in the place of a value; what it holds is replaced inside of it."""
        kind = type(value)
        if kind in _FOLLOWED or kind is Size:
            return without_followed(value)
        if isinstance(value, tuple) and kind.__module__ != "pullback":
            parts = [self.of(part) for part in value]
            if all(map(_is, parts, value)):
                return value
            return tuple(parts) if kind is tuple else kind(*parts) if hasattr(kind, "_fields") else value
        if id(value) not in self._known:
            self.inside(value)
        return value

    def inside(self, holder: Any) -> None:
        """Replace followed numbers that an object holds."""
        self._known.add(id(holder))
        self._seen.append(holder)  # its identity is not used again meanwhile
        if isinstance(holder, dict):
            self._inside_dict(holder)
        elif isinstance(holder, (list, deque)):
            for place, value in enumerate(holder):
                new = self.of(value)
                if new is not value:
                    holder[place] = new
        elif isinstance(holder, set):
            for value in [value for value in holder if type(value) in _FOLLOWED]:
                holder.remove(value)
                holder.add(self.of(value))
        elif isinstance(holder, types.CellType):
            holder.cell_contents = self.of(holder.cell_contents)
        elif isinstance(holder, TensorBase) or is_users(type(holder)):
            if isinstance(attributes := getattr(holder, "__dict__", None), dict):
                self._inside_dict(attributes)
            for cls in type(holder).__mro__ if is_users(type(holder)) else ():
                for slot in cls.__dict__.get("__slots__", ()):
                    value = getattr(holder, slot, None)
                    if (new := self.of(value)) is not value:
                        setattr(holder, slot, new)

    def _inside_dict(self, holder: dict[Any, Any]) -> None:
        for key, value in list(holder.items()):
            new = self.of(value)
            if type(key) in _FOLLOWED:
                del holder[key]
                holder[self.of(key)] = new
            elif new is not value:
                holder[key] = new


def _is(one: Any, other: Any) -> bool:
    return one is other
