"""Turns the persistent ids in a checkpoint's pickle into storages, each read once."""

from __future__ import annotations

from typing import Any

from pullback.backend.storage import native_byte_order
from pullback.backend.widening import dtype_in_memory
from pullback.serialization.storage import MapLocation, Storage, restore_location
from pullback.serialization.torch_names import StorageType
from pullback.serialization.zip_reader import ZipReader


class ZipStorageLoader:
    """The storages of a zip checkpoint."""

    def __init__(self, reader: ZipReader, map_location: MapLocation, byte_order: str) -> None:
        self._reader = reader
        self._map_location = map_location
        self._in_foreign_order = byte_order != native_byte_order()
        self._storages: dict[str, Storage] = {}

    def persistent_load(self, identifier: Any) -> Storage:
        """The storage that a persistent id describes."""
        storage_type, key, location, count = check_identifier(identifier, 5)
        known = self._storages.get(key)
        if known is not None:
            return as_storage_type(known, storage_type, count, key)
        nbytes = count * (1 if storage_type.dtype is None else storage_type.dtype.itemsize)
        size = self._reader.record_size(f"data/{key}")
        if size != nbytes:
            raise record_size_error(key, size, count, storage_type)
        data = self._reader.read_storage(f"data/{key}")
        storage = Storage(data, storage_type.dtype, location, self._in_foreign_order)
        self._storages[key] = restore_location(storage, location, self._map_location)
        return self._storages[key]


def record_size_error(key: str, size: int, count: int, storage_type: StorageType) -> RuntimeError:
    """A storage whose bytes in the file are not as many as the pickle says."""
    return RuntimeError(
        f"record size ({size} bytes) does not match expected size of storage {key!r:.40}: {count} elements of "
        f"{storage_type.name}. The file is damaged or was not written by a checkpoint writer."
    )


def check_identifier(identifier: Any, length: int) -> tuple[StorageType, str, str, int]:
    """The parts of a persistent id, refused unless each has its type."""
    if not isinstance(identifier, tuple) or len(identifier) < length:
        raise RuntimeError(f"saved_id must be a tuple of at least {length} parts, got {type(identifier).__name__}")
    kind, storage_type, key, location, count = identifier[:5]
    if kind != "storage":
        raise RuntimeError("Unknown typename for persistent_load, expected 'storage'")
    if not isinstance(storage_type, StorageType):
        raise RuntimeError(f"expected a storage class in a persistent id, got {type(storage_type).__name__}")
    if not isinstance(key, str) or not isinstance(location, str) or type(count) is not int or count < 0:
        raise RuntimeError("a persistent id needs a key, a location and a number of elements that is not negative")
    return storage_type, key, location, count


def as_storage_type(storage: Storage, storage_type: StorageType, count: int, key: str) -> Storage:
    """A storage met before, which must be as large as the pickle says again."""
    itemsize = 1 if storage_type.dtype is None else storage_type.dtype.itemsize
    if storage.nbytes() != count * itemsize:
        raise record_size_error(key, storage.nbytes(), count, storage_type)
    if storage.dtype is storage_type.dtype:
        return storage
    return Storage(storage.bytes_as(_machine_type(storage, storage_type)), storage_type.dtype, storage.location)


def _machine_type(storage: Storage, storage_type: StorageType) -> Any:
    element = storage.dtype or storage_type.dtype
    assert element is not None, "two untyped storages are one"
    return dtype_in_memory(element)
