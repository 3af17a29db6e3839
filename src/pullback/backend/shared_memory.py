"""Memory that several processes share: anonymous files, mapped by each process that has a descriptor of one.

# Note [Shared memory]
A shared storage is a mapping of a file that has no name. It goes to another process as a descriptor, which the kernel
counts: the memory is freed when the last process has unmapped it, however it ends, and nothing is left to clean up. A
process maps a file once, however many tensors in it arrive.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np

from pullback.backend.array_module import data_address, memory_bounds
from pullback.native.locks import process_lock
from pullback.typing import Array


class SharedMapping(mmap.mmap):
    """A file without a name, mapped into this process, with a descriptor that can be sent to others."""

    descriptor: int

    def __del__(self) -> None:
        if hasattr(self, "descriptor") and os is not None:
            os.close(self.descriptor)


_mappings: weakref.WeakValueDictionary[tuple[int, int], SharedMapping] = weakref.WeakValueDictionary()
_lock = process_lock()


def can_share() -> bool:
    """Whether this platform has what Note [Shared memory] needs."""
    return os.name == "posix"


def allocate_shared(size: int) -> Array:
    """A storage of `size` bytes in new shared memory."""
    descriptor = _nameless_file()
    os.ftruncate(descriptor, max(size, 1))
    return storage_at(descriptor, size)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pullback")
    with tempfile.TemporaryFile() as file:  # on platforms without: a file that has lost its name
        return os.dup(file.fileno())


def storage_at(descriptor: int, size: int) -> Array:
    """The storage behind a descriptor, which belongs to it from now on."""
    status = os.fstat(descriptor)
    key = (status.st_dev, status.st_ino)
    with _lock:
        mapping = _mappings.get(key)
        if mapping is None:
            mapping = SharedMapping(descriptor, max(size, 1))
            mapping.descriptor = descriptor
            _mappings[key] = mapping
        else:
            os.close(descriptor)
    return np.frombuffer(mapping, np.uint8, size)


def mapping_of(array: Array) -> SharedMapping | None:
    """The mapping that `array` lies in; None for memory of this process alone."""
    candidate: Any = array
    while candidate is not None:
        if isinstance(candidate, SharedMapping):
            return candidate
        candidate = candidate.obj if isinstance(candidate, memoryview) else getattr(candidate, "base", None)
    return None


def shared_copy(owner: Array) -> Array:
    """A copy of a whole storage in shared memory, as bytes."""
    storage = allocate_shared(owner.nbytes)
    storage[...] = bytes_of(owner)
    return storage


def bytes_of(owner: Array) -> Array:
    """The bytes of an array that fills its memory, in the order of the memory."""
    flat = owner.reshape(-1) if owner.flags.c_contiguous else owner.T.reshape(-1)
    return flat.view(np.uint8)


def moved(array: Array, owner: Array, storage: Array) -> Array:
    """What `array` is in the memory of `owner`, in a copy of that memory."""
    offset = data_address(array) - memory_bounds(owner)[0] if array.size else 0
    return np.ndarray(array.shape, array.dtype, storage, offset, array.strides)
