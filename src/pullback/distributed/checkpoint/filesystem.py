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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pullback.distributed.checkpoint import metadata as names
from pullback.distributed.checkpoint.default_planner import narrowed
from pullback.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from pullback.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner
from pullback.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from pullback.pytorch.futures import Future
from pullback.serialization.checkpoint import load, save
from pullback.serialization.pickler import StorageTable, dump
from pullback.serialization.pullback_tensors import PullbackTensors
from pullback.serialization.replacement import replaced_when_written
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.vocabulary import SafeGlobal, Vocabulary, safe_globals
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["FileSystemReader", "FileSystemWriter"]

T = TypeVar("T")

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


class FileSystemWriter(StorageWriter):
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
        self._written: Path | None = None

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin a checkpoint, in another folder if one is named."""
        self.path = self.path if checkpoint_id is None else Path(checkpoint_id)
        self._written = None

    def storage_meta(self) -> StorageMeta:
        """The folder, and a name for what is saved now."""
        return StorageMeta(str(self.path), str(uuid.uuid4()))

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on this rank; nothing is to be done."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder, and note which number the new files may get: one that no file of a former checkpoint has."""
        self._written = None
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(f"{self.path} holds a checkpoint already, and overwrite is False: choose another folder")
        return replace(plan, storage_data=self._free_number())

    def _free_number(self) -> int:
        return max((int(found[2]) + 1 for found in map(_PIECES.fullmatch, os.listdir(self.path)) if found), default=0)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Name a file for every rank."""
        numbers = [plan.storage_data for plan in plans if isinstance(plan.storage_data, int)]
        number = max([self._free_number(), *numbers])
        return [replace(plan, storage_data=f"__{rank}_{number}.distcp") for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what this rank holds, one piece after the other."""
        results = []
        if plan.items:
            self._written = self.path / plan.storage_data
            with open(self._written, "xb") as file:
                for item in plan.items:
                    start = file.tell()
                    file.write(_packed(planner.resolve_data(item)))
                    info = _StorageInfo(plan.storage_data, start, file.tell() - start)
                    results.append(WriteResult(item.index, info.length, info))
                self._settle(file)
        return finished_future(results)

    def discard(self) -> None:
        """Remove what this rank wrote for a checkpoint that did not come about."""
        if self._written is not None:
            self._written.unlink(missing_ok=True)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Make this the checkpoint of the folder, and remove the files of former ones."""
        metadata.storage_data = {result.index: result.storage_data for each in results for result in each}
        metadata.storage_meta = self.storage_meta()
        packed = io.BytesIO()
        dump(metadata, packed, PullbackTensors(), StorageTable(), pickle, 4)
        with replaced_when_written(self.path / _METADATA) as file:
            file.write(packed.getbuffer())
            self._settle(file)
        used = {info.relative_path for info in metadata.storage_data.values()}
        for name in os.listdir(self.path):
            if _PIECES.fullmatch(name) and name not in used:
                (self.path / name).unlink(missing_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is the name of a folder: one that is there, or can be made."""
        return _is_place_of_a_folder(checkpoint_id)

    def _settle(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())


def _packed(value: Any) -> Any:
    """The bytes of a piece: of a tensor without the memory around it."""
    if not isinstance(value, Tensor):
        return value.getbuffer()
    local = value.detach().contiguous()
    alone = new_tensor(local._array.copy()) if local.device.type == "cpu" else local.cpu()
    packed = io.BytesIO()
    save(alone, packed)
    return packed.getbuffer()


def finished_future(result: T) -> Future[T]:
    """A future of what is there."""
    future: Future[T] = Future()
    future.set_result(result)
    return future


def _is_place_of_a_folder(place: str | os.PathLike[str]) -> bool:
    path = Path(place)
    return "://" not in str(place) and (path.is_dir() or any(parent.is_dir() for parent in path.absolute().parents))


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder. No code runs from its files."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.path = Path(path)
        self.storage_data: dict[MetadataIndex, Any] = {}

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin to read, from another folder if one is named."""
        self.path = self.path if checkpoint_id is None else Path(checkpoint_id)
        self.storage_data = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
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

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take where the pieces lie."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read piece by piece."""
        for item in plan.items:
            if item.storage_index not in self.storage_data:
                raise RuntimeError(f"the checkpoint does not say where {item.storage_index.fqn} lies")
            info = self.storage_data[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, self._read(info))
                continue
            source = narrowed(self._piece(item.storage_index, info), item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            if target.size() != source.size():
                raise AssertionError(
                    f"req {item.storage_index} mismatch sizes {target.size()} vs {source.size()}: resolve_tensor must give "
                    "a tensor of the piece's size"
                )
            target.copy_(source)
            planner.commit_tensor(item, target)
        return finished_future(None)

    def _piece(self, index: MetadataIndex, info: Any) -> Tensor:
        """The tensor that lies in one piece."""
        piece: Tensor = load(self._read(info))
        return piece

    def _read(self, info: _StorageInfo) -> io.BytesIO:
        """The bytes of one piece."""
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
        return io.BytesIO(data)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is the name of a folder."""
        return _is_place_of_a_folder(checkpoint_id)
