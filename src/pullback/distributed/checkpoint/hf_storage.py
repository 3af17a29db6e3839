"""Checkpoints as safetensors files, which hold no code and which libraries for language models read.

A tensor that ranks hold parts of lies in a file for each rank; the header of each file says where its parts begin. The files
are PyTorch's: each reads what the other wrote. They take their places when all ranks have written theirs.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pullback.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, finished_future
from pullback.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItemType
from pullback.distributed.checkpoint.storage import WriteResult
from pullback.pytorch.futures import Future
from pullback.serialization.replacement import replaced_when_written
from pullback.serialization.safetensors import safe_open, save_file
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"
_FILES = re.compile(r"(shard-\d{5}-)?model-\d{5}-of-\d{5}\.safetensors")
_SHARDING = "DCP_SHARDING_INFO"


@dataclass
class _Piece:
    """Where a part of a tensor lies."""

    relative_path: str
    written_as: str = ""
    """The name that the file has until all are written."""


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into safetensors files of a folder.

    `fqn_to_index_mapping` says in which of several files a tensor is to lie, from 1 on. With `save_distributed` each rank
    writes what it holds; `enable_consolidation` then makes whole files of these, which stay in the folder `sharded`. The
    numbers of threads are taken for PyTorch's sake.

    >>> import pullback, tempfile
    >>> from pullback.distributed.checkpoint import save
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"weight": pullback.ones(2)}, storage_writer=HuggingFaceStorageWriter(folder))
    >>> sorted(os.listdir(folder))
    ['model-00001-of-00001.safetensors', 'model.safetensors.index.json']
    """

    def __init__(
        self, path: str | os.PathLike[str], fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1,
        save_distributed: bool = False, enable_consolidation: bool = False, thread_count_consolidation: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self.fqn_to_index_mapping = dict(fqn_to_index_mapping or {})
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation and save_distributed
        self._files: list[Path] = []

    @property
    def _folder(self) -> Path:
        """Where ranks write."""
        return self.path / "sharded" if self.enable_consolidation else self.path

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder, and refuse what such files cannot hold."""
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise ValueError(
                    f"{item.index.fqn} is not a tensor, and safetensors files hold tensors alone: save it by itself, or "
                    "with FileSystemWriter"
                )
        self._files = []
        self._folder.mkdir(parents=True, exist_ok=True)
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Number the ranks, and give the files of this checkpoint a name until they are complete."""
        if not self.save_distributed and sum(bool(plan.items) for plan in plans) > 1:
            raise ValueError(
                "several ranks have something to write: pass save_distributed=True (and enable_consolidation=True for whole "
                "files), or DefaultSavePlanner(dedup_save_to_lowest_rank=True) where all hold the same"
            )
        token = uuid.uuid4().hex[:12]
        return [replace(plan, storage_data=(rank, token)) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what this rank holds, each file at once."""
        rank, token = plan.storage_data
        files: dict[int, list[Any]] = {}
        for item in plan.items:
            files.setdefault(self.fqn_to_index_mapping.get(item.index.fqn, 1), []).append(item)
        results = []
        for number, items in files.items():
            name = _file_name(number, self._count, rank if self.save_distributed else None)
            written_as = f".{name}.{token}.partial"
            self._files.append(self._folder / written_as)
            tensors = {item.index.fqn: _alone(planner.resolve_data(item)) for item in items}
            if len(tensors) < len(items):
                raise ValueError("a rank holds several parts of one tensor, for which a safetensors file has one name")
            offsets = {item.index.fqn: {"saved_offsets": list(item.index.offset or ())} for item in items}
            save_file(tensors, self._files[-1], {"format": "pt", "DCP_VERSION": "1.0", _SHARDING: json.dumps(offsets)})
            self._settle_file(self._files[-1])
            for item in items:
                size = tensors[item.index.fqn].nbytes
                results.append(WriteResult(item.index, size, _Piece(name, written_as)))
        return finished_future(results)

    @property
    def _count(self) -> int:
        return max(self.fqn_to_index_mapping.values(), default=1)

    def _settle_file(self, place: Path) -> None:
        if self.sync_files:
            with open(place, "rb") as file:
                os.fsync(file.fileno())

    def discard(self) -> None:
        """Remove what this rank wrote for a checkpoint that did not come about."""
        for place in self._files:
            place.unlink(missing_ok=True)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Put the files in their places, remove those of a former checkpoint, and say which tensor lies where."""
        written = [result for each in results for result in each]
        pieces = {piece.relative_path: piece for piece in (result.storage_data for result in written)}
        for name, piece in pieces.items():
            os.replace(self._folder / piece.written_as, self._folder / name)
        _remove_others(self._folder, set(pieces))
        metadata.storage_data = {result.index: result.storage_data for result in written}
        metadata.storage_meta = self.storage_meta()
        files = {result.index.fqn: result.storage_data.relative_path for result in written}
        if self.enable_consolidation:
            files = self._consolidate(metadata)
        if self.enable_consolidation or not self.save_distributed:
            total = sum(result.size_in_bytes for result in written)
            index = {"metadata": {"total_size": total}, "weight_map": files}
            with replaced_when_written(self.path / _INDEX) as file:
                file.write(json.dumps(index, indent=2).encode())

    def _consolidate(self, metadata: Metadata) -> dict[str, str]:
        """Make whole files of those of the ranks."""
        from pullback.distributed.checkpoint.state_dict_loader import load

        files = {name: self.fqn_to_index_mapping.get(name, 1) for name in metadata.state_dict_metadata}
        for number in sorted(set(files.values())):
            found = {name: metadata.state_dict_metadata[name] for name, place in files.items() if place == number}
            whole = {name: _empty(about) for name, about in found.items() if isinstance(about, TensorStorageMetadata)}
            load(whole, storage_reader=HuggingFaceStorageReader(self._folder), no_dist=True)
            place = self.path / f".{uuid.uuid4().hex}.partial"
            save_file(whole, place, {"format": "pt"})
            os.replace(place, self.path / _file_name(number, self._count, None))
        names = {name: _file_name(number, self._count, None) for name, number in files.items()}
        _remove_others(self.path, set(names.values()))
        return names


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the safetensors files of a folder, whoever wrote them.

    >>> import pullback, tempfile
    >>> from pullback.distributed.checkpoint import load
    >>> folder = tempfile.mkdtemp()
    >>> save_file({"weight": pullback.ones(2)}, os.path.join(folder, "model.safetensors"))
    >>> state = {"weight": pullback.zeros(2)}
    >>> load(state, storage_reader=HuggingFaceStorageReader(folder))
    >>> state["weight"].tolist()
    [1.0, 1.0]
    """

    def __init__(self, path: str | os.PathLike[str], thread_count: int = 1) -> None:
        super().__init__(path)
        self._opened: dict[str, safe_open] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin to read, from another folder if one is named."""
        super().reset(checkpoint_id)
        self._opened = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the files hold: the headers alone are read."""
        names = sorted(place.name for place in self.path.glob("*.safetensors") if not place.name.startswith("."))
        if not names:
            raise FileNotFoundError(f"there is no checkpoint in {self.path}: no file's name ends with .safetensors")
        self._opened = {name: safe_open(self.path / name) for name in names}
        found: dict[str, TensorStorageMetadata] = {}
        pieces: dict[MetadataIndex, _Piece] = {}
        for file, opened in self._opened.items():
            offsets = _saved_offsets(opened.metadata())
            for name in opened:
                dtype, shape = opened.describe(name)
                begin = Size(offsets.get(name, [0] * len(shape)))
                box = ChunkStorageMetadata(begin, Size(shape))
                about = found.setdefault(name, TensorStorageMetadata(TensorProperties(dtype), Size(shape), []))
                about.chunks.append(box)
                about.size = Size(max(size, at + part) for size, at, part in zip(about.size, begin, shape, strict=True))
                pieces[MetadataIndex(name, begin)] = _Piece(file)
        return Metadata({**found}, storage_data=pieces, storage_meta=StorageMeta(str(self.path)))

    def _piece(self, index: MetadataIndex, info: Any) -> Tensor:
        return self._opened[info.relative_path].get_tensor(index.fqn)


def _saved_offsets(texts: Mapping[str, str] | None) -> dict[str, list[int]]:
    """Where the parts in a file begin, by name; what is not said begins at 0."""
    try:
        told = json.loads((texts or {}).get(_SHARDING, "{}"))
        return {name: [int(at) for at in entry["saved_offsets"]] for name, entry in told.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the text {_SHARDING} of a safetensors file cannot be read: {error}") from error


def _file_name(number: int, count: int, rank: int | None) -> str:
    shard = "" if rank is None else f"shard-{rank + 1:05d}-"
    return f"{shard}model-{number:05d}-of-{count:05d}.safetensors"


def _alone(tensor: Tensor) -> Tensor:
    """A copy in main memory: what shares memory cannot be written to one file."""
    return tensor.detach().cpu().contiguous().clone()


def _empty(about: TensorStorageMetadata) -> Tensor:
    from pullback.creation.filled import empty

    return empty(about.size, dtype=about.properties.dtype)


def _remove_others(folder: Path, used: set[str]) -> None:
    for name in os.listdir(folder):
        if _FILES.fullmatch(name) and name not in used:
            (folder / name).unlink(missing_ok=True)
