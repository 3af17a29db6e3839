"""The files that are changed: one of every kind that can be loaded, all small."""

from __future__ import annotations

import io
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pullback
from pullback import jit, nn
from pullback.inspection import saved_graphs
from pullback.serialization import safetensors
from tests.serialization.crafted import tar_file


@dataclass(frozen=True)
class Kind:
    """A kind of file: its bytes, how it is loaded, and whether it is a zip archive."""

    content: bytes
    load: Callable[[bytes], Any]
    is_zip: bool = False
    is_compiled: bool = False
    """Whether Python text is made of what the file holds."""


def _load(content: bytes) -> Any:
    return pullback.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _load_program(content: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jit.load(io.BytesIO(content))


def _written(write: Callable[[Any], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _checkpoint() -> dict[str, Any]:
    pullback.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = pullback.optim.Adam(model.parameters())
    model(pullback.randn(5, 3)).sum().backward()
    optimizer.step()
    shared = pullback.arange(12.0)
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.25, "name": "run",
        "size": pullback.Size([2, 3]), "dtype": pullback.float16, "device": pullback.device("cpu"), "ids": {1, 2},
        "shared": [shared, shared[2:6], shared.view(3, 4).t()], "parameter": nn.Parameter(pullback.ones(2)),
        "conjugated": pullback.tensor([1 + 2j, 3j]).conj(), "history": OrderedDict(loss=[1.0, 0.5], steps=(1, 2)),
        "halves": pullback.ones(3, dtype=pullback.bfloat16), "flags": pullback.tensor([True, False]), "none": None,
    }  # fmt: skip


def real_files() -> dict[str, Kind]:
    """The files, by name."""
    checkpoint = _checkpoint()
    x, w = pullback.ones(3), pullback.arange(3.0).requires_grad_()
    loss = ((w * x).exp().view(3, 1)[1:].t() + w.sum()).tanh().mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = jit.trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (pullback.ones(1, 3),))
        program = _written(lambda file: jit.save(traced, file))
    tensors = {"a": pullback.ones(2, 3), "b": pullback.arange(4), "c": pullback.ones(2, dtype=pullback.bfloat16)}
    return {
        "zip": Kind(_written(lambda file: pullback.save(checkpoint, file)), _load, is_zip=True),
        "legacy": Kind(
            _written(lambda file: pullback.save(checkpoint, file, _use_new_zipfile_serialization=False)), _load
        ),
        "tar": Kind(tar_file(view=True).getvalue(), _load),
        "safetensors": Kind(safetensors.save(tensors, {"by": "me"}), safetensors.load),
        "program": Kind(program, _load_program, is_zip=True, is_compiled=True),
        "graph": Kind(
            _written(lambda file: saved_graphs.save_graph(loss, file, {"w": w})),
            lambda content: saved_graphs.load_graph(io.BytesIO(content)),
            is_zip=True,
        ),
    }
