"""The oldest format of PyTorch (before 0.1.10): a tar archive of `storages`, `tensors` and `pickle`.

Storages and tensors are lists of binary descriptions, and the pickle refers to tensors by number.
"""

from __future__ import annotations

import io
import struct
import tarfile
from typing import IO, Any

from pullback.backend.storage import allocate_bytes, bytes_over
from pullback.serialization.full_unpickler import make_unpickler
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.storage import MapLocation, Storage, restore_location
from pullback.serialization.torch_names import StorageType
from pullback.serialization.vocabulary import Vocabulary


class TarReader:
    """One file of the tar format."""

    def __init__(self, source: IO[bytes], vocabulary: Vocabulary, map_location: MapLocation) -> None:
        self._vocabulary = vocabulary
        self._map_location = map_location
        self._objects: dict[int, Any] = {}
        try:
            with tarfile.open(fileobj=source, mode="r:") as archive:
                self._members = {name: _read_member(archive, name) for name in ("storages", "tensors", "pickle")}
        except (tarfile.TarError, KeyError, OSError, ValueError) as error:
            raise RuntimeError(f"Invalid tar checkpoint; corrupt file? ({error})") from None

    def load(self, pickle_module: Any, options: dict[str, Any]) -> Any:
        """Read the object; without a pickle module only what `weights_only=True` allows."""
        try:
            self._read_storages(self._cursor("storages"))
            self._read_tensors(self._cursor("tensors"))
        except (struct.error, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise RuntimeError(f"Invalid tar checkpoint; corrupt file? ({type(error).__name__}: {error})") from None
        if pickle_module is None:
            return RestrictedUnpickler(
                self._members["pickle"], self._vocabulary, self._persistent_load, record="pickle"
            ).load()
        stream = io.BytesIO(self._members["pickle"])
        return make_unpickler(pickle_module, stream, self._vocabulary, self._persistent_load, **options).load()

    def _cursor(self, record: str) -> _Cursor:
        return _Cursor(self._members[record], self._vocabulary, record)

    def _persistent_load(self, identifier: Any) -> object:
        if isinstance(identifier, tuple):
            return identifier[0]  # a class beside its source text
        return self._objects[int(identifier)]

    def _read_storages(self, cursor: _Cursor) -> None:
        for _ in range(cursor.unpickle()):
            key, location, storage_type = cursor.unpickle()
            if not isinstance(storage_type, StorageType) or storage_type.dtype is None:
                raise TypeError("a storage without a type")
            (count,) = cursor.unpack("<q")
            data = cursor.take(count * storage_type.dtype.itemsize)
            content = allocate_bytes(len(data))
            content[...] = bytes_over(data)
            storage = Storage(content, storage_type.dtype, location)
            self._objects[key] = restore_location(storage, location, self._map_location)
        for target, root, offset, count in cursor.unpickle():
            whole: Storage = self._objects[root]
            itemsize = 1 if whole.dtype is None else whole.dtype.itemsize
            if not 0 <= offset <= offset + count <= whole.size():
                raise ValueError("a partial storage lies outside of its whole storage")
            self._objects[target] = whole.part(offset * itemsize, (offset + count) * itemsize)

    def _read_tensors(self, cursor: _Cursor) -> None:
        for _ in range(cursor.unpickle()):
            key, storage_key, _ = cursor.unpickle()
            ndim, _ = cursor.unpack("<ii")
            if not 0 <= ndim <= 64:
                raise ValueError(f"a tensor of {ndim} dimensions")
            size = cursor.unpack(f"<{ndim}q")
            stride = cursor.unpack(f"<{ndim}q")
            (offset,) = cursor.unpack("<q")
            storage = self._objects[storage_key]
            self._objects[key] = self._vocabulary.rebuilder.rebuild_tensor(storage, offset, size, stride)


class _Cursor:
    """A position in a member that mixes pickles and binary numbers."""

    def __init__(self, data: bytes, vocabulary: Vocabulary, record: str) -> None:
        self._data = data
        self._record = record
        self._vocabulary = vocabulary
        self._position = 0

    def unpickle(self) -> Any:
        machine = RestrictedUnpickler(self._data, self._vocabulary, position=self._position, record=self._record)
        result = machine.load()
        self._position = machine.position
        return result

    def take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._data):
            raise ValueError(f"{count} bytes where {len(self._data) - self._position} are left")
        start, self._position = self._position, end
        return self._data[start:end]

    def unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


def _read_member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise KeyError(f"{name} is not a file")
    return member.read()
