"""What nodes read after `x.data = other`.

# Note [Former data]
Most nodes save x itself and read its new data, as in PyTorch. Of some operations PyTorch saves a view: `linear` saves the
transposed weight, which keeps the memory that it had. Here these are fused nodes, which save x itself (Note [Fused nodes]).
So x gets a counter of its own, a `FormerData` around the one that it had, with a fraction that is new with each change of
`data`: what was saved before differs in the fraction alone. Code that finds a version other than the saved one asks
`is_stale`, and a fused node reads `as_saved`. The memory itself is kept by the node that x's gradients go to, so that it is
released with the graph, and only the last one. x without a gradient has no such node: its new data is read.
"""

from __future__ import annotations

import weakref
from typing import Any

from pullback.tensor.tensor import Tensor, _Graph
from pullback.tensor.version_counter import InferenceVersion, VersionCounter
from pullback.typing import Array

_FRACTION = 2.0**-20


class FormerData(VersionCounter):
    """The counter of a tensor that was given other data: counts as before, and tells what was saved before it."""

    __slots__ = ("_counter", "era", "former")

    def __init__(self, counter: VersionCounter, era: int, former: weakref.ref[FormerArray]) -> None:
        self._counter, self.era, self.former = counter, era, former
        self.views, self.lines = counter.views, counter.lines
        self._prune_at = 16

    @property
    def value(self) -> Any:
        return self._counter.value + self.era * _FRACTION

    @value.setter
    def value(self, value: Any) -> None:
        self._counter.value = value - self.era * _FRACTION


class FormerArray:
    """The memory that a tensor had, which can be referred to weakly."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Array) -> None:
        self.array = array


def keep_former_data(tensor: Tensor, array: Array) -> None:
    """Note that `tensor` had this array, as long as a graph may need it. See Note [Former data]."""
    counter = tensor._counter or VersionCounter()
    if isinstance(counter, InferenceVersion):
        return
    era = 1
    if isinstance(counter, FormerData):
        era, counter = counter.era + 1, counter._counter
    info = tensor._extra.view if tensor._extra is not None else None
    edge = tensor._edge if info is None else info.edge
    holder: Any = edge[0] if edge is not None else tensor._accumulator and tensor._accumulator()
    if holder is None:
        tensor._counter = counter if era > 1 else tensor._counter
        return
    former = holder.require_extra().former_data = FormerArray(array)
    before, tensor._counter = tensor._version, FormerData(counter, era, weakref.ref(former))
    if info is not None and int(info.attr_version) == before:
        info.attr_version = tensor._counter.value


def is_stale(value: Any, version: float) -> bool:
    """Whether a saved tensor was modified since; being given other data does not count."""
    counter = value._counter
    return counter is not None and not abs(counter.value - version) < 0.25


def former_array(value: Any, version: float) -> Array | None:
    """The memory that a saved tensor had, if it was given other data since and its former memory is known."""
    counter = value._counter
    if not isinstance(counter, FormerData) or counter.value - version != _FRACTION:
        return None
    former = counter.former()
    return None if former is None else former.array


_Graph.keep_former_data = staticmethod(keep_former_data)
