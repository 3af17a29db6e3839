"""load: every rank reads what it needs of a checkpoint, however many ranks wrote it."""

from __future__ import annotations

import os
from typing import Any

import pullback
from pullback.distributed.checkpoint.filesystem import FileSystemReader
from pullback.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.nested_state import flatten, put
from pullback.distributed.checkpoint.state_dict_saver import CHECKPOINT_ID_MISSING, box_of, states_of
from pullback.distributed.checkpoint.stateful import Stateful
from pullback.distributed.checkpoint.together import Together
from pullback.distributed.tensor.dtensor import DTensor
from pullback.tensor.tensor import Tensor

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state from the folder `checkpoint_id`, which pullback or PyTorch wrote with any number of ranks.

    Tensors are written to where they are, other values replaced; a rank reads only what lies in its parts. What is not in
    `state_dict` is not read. All ranks must call it, and if it fails on one, it raises CheckpointException on all.

    >>> import pullback, tempfile
    >>> from pullback.distributed.checkpoint import save
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"weight": pullback.tensor([1.0, 2.0]), "step": 3}, checkpoint_id=folder)
    >>> state = {"weight": pullback.zeros(2), "step": 0}
    >>> load(state, checkpoint_id=folder)
    >>> state
    {'weight': tensor([1., 2.]), 'step': 3}
    """
    if storage_reader is None and checkpoint_id is None:
        raise RuntimeError(CHECKPOINT_ID_MISSING)
    reader = storage_reader or FileSystemReader(checkpoint_id or "")
    allow_partial = bool(getattr(planner, "allow_partial_load", False))
    Together(process_group, no_dist).step("load", lambda: _load(state_dict, reader, allow_partial))


def _load(state_dict: dict[str, Any], reader: FileSystemReader, allow_partial: bool) -> None:
    found = reader.read_metadata()
    state = states_of(state_dict)
    wanted = flatten(state)
    if allow_partial:
        wanted = {name: entry for name, entry in wanted.items() if name in found.state_dict_metadata}
    for name, (_, value) in wanted.items():  # all of them before anything is changed
        _check(name, value, found)
    for name, (path, value) in wanted.items():
        if isinstance(value, Tensor):
            _fill(name, value, found, reader)
        else:
            put(state, path, reader.read_piece(_place(name, None, found)))
    for name, value in state_dict.items():
        if isinstance(value, Stateful) and not isinstance(value, Tensor):
            value.load_state_dict(state[name])
        else:
            state_dict[name] = state[name]


def _check(name: str, value: Any, found: Metadata) -> None:
    kind = found.state_dict_metadata.get(name)
    if kind is None:
        raise RuntimeError(
            f"Missing key in checkpoint state_dict: {name}. It holds {_few(found)}; "
            "DefaultLoadPlanner(allow_partial_load=True) leaves what is missing as it is."
        )
    if isinstance(value, Tensor) != isinstance(kind, TensorStorageMetadata):
        raise ValueError(f"{name} was saved as {type(kind).__name__}, and the state has a {type(value).__name__} there")
    if isinstance(kind, TensorStorageMetadata) and list(kind.size) != list(value.shape):
        raise ValueError(f"Size mismatch between saved {kind.size} and current: {value.shape} for {name}")


def _few(found: Metadata) -> str:
    known = list(found.state_dict_metadata)
    return ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")


def _place(name: str, chunk: ChunkStorageMetadata | None, found: Metadata) -> Any:
    key = MetadataIndex(name, None if chunk is None else chunk.offsets)
    if key not in found.storage_data:
        raise RuntimeError(f"the checkpoint does not say where {name} lies")
    return found.storage_data[key]


def _fill(name: str, value: Any, found: Metadata, reader: FileSystemReader) -> None:
    """Write to the part of this rank, box by box, where saved pieces overlap it."""
    kind: Any = found.state_dict_metadata[name]
    local = value.to_local() if isinstance(value, DTensor) else value
    start, sizes = box_of(value)
    missing = sizes.numel()
    with pullback.no_grad():
        for chunk in kind.chunks:
            here, there, count = _overlap(start, sizes, chunk)
            if count or not kind.size.numel():
                piece = reader.read_piece(_place(name, chunk, found))
                local[here].copy_(piece[there]) if here else local.copy_(piece)
                missing -= count if here else missing
    if missing > 0:
        raise RuntimeError(f"the checkpoint lacks {missing} elements of {name}: it is damaged")


def _overlap(start: Any, sizes: Any, chunk: ChunkStorageMetadata) -> tuple[tuple[slice, ...], tuple[slice, ...], int]:
    """What a part and a saved box have in common: where it lies in the one, in the other, and how many elements."""
    here, there, count = [], [], 1
    for first, length, offset, size in zip(start, sizes, chunk.offsets, chunk.sizes, strict=True):
        low, high = max(first, offset), min(first + length, offset + size)
        here.append(slice(low - first, max(high, low) - first))
        there.append(slice(low - offset, max(high, low) - offset))
        count *= max(high - low, 0)
    return tuple(here), tuple(there), count


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: FileSystemReader, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """The former name of `load`."""
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)


def load_whole(reader: FileSystemReader) -> dict[str, tuple[Any, Any]]:
    """Everything in a checkpoint, as whole tensors and values, with the paths."""
    found = reader.read_metadata()
    values: dict[str, tuple[Any, Any]] = {}
    for name, kind in found.state_dict_metadata.items():
        path = (found.planner_data or {}).get(name, (name,))
        if isinstance(kind, TensorStorageMetadata):
            whole = pullback.empty(list(kind.size), dtype=kind.properties.dtype)
            _fill(name, whole, found, reader)
            values[name] = (path, whole)
        else:
            values[name] = (path, reader.read_piece(_place(name, None, found)))
    return values
