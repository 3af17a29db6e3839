"""Exchanging tensors, and the switches for how modules replace their parameters."""

from __future__ import annotations

import pytest

import pullback
from pullback import nn
from pullback.utils import swap_tensors


def test_swapped_tensors_exchange_everything() -> None:
    parameter, plain = nn.Parameter(pullback.ones(2)), pullback.zeros(3)
    plain.note = "plain"  # type: ignore[attr-defined]  # users set attributes
    swap_tensors(parameter, plain)
    assert type(parameter) is pullback.Tensor
    assert (parameter.tolist(), parameter.note, parameter.requires_grad) == ([0.0, 0.0, 0.0], "plain", False)
    assert isinstance(plain, nn.Parameter)
    assert (plain.tolist(), plain.requires_grad) == ([1.0, 1.0], True)


def test_a_leaf_whose_graph_is_held_is_not_swapped() -> None:
    x = pullback.ones(2, requires_grad=True)
    held = x * 2
    with pytest.raises(RuntimeError, match="graph is still held"):
        swap_tensors(x, pullback.zeros(2))
    assert held.requires_grad


@pytest.mark.parametrize("overwrites", [False, True])
def test_conversion_makes_new_parameters_only_if_asked(overwrites: bool) -> None:
    layer = nn.Linear(2, 1)
    before = layer.weight
    pullback.__future__.set_overwrite_module_params_on_conversion(overwrites)
    try:
        layer.double()
    finally:
        pullback.__future__.set_overwrite_module_params_on_conversion(False)
    assert (layer.weight is before) == (not overwrites)
    assert layer.weight.dtype is pullback.float64
