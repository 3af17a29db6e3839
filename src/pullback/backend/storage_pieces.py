"""Where an array lies in its storage, so that the same part can be found in another copy of the storage.

A storage is the array that owns the memory: one of NumPy's, or one of the library of another device.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.backend.array_module import data_address, memory_bounds, storage_of
from pullback.backend.device_array import DeviceArray
from pullback.typing import Array


class Piece(NamedTuple):
    """A dtype, sizes, strides and an offset over a storage, all counted in bytes."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def memory_of(array: Any) -> Any:
    """The storage of an array: the same object for all of its views."""
    return array.library.owner(array.raw) if isinstance(array, DeviceArray) else storage_of(array)


def is_dense(owner: Any) -> bool:
    """Whether a storage is an array without gaps, so that a copy of it is laid out alike."""
    return getattr(owner, "flags", None) is not None and bool(_by_rows(owner).flags.c_contiguous)


def _by_rows(owner: Any) -> Any:
    """A storage seen with its dimensions in the order in which they lie in memory; a result keeps that of its operands."""
    return owner if owner.flags.c_contiguous else owner.transpose(_order(owner.strides))


def _order(strides: tuple[int, ...]) -> list[int]:
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def piece_of(array: Any) -> Piece:
    """Where an array lies in its storage."""
    if isinstance(array, DeviceArray):
        library = array.library
        offset = library.address(array.raw) - library.bounds(library.owner(array.raw))[0] if array.size else 0
    else:
        offset = 0 if array.size == 0 else data_address(array) - memory_bounds(storage_of(array))[0]
    return Piece(array.dtype, array.shape, array.strides, offset)


def array_at(owner: Any, piece: Piece, kind: Any = np.ndarray) -> Any:
    """The part of a storage that `piece` describes; `kind` is the class of the arrays that lie in it.

    >>> rows = np.arange(6.0).reshape(2, 3)
    >>> array_at(rows.copy(), piece_of(rows.T[1:]))
    array([[1., 4.],
           [2., 5.]])
    """
    is_whole = piece.shape == owner.shape and piece.dtype == owner.dtype and piece.strides == owner.strides
    if issubclass(kind, DeviceArray):
        if is_whole:
            return kind(owner)
        return kind(kind.library.view_of(owner, piece.shape, piece.dtype, piece.offset, piece.strides))
    if is_whole:
        return owner
    if not owner.size:
        return np.ndarray(piece.shape, piece.dtype)
    flat = _by_rows(owner).reshape(-1).view(np.uint8)
    return np.ndarray(piece.shape, piece.dtype, flat, piece.offset, piece.strides)


def copy_storage(owner: Any) -> Any:
    """A copy of a whole storage in the same memory order."""
    return owner.copy(order="K")


def on_host(owner: Any, kind: Any) -> Array:
    """A storage in the CPU's memory, in the same order: itself where it lies there."""
    return kind.library.download(owner) if issubclass(kind, DeviceArray) else owner


def from_host(array: Array, kind: Any, place: Any) -> Any:
    """A storage again from the CPU's memory."""
    if not issubclass(kind, DeviceArray):
        return array
    return kind.library.on(place, lambda: kind.library.upload(array))


def write_storage(owner: Array, file: Any) -> None:
    """Write the bytes of a storage of NumPy's to an open file."""
    file.write(memoryview(_by_rows(owner).reshape(-1).view(np.uint8)))


def read_storage(file: Any, like: Piece) -> Array:
    """A storage of NumPy's again from an open file; `like` is its own piece."""
    flat = np.fromfile(file, np.uint8).view(like.dtype)
    order = _order(like.strides)
    return flat.reshape([like.shape[dim] for dim in order]).transpose(sorted(range(len(order)), key=order.__getitem__))
