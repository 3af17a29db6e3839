"""save: every rank writes the pieces it holds, into one folder."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pullback.distributed.checkpoint.default_planner import DefaultSavePlanner
from pullback.distributed.checkpoint.filesystem import FileSystemWriter
from pullback.distributed.checkpoint.metadata import Metadata
from pullback.distributed.checkpoint.planner import SavePlan, SavePlanner
from pullback.distributed.checkpoint.staging import copied
from pullback.distributed.checkpoint.stateful import Stateful
from pullback.distributed.checkpoint.storage import StorageWriter, WriteResult
from pullback.distributed.checkpoint.together import Together
from pullback.distributed.checkpoint.writing_process import WritingProcess, WrittenElsewhere, can_write
from pullback.distributed.process_group import is_initialized
from pullback.distributed.subgroups import new_group
from pullback.tensor.tensor import Tensor

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]

CHECKPOINT_ID_MISSING = "`checkpoint_id` must be specified if storage_reader/storage_writer is None."


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state of which every rank may hold parts, into the folder `checkpoint_id`. All ranks must call it.

    A `storage_writer` writes to another place, a `planner` chooses what is written.
    What all ranks hold is written once, by ranks in turn. The folder holds a whole checkpoint at any time: the former one
    until all ranks have written theirs. PyTorch's `torch.distributed.checkpoint` reads it, with any number of ranks.

    >>> import pullback, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"weight": pullback.tensor([1.0, 2.0]), "step": 3}, checkpoint_id=folder)
    >>> sorted(os.listdir(folder))
    ['.metadata', '__0_0.distcp']
    """
    writer = _writer(checkpoint_id, storage_writer)
    planner = planner or DefaultSavePlanner()
    ranks = Together(process_group, no_dist)
    is_first = ranks.rank == 0

    def plan() -> SavePlan:
        planner.set_up_planner(states_of(state_dict), writer.storage_meta(), is_first)
        _set_up(writer.set_up_storage_writer, is_first, rank=ranks.rank, use_collectives=use_collectives)
        return writer.prepare_local_plan(planner.create_local_plan())

    def agree(plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        agreed, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(agreed), metadata

    def write(plan: SavePlan) -> list[WriteResult]:
        return writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(metadata: Metadata, written: list[list[WriteResult]]) -> Metadata:
        writer.finish(metadata, written)
        return metadata

    plans = ranks.step("plan", plan)
    agreed, metadata = ranks.first("plan", lambda: agree(plans))
    try:
        written = ranks.step("write", lambda: write(agreed[ranks.rank]))
        return ranks.first("finish", lambda: finish(metadata, written))
    except BaseException:
        discard = getattr(writer, "discard", None)
        if discard is not None:
            discard()
        raise


def _set_up(action: Callable[..., None], *arguments: Any, **more: Any) -> None:
    """Call it, with names that only newer storages take."""
    takes_more = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(action).parameters.values())
    action(*arguments, **more) if takes_more else action(*arguments)


def _writer(checkpoint_id: str | os.PathLike[str] | None, given: StorageWriter | None) -> StorageWriter:
    if given is None and checkpoint_id is None:
        raise RuntimeError(CHECKPOINT_ID_MISSING)
    if given is None:
        return FileSystemWriter(checkpoint_id or "")
    if checkpoint_id is not None:
        given.reset(checkpoint_id)
    return given


def states_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The state, with the states of what has one instead of the objects."""
    return {
        name: value.state_dict() if isinstance(value, Stateful) and not isinstance(value, Tensor) else value
        for name, value in state_dict.items()
    }


class AsyncCheckpointerType(Enum):
    """Where `async_save` saves: in a thread, or with a process of its own that packs and writes."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What `async_save` returns to a program that brings its own stager."""

    staging_completion: Future[None]
    upload_completion: Future[Metadata]


class _Background:
    """The thread in which states are saved while the program goes on, the group through which it talks, and who writes."""

    pool: ThreadPoolExecutor | None = None
    group: Any = None
    process: WritingProcess | None = None


def async_save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """Copy the state, and save the copy in a thread: the program may go on and change its tensors.

    With `AsyncCheckpointerType.PROCESS` a process of its own packs and writes, which leaves the program's Python alone; a
    storage writer of the program's own stays in the thread.
    Returns a future of what was saved. An `async_stager`, or a storage writer that has `stage`, makes the copy itself; where
    that gives a future, an `AsyncSaveResponse` of both is returned.

    >>> import pullback, tempfile
    >>> weight = pullback.tensor([1.0])
    >>> saved = async_save({"weight": weight}, checkpoint_id=tempfile.mkdtemp())
    >>> weight.zero_()
    tensor([0.])
    >>> list(saved.result().state_dict_metadata)
    ['weight']
    """
    writer = _writer(checkpoint_id, storage_writer)
    stage = getattr(async_stager if async_stager is not None else writer, "stage", copied)
    staged = stage(states_of(state_dict))
    if process_group is None and not no_dist and is_initialized():
        # Of its own, so that its messages do not mix with those of the program.
        _Background.group = _Background.group or new_group()
        process_group = _Background.group
    if _Background.pool is None:
        _Background.pool = ThreadPoolExecutor(1, thread_name_prefix="pullback checkpoint")

    def work() -> Metadata:
        state = staged.result() if isinstance(staged, Future) else staged
        place = writer
        if async_checkpointer_type is AsyncCheckpointerType.PROCESS and can_write(writer):
            place = _written_elsewhere(writer)
        return save(
            state, storage_writer=place, planner=planner, process_group=process_group, no_dist=no_dist,
            use_collectives=use_collectives,
        )  # fmt: skip

    saved = _Background.pool.submit(work)
    return AsyncSaveResponse(staged, saved) if isinstance(staged, Future) else saved


def _written_elsewhere(writer: Any) -> Any:
    """The writer with a process that writes for it, which is started where there is none."""
    if _Background.process is None or not _Background.process.is_alive:
        _Background.process = WritingProcess()
    return WrittenElsewhere(writer, _Background.process)


def save_state_dict(
    state_dict: Mapping[str, Any], storage_writer: StorageWriter, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """The former name of `save`."""
    return save(
        state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist
    )
