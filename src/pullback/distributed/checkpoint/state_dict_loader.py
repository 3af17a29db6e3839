"""load: every rank reads what it needs of a checkpoint, however many ranks wrote it."""

from __future__ import annotations

import os
from typing import Any

from pullback.distributed.checkpoint.default_planner import DefaultLoadPlanner
from pullback.distributed.checkpoint.filesystem import FileSystemReader
from pullback.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from pullback.distributed.checkpoint.state_dict_saver import CHECKPOINT_ID_MISSING, _set_up, states_of
from pullback.distributed.checkpoint.stateful import Stateful
from pullback.distributed.checkpoint.storage import StorageReader
from pullback.distributed.checkpoint.together import Together
from pullback.tensor.tensor import Tensor

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
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
    reader = storage_reader if storage_reader is not None else FileSystemReader(checkpoint_id or "")
    if storage_reader is not None and checkpoint_id is not None:
        reader.reset(checkpoint_id)
    state: dict[str, Any] = {}
    ranks = Together(process_group, no_dist)
    ranks.step("state", lambda: state.update(states_of(state_dict)))
    _load_into(state, reader, planner or DefaultLoadPlanner(), ranks)
    for name, value in list(state_dict.items()):
        if isinstance(value, Stateful) and not isinstance(value, Tensor):
            value.load_state_dict(state[name])
        else:
            state_dict[name] = state[name]


def _load_into(state: dict[str, Any], reader: StorageReader, planner: LoadPlanner, ranks: Together) -> None:
    """Fill a state; the planner may add to it."""
    is_first = ranks.rank == 0

    def plan() -> LoadPlan:
        metadata = reader.read_metadata()
        planner.set_up_planner(state, metadata, is_first)
        _set_up(reader.set_up_storage_reader, metadata, is_first, rank=ranks.rank)
        return reader.prepare_local_plan(planner.create_local_plan())

    plans = ranks.step("plan", plan)
    agreed = ranks.first("plan", lambda: reader.prepare_global_plan(planner.create_global_plan(plans)))
    ranks.step("read", lambda: reader.read_data(planner.finish_plan(agreed[ranks.rank]), planner).wait())


def _load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """Fill a state of plain values and tensors, to which the planner may add."""
    _load_into(state_dict, storage_reader, planner or DefaultLoadPlanner(), Together(process_group, no_dist))


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """The former name of `load`."""
    load(state_dict, storage_reader=storage_reader, planner=planner, process_group=process_group, no_dist=no_dist)
