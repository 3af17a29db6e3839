"""How large programs said that storages are.

# Note [Storages of another size]
`tensor.untyped_storage().resize_(0)` is how sharding libraries free a parameter's memory until they need it again, while
tensors go on to lie in it. An array cannot lose its memory while others are views of it: a storage made smaller only
states another size, and has its old contents when it is as large as before. One made larger than its memory gets new
memory, to which the tensor, its base and its views move; a tensor that shares memory in another way (`detach()`) stays.
"""

from __future__ import annotations

import weakref

from pullback.typing import Array

_sizes: dict[int, tuple[weakref.ref[Array], int]] = {}
"""By the identity of the array that owns the memory: arrays are not keys."""


def has_stated_sizes() -> bool:
    """Whether any storage has another size than its memory."""
    return bool(_sizes)


def stated_size(owner: Array, actual: int) -> int:
    """How many bytes the storage has: those of its memory unless fewer were stated."""
    entry = _sizes.get(id(owner))
    return actual if entry is None else entry[1]


def state_size(owner: Array, size: int) -> None:
    """Say that the storage has so many bytes from now on."""
    key = id(owner)
    _sizes.pop(key, None)
    if size != owner.nbytes:
        _sizes[key] = (weakref.ref(owner, lambda _: _sizes.pop(key, None)), size)
