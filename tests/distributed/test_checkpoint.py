"""Checkpoints in a folder, with one process."""

from __future__ import annotations

import concurrent.futures
import io
import json
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.distributed import checkpoint as dcp
from pullback.distributed.checkpoint import filesystem, state_dict_saver
from pullback.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from pullback.distributed.checkpoint.metadata import Metadata, MetadataIndex
from pullback.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, WriteItemType
from pullback.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from pullback.distributed.checkpoint.storage import WriteResult
from pullback.futures import Future
from pullback.serialization import safetensors


def state(factor: float = 1.0) -> dict[str, Any]:
    return {
        "model": {"weight": pullback.arange(6.0).reshape(2, 3) * factor, "none": pullback.ones(0, 2)},
        "optimizer": {
            "state": {0: {"mean": pullback.full((2,), factor, dtype=pullback.bfloat16)}},
            "param_groups": [{"lr": factor, "params": [0]}],
        },
        "step": int(factor),
    }


def test_a_state_comes_back_in_place(tmp_path: Path) -> None:
    dcp.save(state(3.0), checkpoint_id=tmp_path)
    loaded = state(0.0)
    weight = loaded["model"]["weight"]
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert loaded["model"]["weight"] is weight
    assert repr(loaded) == repr(state(3.0))


def test_parameters_that_require_grad_are_written_to(tmp_path: Path) -> None:
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    dcp.save({"model": model}, checkpoint_id=tmp_path)  # a module is asked for its state
    dcp.load({"model": other}, checkpoint_id=tmp_path)
    assert pullback.equal(model.weight, other.weight)
    assert other.weight.is_leaf
    assert other.weight.requires_grad


def test_a_second_checkpoint_replaces_the_first(tmp_path: Path) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    dcp.save(state(2.0), checkpoint_id=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".metadata", "__0_1.distcp"]
    with pytest.raises(dcp.CheckpointException, match="overwrite is False"):
        dcp.save(state(3.0), storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    loaded = state(0.0)
    dcp.load(loaded, storage_reader=dcp.FileSystemReader(tmp_path))
    assert loaded["step"] == 2


@pytest.mark.parametrize("place", ["save", "dump"])
def test_a_save_that_fails_leaves_the_former_checkpoint(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)

    def fail(*arguments: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(filesystem, place, fail)
    with pytest.raises(dcp.CheckpointException, match="rank 0: OSError: No space left"):
        dcp.save(state(2.0), checkpoint_id=tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".metadata", "__0_0.distcp"]
    loaded = state(0.0)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert repr(loaded) == repr(state(1.0))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"other": pullback.zeros(1)}, "Missing key in checkpoint state_dict: other"),
        ({"step": pullback.zeros(1)}, "step was saved as BytesStorageMetadata, and the state has a Tensor"),
        ({"model": {"weight": pullback.zeros(3, 2)}}, "Size mismatch between saved .* for model.weight"),
    ],
)
def test_what_does_not_fit_is_named_before_anything_changes(wanted: dict[str, Any], said: str, tmp_path: Path) -> None:
    dcp.save(state(3.0), checkpoint_id=tmp_path)
    first = {"optimizer": state(0.0)["optimizer"], **wanted}
    with pytest.raises(dcp.CheckpointException, match=said):
        dcp.load(first, checkpoint_id=tmp_path)
    assert first["optimizer"]["state"][0]["mean"].tolist() == [0.0, 0.0]


def test_a_part_of_a_state_can_be_loaded(tmp_path: Path) -> None:
    dcp.save({"old": pullback.ones(2)}, checkpoint_id=tmp_path)
    wanted = {"old": pullback.zeros(2), "new": pullback.zeros(2)}
    dcp.load(wanted, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert (wanted["old"].tolist(), wanted["new"].tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_a_folder_or_a_reader_is_needed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.load({})
    with pytest.raises(dcp.CheckpointException, match="metadata is None: there is no checkpoint in"):
        dcp.load({}, checkpoint_id=tmp_path)


class _Code:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made",)


def test_no_code_runs_from_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".metadata").write_bytes(pickle.dumps(_Code()))
    with pytest.raises(dcp.CheckpointException, match="UnpicklingError"):
        dcp.load({}, checkpoint_id=tmp_path)
    assert os.listdir(tmp_path) == [".metadata"]


def test_a_piece_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    reader = dcp.FileSystemReader(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="a file outside of its folder"):
        reader._read(filesystem._StorageInfo("../other", 0, 10))


def test_a_folder_becomes_a_file_and_back(tmp_path: Path) -> None:
    dcp.save(state(3.0), checkpoint_id=tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "model.pt")
    whole = pullback.load(tmp_path / "model.pt")
    assert pullback.equal(whole["model"]["weight"], state(3.0)["model"]["weight"])
    assert whole["optimizer"]["param_groups"] == [{"lr": 3.0, "params": [0]}]
    torch_save_to_dcp(tmp_path / "model.pt", tmp_path / "again")
    loaded = state(0.0)
    dcp.load(loaded, checkpoint_id=tmp_path / "again")
    assert repr(loaded) == repr(state(3.0))


def test_a_state_is_copied_before_it_is_saved_in_a_thread(tmp_path: Path) -> None:
    given = state(2.0)
    saved = dcp.async_save(given, checkpoint_id=tmp_path)
    given["model"]["weight"].zero_()
    saved.result(300)
    loaded = state(0.0)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert repr(loaded) == repr(state(2.0))


class Doubling(dcp.DefaultSavePlanner):
    """Writes twice of every tensor."""

    def transform_object(self, write_item: dcp.WriteItem, object: Any) -> Any:
        value = super().transform_object(write_item, object)
        return value if write_item.type is WriteItemType.BYTE_IO else value * 2


class Renaming(dcp.DefaultLoadPlanner):
    """Reads what was saved as `model` into `net`, and notes what came."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: list[tuple[str, list[int]]] = []

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        renamed = {"model" if name == "net" else name: value for name, value in state_dict.items()}
        super().set_up_planner(renamed, metadata, is_coordinator)

    def commit_tensor(self, read_item: dcp.ReadItem, tensor: Any) -> None:
        self.filled.append((read_item.dest_index.fqn, list(read_item.lengths)))


def test_planners_change_what_is_written_and_where_it_is_read_to(tmp_path: Path) -> None:
    dcp.save({"model": {"weight": pullback.ones(2, 3)}, "step": 1}, checkpoint_id=tmp_path, planner=Doubling())
    loaded = {"net": {"weight": pullback.zeros(2, 3)}}
    planner = Renaming()
    dcp.load(loaded, checkpoint_id=tmp_path, planner=planner)
    assert loaded["net"]["weight"].tolist() == [[2.0] * 3] * 2
    assert planner.filled == [("model.weight", [2, 3])]


def test_a_state_that_is_not_taken_apart_is_saved_by_its_entries(tmp_path: Path) -> None:
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    found = dcp.save({"a": pullback.ones(2), "b": {"c": 1}}, checkpoint_id=tmp_path, planner=planner)
    assert (list(found.state_dict_metadata), found.planner_data) == (["a", "b"], None)
    loaded = {"a": pullback.zeros(2), "b": {"c": 0}}
    dcp.load(loaded, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(flatten_state_dict=False))
    assert repr(loaded) == "{'a': tensor([1., 1.]), 'b': {'c': 1}}"


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class Memory(dcp.StorageWriter, dcp.StorageReader):
    """A storage of one's own, as programs write one: it keeps pieces in memory."""

    def __init__(self) -> None:
        self.pieces: dict[MetadataIndex, Any] = {}
        self.calls: list[Any] = []

    def reset(self, checkpoint_id: Any = None) -> None:
        self.calls.append(("reset", checkpoint_id))

    def set_up_storage_writer(self, is_coordinator: bool) -> None:  # as older programs have it
        self.calls.append(("writer", is_coordinator))

    def prepare_local_plan(self, plan: Any) -> Any:
        self.calls.append((type(plan).__name__, len(plan.items)))
        return plan

    def prepare_global_plan(self, plans: Any) -> Any:
        self.calls.append(("plans", len(plans)))
        return plans

    def write_data(self, plan: dcp.SavePlan, planner: dcp.SavePlanner) -> Future[list[WriteResult]]:
        for item in plan.items:
            value = planner.resolve_data(item)
            self.pieces[item.index] = value.getvalue() if item.type is WriteItemType.BYTE_IO else value.clone()
        return done([WriteResult(item.index, 0, "memory") for item in plan.items])

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        self.metadata = metadata
        self.calls.append([result.index.fqn for result in results[0]])

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return self.metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.calls.append(("reader", is_coordinator))

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        for item in plan.items:
            piece = self.pieces[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(piece))
            else:
                planner.resolve_tensor(item).copy_(piece)
        return done(None)


def test_a_storage_of_ones_own_keeps_a_checkpoint() -> None:
    memory = Memory()
    dcp.save({"weight": pullback.ones(2), "step": 3}, storage_writer=memory)
    loaded = {"weight": pullback.zeros(2), "step": 0}
    dcp.load(loaded, storage_reader=memory, checkpoint_id="there")
    assert repr(loaded) == "{'weight': tensor([1., 1.]), 'step': 3}"
    assert memory.calls == [
        ("writer", True), ("SavePlan", 2), ("plans", 1), ["weight", "step"],
        ("reset", "there"), ("reader", True), ("LoadPlan", 2), ("plans", 1),
    ]  # fmt: skip


def test_a_thread_saves_with_the_programs_own_planner_storage_and_copy() -> None:
    memory = Memory()
    weight = pullback.ones(2)
    saved = dcp.async_save({"weight": weight}, storage_writer=memory, planner=Doubling())
    saved.result(300)
    assert memory.pieces[MetadataIndex("weight", [0])].tolist() == [2.0, 2.0]

    class Stager:
        def stage(self, state: dict[str, Any]) -> concurrent.futures.Future[dict[str, Any]]:
            copied: concurrent.futures.Future[dict[str, Any]] = concurrent.futures.Future()
            copied.set_result({"weight": state["weight"] + 4})
            return copied

    answer = dcp.async_save({"weight": weight}, storage_writer=memory, async_stager=Stager())
    assert answer.staging_completion.done()
    answer.upload_completion.result(300)
    assert memory.pieces[MetadataIndex("weight", [0])].tolist() == [5.0, 5.0]


def test_folders_of_a_writer_can_change_and_are_recognised(tmp_path: Path) -> None:
    writer = dcp.FileSystemWriter(tmp_path / "first")
    dcp.save({"step": 1}, storage_writer=writer, checkpoint_id=tmp_path / "second")
    assert [path.name for path in tmp_path.iterdir()] == ["second"]
    assert dcp.FileSystemReader.validate_checkpoint_id(tmp_path / "second")
    assert not dcp.FileSystemWriter.validate_checkpoint_id("s3://bucket/run")


# safetensors, and a process that writes.


def test_safetensors_files_hold_a_state_and_are_exchanged_as_a_whole(tmp_path: Path) -> None:
    first = {"layer": {"weight": pullback.arange(6.0).reshape(2, 3)}, "bias": pullback.ones(3, dtype=pullback.bfloat16)}
    dcp.save(first, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path, {"layer.weight": 1, "bias": 2}))
    assert sorted(os.listdir(tmp_path)) == [
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json",
    ]  # fmt: skip
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index == {
        "metadata": {"total_size": 30},
        "weight_map": {"layer.weight": "model-00001-of-00002.safetensors", "bias": "model-00002-of-00002.safetensors"},
    }
    dcp.save({"bias": pullback.ones(3)}, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["model-00001-of-00001.safetensors", "model.safetensors.index.json"]
    loaded = {"bias": pullback.zeros(3)}
    dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(tmp_path))
    assert loaded["bias"].tolist() == [1.0, 1.0, 1.0]


def test_parts_in_several_safetensors_files_make_a_tensor(tmp_path: Path) -> None:
    for rank in (0, 1):
        texts = {"DCP_SHARDING_INFO": json.dumps({"weight": {"saved_offsets": [2 * rank]}})}
        part = {"weight": pullback.tensor([1.0, 2.0]) + 2 * rank}
        safetensors.save_file(part, tmp_path / f"shard-0000{rank + 1}-model-00001-of-00001.safetensors", texts)
    loaded = {"weight": pullback.zeros(4)}
    dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(tmp_path))
    assert loaded["weight"].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_what_is_not_a_tensor_is_refused_for_safetensors(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match="step is not a tensor, and safetensors files hold tensors alone"):
        dcp.save({"step": 3}, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="there is no checkpoint in"):
        dcp.load({"weight": pullback.ones(1)}, storage_reader=dcp.HuggingFaceStorageReader(tmp_path))


def test_another_process_writes_while_the_program_goes_on(tmp_path: Path) -> None:
    given = state(2.0)
    saved = dcp.async_save(
        given, checkpoint_id=tmp_path / "whole", async_checkpointer_type=AsyncCheckpointerType.PROCESS
    )
    given["model"]["weight"].zero_()
    saved.result(300)
    loaded = state(0.0)
    dcp.load(loaded, checkpoint_id=tmp_path / "whole")
    assert repr(loaded) == repr(state(2.0))
    writer = dcp.FileSystemWriter(tmp_path / "gone")
    failing = dcp.async_save(
        {"weight": _Unreadable()}, storage_writer=writer, async_checkpointer_type=AsyncCheckpointerType.PROCESS
    )
    with pytest.raises(dcp.CheckpointException, match="cannot be packed"):
        failing.result(300)
    process = state_dict_saver._Background.process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process._process.wait(60)
    again = dcp.async_save(
        state(3.0), checkpoint_id=tmp_path / "again", async_checkpointer_type=AsyncCheckpointerType.PROCESS
    )
    again.result(300)
    dcp.load(loaded, checkpoint_id=tmp_path / "again")
    assert repr(loaded) == repr(state(3.0))


class _Unreadable:
    def __reduce__(self) -> Any:
        raise ValueError("cannot be packed")
