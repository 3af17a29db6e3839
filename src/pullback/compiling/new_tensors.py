"""NewTensors: which tensors were made since a recording began."""

from __future__ import annotations

import gc
from typing import Any

from pullback.backend.array_module import is_array
from pullback.backend.traced_array import is_traced, plain
from pullback.compiling.memory import storage_key
from pullback.graph.living_objects import living
from pullback.graph.saved_tensor import SavedOutput
from pullback.tensor.tensor import TensorBase


class NewTensors:
    """Tells tensors, and what nodes saved of them, that are made from now on from those that there are.

    Python's collector keeps new objects apart until it collects, which it does not while something is recorded: so they are
    found without going through all others, of which there may be a million.
    """

    def __init__(self) -> None:
        self._before = gc.get_objects(generation=0)
        self._collections = _count_collections()

    def all(self) -> list[Any]:
        """The new ones; all that there are, if the function called the collector itself."""
        if _count_collections() != self._collections:
            return _tensors(gc.get_objects())
        before = set(map(id, self._before))
        return [tensor for tensor in _tensors(gc.get_objects(generation=0)) if id(tensor) not in before]

    def release_traced(self) -> None:
        """Give those that are still there plain arrays. Let go what was recorded before: there is less to search then."""
        for tensor in self.all():
            if is_traced(tensor._array):
                tensor._array = plain(tensor._array)

    def storage_of_others(self) -> set[int]:
        """The memory of the others."""
        is_told = _count_collections() == self._collections
        new = set(map(id, self.all())) if is_told else set()
        return {_storage(tensor) for tensor in _tensors(gc.get_objects()) if id(tensor) not in new}


def _count_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _tensors(objects: list[Any]) -> list[Any]:
    """The tensors among objects, and what nodes saved of them."""
    found = living(TensorBase, SavedOutput, among=objects)
    return [value for value in found if not _is_sparse(value) and getattr(value, "_array", None) is not None]


def _is_sparse(value: Any) -> bool:
    """Whether asking for the array would make one."""
    return bool(getattr(value, "is_sparse", False))


def _storage(tensor: Any) -> Any:
    array = plain(tensor._array)
    return storage_key(array) if is_array(array) else None
