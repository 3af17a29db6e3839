"""Checkpoints in a folder, with one process."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.distributed import checkpoint as dcp
from pullback.distributed.checkpoint import filesystem
from pullback.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp


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
        reader.read_piece(filesystem._StorageInfo("../other", 0, 10))


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
    saved.result(20)
    loaded = state(0.0)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert repr(loaded) == repr(state(2.0))
