"""Checkpoints of several ranks in a folder: a file of pieces per rank, and `.metadata`, which says what lies where.

# Note [Whole checkpoints]
A checkpoint is what `.metadata` says. Pieces are written to files that no former `.metadata` names, and the new one is put
in its place, at once, when all ranks have written theirs: until then the former checkpoint is there whole, after it the new
one. A full disk or a rank that is killed leaves at most files that nobody names, which the next save removes.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback.distributed.checkpoint import metadata as names
from pullback.distributed.checkpoint.metadata import Metadata, StorageMeta
from pullback.serialization.checkpoint import load, save
from pullback.serialization.pickler import StorageTable, dump
from pullback.serialization.pullback_tensors import PullbackTensors
from pullback.serialization.replacement import replaced_when_written
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.vocabulary import SafeGlobal, Vocabulary, safe_globals

__all__ = ["FileSystemReader", "FileSystemWriter"]

_METADATA = ".metadata"
_PIECES = re.compile(r"__(\d+)_(\d+)\.distcp")


@dataclass
class _StorageInfo:
    """Where a piece lies."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None


def _path_text(*parts: str) -> str:
    """A path in a file, as text: which kind of path it was does not matter here."""
    return os.path.join(*parts) if parts else ""


_ALLOWED: tuple[SafeGlobal, ...] = (
    names.Metadata, names.TensorStorageMetadata, names.BytesStorageMetadata, names.ChunkStorageMetadata, names.MetadataIndex,
    names.TensorProperties, names.StorageMeta, names._MEM_FORMAT_ENCODING, _StorageInfo,
    *((_path_text, f"{module}.{kind}") for module in ("pathlib", "pathlib._local") for kind in ("PosixPath", "WindowsPath")),
)  # fmt: skip


class FileSystemWriter:
    """Writes a checkpoint into a folder; see Note [Whole checkpoints].

    With `overwrite=False` a folder that holds a checkpoint already is refused. `sync_files` waits until the data are on the
    disk. The other arguments are taken for PyTorch's sake and change nothing.
    """

    def __init__(
        self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
        overwrite: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.sync_files = sync_files
        self.overwrite = overwrite

    def prepare(self) -> int:
        """Make the folder; the number that the new files get, which no file of a former checkpoint has."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(f"{self.path} holds a checkpoint already, and overwrite is False: choose another folder")
        return max((int(found[2]) + 1 for found in map(_PIECES.fullmatch, os.listdir(self.path)) if found), default=0)

    def write_pieces(self, rank: int, number: int, pieces: dict[names.MetadataIndex, Any]) -> dict[Any, _StorageInfo]:
        """Write what this rank holds, one piece after the other; where each lies."""
        if not pieces:
            return {}
        file_name = f"__{rank}_{number}.distcp"
        found = {}
        with open(self.path / file_name, "xb") as file:
            for index, value in pieces.items():
                packed = io.BytesIO()
                save(value, packed)
                found[index] = _StorageInfo(file_name, file.tell(), packed.tell())
                file.write(packed.getbuffer())
            self._settle(file)
        return found

    def remove_pieces(self, rank: int, number: int) -> None:
        """Remove what this rank wrote for a checkpoint that did not come about."""
        (self.path / f"__{rank}_{number}.distcp").unlink(missing_ok=True)

    def finish(self, found: Metadata) -> None:
        """Make this the checkpoint of the folder, and remove the files of former ones."""
        found.storage_meta = StorageMeta(str(self.path), str(uuid.uuid4()))
        packed = io.BytesIO()
        dump(found, packed, PullbackTensors(), StorageTable(), pickle, 4)
        with replaced_when_written(self.path / _METADATA) as file:
            file.write(packed.getbuffer())
            self._settle(file)
        used = {info.relative_path for info in found.storage_data.values()}
        for name in os.listdir(self.path):
            if _PIECES.fullmatch(name) and name not in used:
                (self.path / name).unlink(missing_ok=True)

    def _settle(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())


class FileSystemReader:
    """Reads a checkpoint from a folder. No code runs from its files."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.path = Path(path)

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds."""
        place = self.path / _METADATA
        if not place.exists():
            raise FileNotFoundError(
                f"metadata is None: there is no checkpoint in {self.path}, since {place} is missing"
            )
        data = place.read_bytes()
        with safe_globals(_ALLOWED):
            vocabulary = Vocabulary(PullbackTensors(), len(data))
        found = RestrictedUnpickler(data, vocabulary, record=_METADATA).load()
        if not isinstance(found, Metadata) or not isinstance(found.storage_data, dict):
            raise pickle.UnpicklingError(f"{place} does not describe a checkpoint")
        return found

    def read_piece(self, info: _StorageInfo) -> Any:
        """One piece: a tensor or another value."""
        if info.transform_descriptors:
            raise NotImplementedError(f"{info.relative_path} is written through {list(info.transform_descriptors)}")
        place = (self.path / info.relative_path).resolve()
        if not place.is_relative_to(self.path.resolve()):
            raise pickle.UnpicklingError(f"the checkpoint names a file outside of its folder: {info.relative_path}")
        with open(place, "rb") as file:
            file.seek(info.offset)
            data = file.read(info.length)
        if len(data) < info.length:
            raise EOFError(f"{place} ends before the piece at {info.offset} does: {info.length} bytes, got {len(data)}")
        return load(io.BytesIO(data))
