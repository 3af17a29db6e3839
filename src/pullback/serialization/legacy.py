"""The format that PyTorch wrote before 1.6: several pickles in a row, then the storages' bytes.

magic number, protocol version, facts about the writer's machine, the object, the list of storage keys, and for each
key in that order the number of elements (8 bytes) and the elements.
"""

from __future__ import annotations

import io
import mmap
import pickle
import struct
import sys
from typing import IO, Any

from pullback.backend.storage import allocate_bytes, bytes_over, memory_of, native_byte_order
from pullback.serialization.full_unpickler import make_unpickler
from pullback.serialization.pickler import StorageTable, dump
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.storage import MapLocation, Storage, restore_location
from pullback.serialization.storage_loader import as_storage_type, check_identifier, record_size_error
from pullback.serialization.tensor_access import TensorAccess
from pullback.serialization.torch_names import StorageType
from pullback.serialization.vocabulary import Vocabulary

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save_legacy(value: object, output: IO[bytes], access: TensorAccess, pickle_module: Any, protocol: int) -> None:
    """Write `value` in the old format."""
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        output.write(pickle.dumps(header, protocol))
    storages = StorageTable(with_view_metadata=True)
    dump(value, output, access, storages, pickle_module, protocol)
    keys = sorted(storages.views)
    output.write(pickle.dumps(keys, protocol))
    for key in keys:
        output.write(struct.pack("<q", storages.element_count(key)))
        output.write(memory_of(storages.views[key].data))


class LegacyReader:
    """One file of the old format, held as a buffer. `position` is where it ended: another one may follow."""

    def __init__(self, data: bytes | mmap.mmap, vocabulary: Vocabulary, map_location: MapLocation) -> None:
        self._data = data
        self._vocabulary = vocabulary
        self._map_location = map_location
        self.position = 0
        self._storages: dict[str, Storage] = {}
        self._types: dict[str, StorageType] = {}
        self._in_foreign_order = False
        self._claimed = 0

    def load(self, pickle_module: Any, options: dict[str, Any]) -> Any:
        """Read the object; without a pickle module only what `weights_only=True` allows."""
        if len(self._data) == 0:
            raise EOFError("Ran out of input: the file is empty")
        self._read_header()
        if pickle_module is None:
            result = self._restricted("object")
        else:
            stream = io.BytesIO(self._data) if isinstance(self._data, bytes) else self._data
            stream.seek(self.position)
            result = make_unpickler(pickle_module, stream, self._vocabulary, self._persistent_load, **options).load()
            self.position = stream.tell()
        self._read_storages(self._restricted("storage keys"))
        return result

    def _restricted(self, record: str) -> Any:
        machine = RestrictedUnpickler(self._data, self._vocabulary, self._persistent_load, self.position, record=record)
        result = machine.load()
        self.position = machine.position
        return result

    def _read_header(self) -> None:
        if self._restricted("magic number") != MAGIC_NUMBER:
            raise RuntimeError("Invalid magic number; corrupt file? It is not a checkpoint of PyTorch or pullback")
        version = self._restricted("protocol version")
        if version != PROTOCOL_VERSION:
            raise RuntimeError(f"Invalid protocol version: expected {PROTOCOL_VERSION}")
        system = self._restricted("system")
        if not isinstance(system, dict):
            raise RuntimeError("Invalid header: expected a dict of facts about the writer's machine")
        order = "little" if system.get("little_endian", True) else "big"
        self._in_foreign_order = order != native_byte_order()

    def _persistent_load(self, identifier: Any) -> object:
        if isinstance(identifier, tuple) and identifier and identifier[0] == "module":
            # A class together with its source text, kept to warn of changes: only the class matters.
            return identifier[1]
        storage_type, key, location, count = check_identifier(identifier, 6)
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = self._allocate(storage_type, key, location, count)
            self._types[key] = storage_type
        storage = as_storage_type(storage, storage_type, count, key)
        return _part_of(storage, storage_type, identifier[5])

    def _allocate(self, storage_type: StorageType, key: str, location: str, count: int) -> Storage:
        """Make the storage now, to be filled when its bytes come: they follow the pickle that needs it."""
        itemsize = 1 if storage_type.dtype is None else storage_type.dtype.itemsize
        self._claimed += count * itemsize
        if self._claimed > len(self._data) - self.position:
            raise record_size_error(key, len(self._data) - self.position, count, storage_type)
        storage = Storage(allocate_bytes(count * itemsize), storage_type.dtype, location)
        return restore_location(storage, location, self._map_location)

    def _read_storages(self, keys: Any) -> None:
        if not isinstance(keys, list) or set(map(str, keys)) != set(self._storages):
            raise RuntimeError("the list of storages does not match those that the object uses; corrupt file?")
        for key in map(str, keys):
            self._read_storage(key, self._types[key])

    def _read_storage(self, key: str, storage_type: StorageType) -> None:
        storage = self._storages[key]
        start = self.position + 8
        count = struct.unpack("<q", self._data[self.position : start])[0] if start <= len(self._data) else -1
        itemsize = 1 if storage_type.dtype is None else storage_type.dtype.itemsize
        end = start + storage.nbytes()
        if count * itemsize != storage.nbytes() or end > len(self._data):
            raise RuntimeError(
                f"unexpected EOF, expected {max(end - len(self._data), 0)} more bytes. The file might be corrupted: "
                f"storage {key[:40]!r} is not as long as the object says"
            )
        storage.fill(bytes_over(self._data, start, storage.nbytes()), self._in_foreign_order)
        self.position = end


def _part_of(storage: Storage, storage_type: StorageType, view: Any) -> Storage:
    """Old files could store a part of a storage: its key, offset and number of elements."""
    if view is None:
        return storage
    if not isinstance(view, tuple) or len(view) != 3 or not all(type(number) is int for number in view[1:]):
        raise RuntimeError("the description of a partial storage needs a key, an offset and a size")
    itemsize = 1 if storage_type.dtype is None else storage_type.dtype.itemsize
    start, stop = view[1] * itemsize, (view[1] + view[2]) * itemsize
    if not 0 <= start <= stop <= storage.nbytes():
        raise RuntimeError("a partial storage lies outside of its whole storage")
    return storage.part(start, stop)
