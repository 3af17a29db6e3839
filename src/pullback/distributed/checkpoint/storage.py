"""StorageWriter and StorageReader: the places that checkpoints are written to and read from.

`filesystem.py` has the one for folders. A program may bring another, for a bucket of objects or a database; see planner.py
for the order of calls, into which each planner's calls those of the storage follow: `prepare_local_plan` after
`create_local_plan`, `prepare_global_plan` after `create_global_plan`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from pullback.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from pullback.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from pullback.pytorch.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Where a piece was written to, in the words of the storage that wrote it."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Writes pieces. `finish` makes them the checkpoint, when all ranks have written theirs."""

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin a checkpoint, at another place if one is named."""

    @abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on this rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Add what this storage needs to the plan of this rank."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Add what this storage needs to the plans of all ranks; on rank 0 alone."""

    @abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the pieces of this rank, whose values the planner gives."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write what the checkpoint holds and where it lies; on rank 0 alone."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage can write to a place of this name."""

    def storage_meta(self) -> StorageMeta | None:
        """What the planner should know of the place."""
        return None


class StorageReader(ABC):
    """Reads pieces and hands them to a planner."""

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin to read, from another place if one is named."""

    @abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds."""

    @abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on this rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Add what this storage needs to the plan of this rank."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Add what this storage needs to the plans of all ranks; on rank 0 alone."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the pieces of this rank and hand them to the planner."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this storage can read from a place of this name."""
