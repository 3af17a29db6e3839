"""Where an array lies in its storage, so that the same part can be found in another copy of the storage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.backend.array_module import data_address, memory_bounds, storage_of
from pullback.typing import Array


class Piece(NamedTuple):
    """A dtype, sizes, strides and an offset over a storage, all counted in bytes."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def is_dense(owner: Any) -> bool:
    """Whether a storage is an array without gaps, so that a copy of it is laid out alike."""
    return isinstance(owner, np.ndarray) and (owner.flags.c_contiguous or owner.flags.f_contiguous)


def piece_of(array: Array) -> Piece:
    """Where an array lies in its storage."""
    offset = 0 if array.size == 0 else data_address(array) - memory_bounds(storage_of(array))[0]
    return Piece(array.dtype, array.shape, array.strides, offset)


def array_at(owner: Array, piece: Piece) -> Array:
    """The part of a storage that `piece` describes.

    >>> rows = np.arange(6.0).reshape(2, 3)
    >>> array_at(rows.copy(), piece_of(rows.T[1:]))
    array([[1., 4.],
           [2., 5.]])
    """
    if piece.shape == owner.shape and piece.dtype == owner.dtype and piece.strides == owner.strides:
        return owner
    if not owner.size:
        return np.ndarray(piece.shape, piece.dtype)
    flat = (owner if owner.flags.c_contiguous else owner.T).reshape(-1).view(np.uint8)
    return np.ndarray(piece.shape, piece.dtype, flat, piece.offset, piece.strides)


def copy_storage(owner: Array) -> Array:
    """A copy of a whole storage in the same memory order."""
    return owner.copy(order="K")


def write_storage(owner: Array, file: Any) -> None:
    """Write the bytes of a storage to an open file."""
    file.write(memoryview((owner if owner.flags.c_contiguous else owner.T).reshape(-1).view(np.uint8)))


def read_storage(file: Any, like: Piece) -> Array:
    """A storage again from an open file; `like` is its own piece."""
    flat = np.fromfile(file, np.uint8).view(like.dtype)
    by_rows = np.ndarray(like.shape, like.dtype).strides == like.strides
    return flat.reshape(like.shape, order="C" if by_rows else "F")
