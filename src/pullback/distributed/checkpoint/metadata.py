"""What the file `.metadata` of a checkpoint of several ranks holds, in PyTorch's names: each reads what the other wrote."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backend.dtype import dtype as DType
from pullback.backend.dtype import float32
from pullback.backend.layout import (
    channels_last,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from pullback.tensor.size import Size

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor that lies in one piece: where it begins and how large it is."""

    offsets: Size
    sizes: Size


_FORMATS = (contiguous_format, channels_last, preserve_format)


def _MEM_FORMAT_ENCODING(number: int) -> memory_format:
    """A memory format by the number that PyTorch's files have for it."""
    return _FORMATS[number]


class _Encoded:
    """A memory format as files have it."""

    def __init__(self, format: memory_format) -> None:
        self._number = _FORMATS.index(format)

    def __reduce__(self) -> tuple[Any, ...]:
        return _MEM_FORMAT_ENCODING, (self._number,)


@dataclass
class TensorProperties:
    """What a tensor is besides its shape and its values."""

    dtype: DType = float32
    layout: layout = strided
    requires_grad: bool = False
    memory_format: memory_format = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        return self.dtype, self.layout, self.requires_grad, _Encoded(self.memory_format), self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, self.memory_format, self.pin_memory = state


@dataclass
class TensorStorageMetadata:
    """A tensor, and the boxes in which it was saved."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Anything that is not a tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """One piece of what was saved: its name, and of a tensor where its box begins."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(default=None, compare=False)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))
        object.__setattr__(self, "index", index)


@dataclass
class StorageMeta:
    """Where and by which call a checkpoint was saved."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """Everything that was saved: by flat name what it is, its path in the state, and in which file it lies."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None
