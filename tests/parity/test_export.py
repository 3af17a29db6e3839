"""Exported programs beside PyTorch's: the same inputs and outputs, and the same values."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")


def _model(module: Any) -> Any:
    nn = module.nn

    class Model(nn.Module):  # type: ignore[name-defined]  # the module is given at run time
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())
            self.shift = module.ones(4)

        def forward(self, x: Any, pair: Any, factor: float) -> Any:
            return self.layers(x) * factor + self.shift, [pair[0] + 1, pair[1]["b"]]

    return Model()


def _exported(module: Any) -> Any:
    args = (module.ones(2, 3), (module.zeros(2), {"b": module.ones(1)}), 2.0)
    return module.export.export(_model(module), args)


def test_signature_is_that_of_pytorch() -> None:
    ours, theirs = _exported(pullback).graph_signature, _exported(torch).graph_signature
    rows = [[(s.kind.name, s.arg.name, s.target, s.persistent) for s in spec.input_specs] for spec in (ours, theirs)]
    assert rows[0] == rows[1]
    for name in ("parameters", "buffers", "lifted_tensor_constants", "user_inputs", "inputs_to_parameters"):
        assert getattr(ours, name) == getattr(theirs, name)


def test_guards_are_those_of_pytorch() -> None:
    told = []
    for module in (pullback, torch):
        program = _exported(module).module()
        pair = (module.zeros(2), {"b": module.ones(1)})
        with pytest.raises(AssertionError) as error:
            program(module.ones(5, 3), pair, 2.0)
        told.append(str(error.value).split(":")[1].strip())
    assert told[0] == told[1]
