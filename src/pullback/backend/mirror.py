"""Mirror: memory that shows other memory conjugated or negated, for views that PyTorch turns lazily.

# Note [Lazy conjugation]
`z.conj()` must share its memory with `z`, yet whatever reads a tensor's array expects plain values there. So the array of
a conjugated (or negated) view lies in a mirror: a block laid out as the storage behind it, filled when the view is made.
Every write to a tensor is counted by `bump_version`, which calls `after_write` while mirrors exist: what was written to a
mirror goes to the memory behind it, and from there to the other mirrors. Reading a tensor costs nothing more than it
would without mirrors; only writes by others than tensors (to an array that shares the memory) are not seen.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from pullback.backend.array_module import data_address, may_share_memory, memory_bounds, storage_of
from pullback.native.locks import process_lock
from pullback.typing import Array


class Mirror:
    """A block of memory beside a storage, and the array in it that shows `source` turned. See Note [Lazy conjugation]."""

    __slots__ = ("__weakref__", "_block", "_memory", "conj", "neg", "shown", "source")

    def __init__(self, source: Array, memory: Array, *, conj: bool, neg: bool) -> None:
        self.source = source
        self.conj = conj
        self.neg = neg
        self._memory = memory
        self.shown: Array
        if source.flags.c_contiguous and source.nbytes == memory.size:
            self.shown = np.asarray(self.turn(source))
            self._block = self.shown.reshape(-1).view(np.uint8)
        else:
            self._block = np.empty(memory.size, np.uint8)
            offset = data_address(source) - data_address(memory) if source.size else 0
            self.shown = np.ndarray(source.shape, source.dtype, self._block, offset, source.strides)
            self.refresh()

    def turn(self, array: Array) -> Array:
        """What the mirror shows of `array`; turning twice gives the first values."""
        if self.conj:
            array = np.conjugate(array)
        return np.negative(array) if self.neg else array

    def refresh(self) -> None:
        """Show the memory behind as it is now."""
        self.shown[...] = self.turn(self.source)

    def holds(self, array: Array) -> bool:
        """Whether `array` lies in this mirror."""
        if not array.size:
            return True
        start = data_address(array) - data_address(self._block)
        return 0 <= start < self._block.size

    def behind(self, array: Array) -> Array:
        """The memory that `array`, which lies in this mirror, shows."""
        offset = data_address(array) - data_address(self._block) if array.size else 0
        return np.ndarray(array.shape, array.dtype, self._memory, offset, array.strides)

    def cover(self, array: Array) -> None:
        """Show the elements of `array`, which lies in this mirror, though they may not be among those of `shown`."""
        array[...] = self.turn(self.behind(array))


mirrors: dict[int, tuple[weakref.ref[Mirror], ...]] = {}
"""The living mirrors, by the owner of the memory that they show."""

_lock = process_lock(threading.RLock)


def mirror_of(source: Array, *, conj: bool, neg: bool) -> Mirror | None:
    """A mirror of `source`; None where its memory is not one plain block."""
    if not isinstance(source, np.ndarray):
        return None
    owner = source if source.base is None else storage_of(source)
    in_memory = owner.transpose(sorted(range(owner.ndim), key=lambda dim: -owner.strides[dim]))
    if not in_memory.flags.c_contiguous or not _lies_in(source, owner):
        return None
    flat = in_memory.reshape(-1)
    mirror = Mirror(source, flat.view(np.uint8), conj=conj, neg=neg)
    key = _key(owner)
    reference = weakref.ref(mirror, lambda dead: _forget(key, dead))
    with _lock:
        mirrors[key] = (*mirrors.get(key, ()), reference)
    return mirror


def living_mirrors() -> set[weakref.ref[Mirror]]:
    """The mirrors that there are now."""
    with _lock:
        return {reference for references in mirrors.values() for reference in references}


def is_mirrored(array: Any) -> bool:
    """Whether a mirror shows memory that `array` lies in."""
    return bool(mirrors) and isinstance(array, np.ndarray) and _key(storage_of(array)) in mirrors


def after_write(array: Array, mirror: Mirror | None) -> None:
    """Bring memory and mirrors together after a write to `array`, which lies in `mirror` if that is given."""
    written = array
    if mirror is not None:
        if not mirror.holds(array):
            return
        written = mirror.behind(array)
        written[...] = mirror.turn(array)
    for reference in mirrors.get(_key(storage_of(written)), ()):
        other = reference()
        if other is not None and other is not mirror and may_share_memory(other.source, written):
            other.refresh()


def _lies_in(array: Array, owner: Array) -> bool:
    if array is owner or not array.size:
        return True
    low, high = memory_bounds(array)
    first, last = memory_bounds(owner)
    return first <= low and high <= last


def _key(owner: Array) -> int:
    """One number for all arrays of a storage; memory that no array owns has one for all of it."""
    return id(owner) if owner.flags.owndata else 0


def _forget(key: int, dead: Any) -> None:
    with _lock:
        left = tuple([reference for reference in mirrors.get(key, ()) if reference is not dead])
        if left:
            mirrors[key] = left
        else:
            mirrors.pop(key, None)
