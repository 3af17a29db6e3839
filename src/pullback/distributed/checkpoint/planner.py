"""Plans of saving and loading, and the planners that make them: what is written or read by whom, piece by piece.

The order of calls, `L` on every rank and `C` on rank 0 alone:

    save   L set_up_planner, create_local_plan   C create_global_plan   L finish_plan, resolve_data per piece
    load   L set_up_planner, create_local_plan   C create_global_plan   L finish_plan, then per piece
           load_bytes, or resolve_tensor and commit_tensor

`default_planner.py` has the planners that are used unless a program brings its own.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pullback.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)
from pullback.tensor.size import Size

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData",
    "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """What a piece to be written is: a whole tensor, a part of one, or anything else."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What a piece to be read is: a tensor or a part of one, or anything else."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How large a piece that is not a tensor is."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Which box of a tensor a piece is, and what the whole tensor is."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One piece to be written."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of a tensor's piece; None for anything else."""
        if self.tensor_data is None:
            return None
        return self.tensor_data.chunk.sizes.numel() * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One piece to be read: a box of `lengths` of what was saved, to its place in the state."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Decides what is written, by which rank, and with which values. Programs subclass `DefaultSavePlanner` as a rule."""

    @abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Begin: this is the state of this rank."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank could write."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What every rank shall write, and what the checkpoint then holds; on rank 0 alone."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take this rank's part of the global plan."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The value of a piece: a tensor, or bytes in an `io.BytesIO`."""


class LoadPlanner:
    """Decides what is read, and where it goes. Programs subclass `DefaultLoadPlanner` as a rule."""

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Begin: this is the state of this rank, and what the checkpoint holds."""
        raise NotImplementedError(f"{type(self).__name__} does not define set_up_planner")

    def create_local_plan(self) -> LoadPlan:
        """What this rank reads."""
        raise NotImplementedError(f"{type(self).__name__} does not define create_local_plan")

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What every rank reads; on rank 0 alone."""
        raise NotImplementedError(f"{type(self).__name__} does not define create_global_plan")

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take this rank's part of the global plan."""
        raise NotImplementedError(f"{type(self).__name__} does not define finish_plan")

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take a value that is not a tensor."""
        raise NotImplementedError(f"{type(self).__name__} does not define load_bytes")

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where bytes are to be read to; only some storages ask."""
        raise NotImplementedError(f"{type(self).__name__} does not define resolve_bytes")

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The tensor into which a piece is to be copied."""
        raise NotImplementedError(f"{type(self).__name__} does not define resolve_tensor")

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Take the tensor that `resolve_tensor` gave, now filled."""
        raise NotImplementedError(f"{type(self).__name__} does not define commit_tensor")
