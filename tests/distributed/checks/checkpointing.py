"""Checkpoints of several ranks in one folder, on two ranks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback.distributed import checkpoint as dcp
from pullback.distributed.checkpoint.filesystem import FileSystemWriter
from pullback.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from pullback.distributed.tensor import Shard, distribute_tensor
from pullback.serialization.safetensors import load_file

RANK = int(os.environ.get("RANK", 0))


def divided(tensor: Any) -> Any:
    """The tensor, divided by its rows."""
    return distribute_tensor(tensor, placements=[Shard(0)])


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that all ranks have the name of."""
    box = [tempfile.mkdtemp() if RANK == 0 else None]
    dist.broadcast_object_list(box, src=0)
    yield Path(str(box[0]))
    dist.barrier()
    if RANK == 0:
        shutil.rmtree(str(box[0]))


class _FullDisk(FileSystemWriter):
    """Fails on one rank, in the middle of its file."""

    def write_data(self, plan: Any, planner: Any) -> Any:
        written = super().write_data(plan, planner)
        if RANK == 1:
            raise OSError("No space left on device")
        return written


def check_a_divided_tensor_is_written_in_parts_and_read_whole() -> None:
    with shared_folder() as folder:
        whole = pullback.arange(10.0).reshape(5, 2)
        found: Any = dcp.save({"weight": divided(whole), "step": 7}, checkpoint_id=folder)
        assert [chunk.sizes[0] for chunk in found.state_dict_metadata["weight"].chunks] == [3, 2]
        state: dict[str, Any] = {"weight": pullback.zeros(5, 2), "step": 0}
        dcp.load(state, checkpoint_id=folder)
        assert pullback.equal(state["weight"], whole)
        assert state["step"] == 7
        parts = {"weight": divided(pullback.zeros(5, 2))}
        dcp.load(parts, checkpoint_id=folder)
        assert pullback.equal(parts["weight"].full_tensor(), whole)


def check_what_all_ranks_hold_is_written_once_by_ranks_in_turn() -> None:
    with shared_folder() as folder:
        found = dcp.save({name: pullback.ones(100) for name in "abcd"}, checkpoint_id=folder)
        files = [info.relative_path for info in found.storage_data.values()]
        assert sorted(files) == ["__0_0.distcp"] * 2 + ["__1_0.distcp"] * 2


def check_a_rank_that_cannot_write_fails_on_all_and_leaves_the_former_checkpoint() -> None:
    with shared_folder() as folder:
        dcp.save({"weight": divided(pullback.ones(4)), "step": 1}, checkpoint_id=folder)
        dist.barrier()
        before = sorted(os.listdir(folder))
        with pytest.raises(dcp.CheckpointException, match="rank 1: OSError: No space left") as caught:
            dcp.save({"weight": divided(pullback.zeros(4)), "step": 2}, storage_writer=_FullDisk(folder))
        assert list(caught.value.failures) == [1]
        dist.barrier()
        assert sorted(os.listdir(folder)) == before
        state: dict[str, Any] = {"weight": divided(pullback.zeros(4)), "step": 0}
        dcp.load(state, checkpoint_id=folder)
        assert (state["weight"].full_tensor().tolist(), state["step"]) == ([1.0] * 4, 1)


class _Recorded(dcp.DefaultSavePlanner):
    """Notes what is asked of it, and writes halves."""

    def __init__(self) -> None:
        super().__init__(dedup_save_to_lowest_rank=True)
        self.calls: list[str] = []

    def create_global_plan(self, all_plans: list[dcp.SavePlan]) -> Any:
        self.calls.append(f"global plan of {len(all_plans)}")
        return super().create_global_plan(all_plans)

    def transform_object(self, write_item: dcp.WriteItem, object: Any) -> Any:
        self.calls.append(write_item.index.fqn)
        value = super().transform_object(write_item, object)
        return value * 0.5 if isinstance(value, pullback.Tensor) else value


def check_a_planner_of_ones_own_plans_on_rank_0_and_writes_on_all() -> None:
    with shared_folder() as folder:
        planner = _Recorded()
        state: dict[str, Any] = {"weight": divided(pullback.ones(4)), "bias": pullback.ones(2), "step": 3}
        dcp.save(state, checkpoint_id=folder, planner=planner)
        assert planner.calls == (["global plan of 2", "weight", "bias", "step"] if RANK == 0 else ["weight"])
        state = {"weight": divided(pullback.zeros(4)), "bias": pullback.zeros(2), "step": 0}
        dcp.load(state, checkpoint_id=folder)
        assert state["weight"].full_tensor().tolist() == [0.5] * 4
        assert (state["bias"].tolist(), state["step"]) == ([0.5, 0.5], 3)


def check_a_rank_that_cannot_load_fails_on_all() -> None:
    with shared_folder() as folder:
        dcp.save({"weight": pullback.ones(4)}, checkpoint_id=folder)
        with pytest.raises(dcp.CheckpointException, match="rank 1: ValueError: Size mismatch between saved"):
            dcp.load({"weight": pullback.ones(4 + RANK)}, checkpoint_id=folder)


def check_a_state_is_saved_in_a_thread_while_the_program_goes_on() -> None:
    with shared_folder() as folder:
        weight = pullback.ones(4)
        saved = dcp.async_save({"weight": divided(weight), "bias": weight}, checkpoint_id=folder)
        weight.zero_()
        dist.all_reduce(weight)
        saved.result(120)
        state = {"weight": pullback.zeros(4), "bias": pullback.zeros(4)}
        dcp.load(state, checkpoint_id=folder)
        assert pullback.equal(state["weight"], state["bias"])
        assert state["bias"].tolist() == [1.0] * 4


def check_another_process_writes_what_each_rank_holds() -> None:
    with shared_folder() as folder:
        weight = pullback.arange(4.0)
        saved = dcp.async_save(
            {"weight": divided(weight), "bias": weight}, checkpoint_id=folder,
            async_checkpointer_type=AsyncCheckpointerType.PROCESS,
        )  # fmt: skip
        dist.all_reduce(weight)
        saved.result(120)
        state = {"weight": pullback.zeros(4), "bias": pullback.zeros(4)}
        dcp.load(state, checkpoint_id=folder)
        assert state["weight"].tolist() == state["bias"].tolist() == [0.0, 1.0, 2.0, 3.0]


def check_ranks_write_safetensors_files_that_become_whole() -> None:
    with shared_folder() as folder:
        state = {"weight": divided(pullback.arange(6.0)), "bias": pullback.ones(2)}
        with pytest.raises(dcp.CheckpointException, match="several ranks have something to write"):
            dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(folder))
        dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(folder, save_distributed=True))
        loaded = {"weight": pullback.zeros(6), "bias": pullback.zeros(2)}
        dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(folder))
        assert (loaded["weight"].tolist(), loaded["bias"].tolist()) == ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0])
        dcp.save(
            state,
            storage_writer=dcp.HuggingFaceStorageWriter(folder, save_distributed=True, enable_consolidation=True),
        )
        whole = load_file(f"{folder}/model-00001-of-00001.safetensors")
        assert (whole["weight"].tolist(), whole["bias"].tolist()) == ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0])
