"""save: every rank writes the pieces it holds, into one folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pullback.distributed.checkpoint.filesystem import FileSystemWriter
from pullback.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.nested_state import Path, flatten
from pullback.distributed.checkpoint.stateful import Stateful
from pullback.distributed.checkpoint.together import Together
from pullback.distributed.process_group import is_initialized, new_group
from pullback.distributed.tensor.dtensor import DTensor, rows_of
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["async_save", "save", "save_state_dict"]

CHECKPOINT_ID_MISSING = "`checkpoint_id` must be specified if storage_reader/storage_writer is None."


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state of which every rank may hold parts, into the folder `checkpoint_id`. All ranks must call it.

    What all ranks hold is written once, by ranks in turn. The folder holds a whole checkpoint at any time: the former one
    until all ranks have written theirs. PyTorch's `torch.distributed.checkpoint` reads it, with any number of ranks.

    >>> import pullback, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"weight": pullback.tensor([1.0, 2.0]), "step": 3}, checkpoint_id=folder)
    >>> sorted(os.listdir(folder))
    ['.metadata', '__0_0.distcp']
    """
    writer = _writer(checkpoint_id, storage_writer)
    ranks = Together(process_group, no_dist)
    values: dict[str, tuple[Path, Any]] = {}

    def plan() -> tuple[int, dict[str, Any]]:
        values.update(flatten(states_of(state_dict)))
        return writer.prepare(), {name: _described(path, value) for name, (path, value) in values.items()}

    plans = ranks.step("plan", plan)
    number = max(each[0] for each in plans)
    chosen = _writers([each[1] for each in plans])
    try:
        written = ranks.step(
            "write", lambda: writer.write_pieces(ranks.rank, number, _own_pieces(values, chosen, ranks.rank))
        )
        found = _joined_metadata([each[1] for each in plans], {k: v for each in written for k, v in each.items()})
        ranks.step("finish", lambda: writer.finish(found) if ranks.rank == 0 else None)
    except BaseException:
        writer.remove_pieces(ranks.rank, number)
        raise
    return found


def _writer(checkpoint_id: str | os.PathLike[str] | None, given: FileSystemWriter | None) -> FileSystemWriter:
    if given is not None:
        return given
    if checkpoint_id is None:
        raise RuntimeError(CHECKPOINT_ID_MISSING)
    return FileSystemWriter(checkpoint_id)


def states_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The state, with the states of what has one instead of the objects."""
    return {
        name: value.state_dict() if isinstance(value, Stateful) and not isinstance(value, Tensor) else value
        for name, value in state_dict.items()
    }


def box_of(value: Any) -> tuple[Size, Size]:
    """Where in the whole tensor the part of this rank begins, and how large it is."""
    group = value.shard_group() if isinstance(value, DTensor) else None
    if group is None:
        return Size([0] * value.ndim), Size(value.shape)
    start, rows = rows_of(value.shape[0], group.size(), group.rank())
    return Size([start] + [0] * (len(value.shape) - 1)), Size([rows, *value.shape[1:]])


def _described(path: Path, value: Any) -> tuple[Path, Any]:
    """A value as the other ranks need to know of it: its path, and of a tensor what it is and which box lies here."""
    if not isinstance(value, Tensor):
        return path, None
    properties = TensorProperties(dtype=value.dtype, requires_grad=value.requires_grad)
    return path, TensorStorageMetadata(properties, Size(value.shape), [ChunkStorageMetadata(*box_of(value))])


def _key(name: str, kind: Any) -> MetadataIndex:
    return MetadataIndex(name, None if kind is None else kind.chunks[0].offsets)


def _writers(plans: list[dict[str, tuple[Path, Any]]]) -> dict[MetadataIndex, int]:
    """Which rank writes a piece: of those that have it, the one with least to write so far. All ranks find the same."""
    holders: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for name, (_, kind) in plan.items():
            size = 1 if kind is None else kind.chunks[0].sizes.numel() * kind.properties.dtype.itemsize
            if kind is None or size or not kind.size.numel():
                holders.setdefault(_key(name, kind), []).append(rank)
                sizes[_key(name, kind)] = size
    load = [0] * len(plans)
    chosen = {}
    for key, ranks in holders.items():
        chosen[key] = min(ranks, key=lambda rank: (load[rank], rank))
        load[chosen[key]] += sizes[key]
    return chosen


def _own_pieces(
    values: dict[str, tuple[Path, Any]], chosen: dict[MetadataIndex, int], rank: int
) -> dict[MetadataIndex, Any]:
    found = {}
    for name, (path, value) in values.items():
        key = _key(name, _described(path, value)[1])
        if chosen.get(key) == rank:
            found[key] = _piece(value)
    return found


def _piece(value: Any) -> Any:
    """A value as it is written: of a tensor the part that lies here, without memory around it."""
    if not isinstance(value, Tensor):
        return value
    local = value.to_local() if isinstance(value, DTensor) else value.detach()
    return new_tensor(local.contiguous()._array.copy()) if local.device.type == "cpu" else local.contiguous().cpu()


def _joined_metadata(plans: list[dict[str, tuple[Path, Any]]], places: dict[MetadataIndex, Any]) -> Metadata:
    kinds: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for plan in plans:
        for name, (path, kind) in plan.items():
            paths.setdefault(name, path)
            if kind is None:
                kinds.setdefault(name, BytesStorageMetadata())
                continue
            known = kinds.setdefault(name, TensorStorageMetadata(kind.properties, kind.size, []))
            if known.size != kind.size:
                raise ValueError(
                    f"ranks hold tensors of different shapes under the name {name}: {known.size}, {kind.size}"
                )
            if _key(name, kind) in places and kind.chunks[0] not in known.chunks:
                known.chunks.append(kind.chunks[0])
    numbered = {}
    for key, info in places.items():
        chunks = [] if key.offset is None else [chunk.offsets for chunk in kinds[key.fqn].chunks]
        numbered[MetadataIndex(key.fqn, key.offset, chunks.index(key.offset) if chunks else None)] = info
    return Metadata(kinds, paths, numbered, version="1.0.0")


class _Background:
    """The thread in which states are saved while the program goes on, and the group through which it talks."""

    pool: ThreadPoolExecutor | None = None
    group: Any = None


def async_save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    **options: Any,
) -> Future[Metadata]:
    """Copy the state, and save the copy in a thread: the program may go on and change its tensors.

    >>> import pullback, tempfile
    >>> weight = pullback.tensor([1.0])
    >>> saved = async_save({"weight": weight}, checkpoint_id=tempfile.mkdtemp())
    >>> weight.zero_()
    tensor([0.])
    >>> list(saved.result().state_dict_metadata)
    ['weight']
    """
    writer = _writer(checkpoint_id, storage_writer)
    copied = _copied(states_of(state_dict))
    if process_group is None and not no_dist and is_initialized():
        # Of its own, so that its messages do not mix with those of the program.
        _Background.group = _Background.group or new_group()
        process_group = _Background.group
    if _Background.pool is None:
        _Background.pool = ThreadPoolExecutor(1, thread_name_prefix="pullback checkpoint")
    return _Background.pool.submit(save, copied, storage_writer=writer, process_group=process_group, no_dist=no_dist)


def _copied(value: Any) -> Any:
    if isinstance(value, DTensor):
        return value.like(value._array.copy())
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def save_state_dict(
    state_dict: Mapping[str, Any], storage_writer: FileSystemWriter, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: Any = None,
) -> Metadata:  # fmt: skip
    """The former name of `save`."""
    return save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist)
