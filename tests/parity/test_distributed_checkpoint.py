"""Folders that `torch.distributed.checkpoint` of one library wrote, read by the other."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest

import pullback

torch: Any = pytest.importorskip("torch")


def state(library: Any, factor: float) -> dict[str, Any]:
    return {
        "model": {
            "weight": library.arange(6.0).reshape(2, 3) * factor,
            "half": library.full((3,), factor, dtype=library.bfloat16),
            "count": library.tensor(int(factor)),
        },
        "optimizer": {
            "state": {0: {"mean": library.ones(2) * factor}},
            "param_groups": [{"lr": factor, "params": [0]}],
        },
        "step": int(factor),
    }


@pytest.mark.parametrize(("writer", "reader"), [(pullback, torch), (torch, pullback)], ids=["ours", "PyTorch's"])
def test_each_reads_what_the_other_wrote(writer: Any, reader: Any, tmp_path: Path) -> None:
    loaded = state(reader, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's of being alone
        _checkpoints(writer).save(state(writer, 3.0), checkpoint_id=str(tmp_path))
        _checkpoints(reader).load(loaded, checkpoint_id=str(tmp_path))
    assert _plain(loaded) == _plain(state(reader, 3.0))


@pytest.mark.parametrize("save_distributed", [False, True])
@pytest.mark.parametrize(("writer", "reader"), [(pullback, torch), (torch, pullback)], ids=["ours", "PyTorch's"])
def test_each_reads_safetensors_files_of_the_other(
    writer: Any, reader: Any, save_distributed: bool, tmp_path: Path
) -> None:
    pytest.importorskip("safetensors")
    made, loaded = state(writer, 3.0)["model"], state(reader, 0.0)["model"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = _checkpoints(writer).HuggingFaceStorageWriter(
            path=str(tmp_path),
            fqn_to_index_mapping={"weight": 1, "half": 2, "count": 2},
            save_distributed=save_distributed,
        )
        _checkpoints(writer).save(made, storage_writer=storage)
        _checkpoints(reader).load(loaded, storage_reader=_checkpoints(reader).HuggingFaceStorageReader(str(tmp_path)))
    assert _plain(loaded) == _plain(state(reader, 3.0)["model"])


def _checkpoints(library: Any) -> Any:

    return importlib.import_module(f"{library.__name__}.distributed.checkpoint")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value
