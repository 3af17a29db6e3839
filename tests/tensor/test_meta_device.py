"""Tensors of the device "meta": a shape and a dtype without values."""

from __future__ import annotations

import copy

import pytest

import pullback
from pullback import nn


def test_a_block_makes_new_tensors_on_its_device() -> None:
    with pullback.device("meta"):
        made = [
            pullback.zeros(2),
            pullback.randn(2),
            pullback.tensor([1.0]),
            pullback.arange(3),
            nn.Linear(2, 3).weight,
        ]
        with pullback.device("cpu"):
            inner = pullback.ones(1)
        named = pullback.ones(1, device="cpu")
    assert [t.device.type for t in made] == ["meta"] * 5
    assert inner.is_cpu
    assert named.is_cpu
    assert pullback.ones(1).is_cpu


def test_nothing_is_drawn_for_tensors_without_values() -> None:
    pullback.manual_seed(0)
    expected = pullback.rand(2).tolist()
    pullback.manual_seed(0)
    with pullback.device("meta"):
        layer = nn.Linear(4, 4)
    nn.init.normal_(layer.weight)
    assert pullback.rand(2).tolist() == expected


def test_results_of_operations_are_on_the_device_of_their_inputs() -> None:
    x = pullback.empty(2, 3, device="meta")
    results = [x * 2, x @ x.T, x[0], x.reshape(-1), pullback.cat([x, x]), x.sum(), x.double(), x.detach(), x.clone()]
    assert all(result.is_meta for result in [*results, copy.deepcopy(x), pullback.zeros_like(x), x.new_ones(1)])


def test_a_tensor_without_values_is_printed_without_values() -> None:
    assert repr(pullback.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"


def test_values_cannot_be_copied_out_of_it() -> None:
    layer = nn.Linear(2, 2, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        layer.to("cpu")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        layer.weight.cpu()


def test_a_module_without_values_is_given_memory() -> None:
    layer = nn.Linear(2, 3).to("meta")
    assert layer.weight.is_meta
    layer.to_empty(device="cpu")
    assert layer.weight.is_cpu
    assert layer.weight.requires_grad


def test_loading_can_replace_parameters_without_values() -> None:
    layer = nn.Linear(1, 1, device="meta")
    layer.load_state_dict({"weight": pullback.ones(1, 1), "bias": pullback.ones(1)}, assign=True)
    assert layer(pullback.ones(1)).item() == 2.0


def test_the_default_device_is_set_for_the_thread() -> None:
    pullback.set_default_device("meta")
    try:
        assert pullback.get_default_device().type == "meta"
        assert pullback.zeros(1).is_meta
    finally:
        pullback.set_default_device("cpu")
    assert pullback.zeros(1).is_cpu


def test_its_values_cannot_be_read() -> None:
    x = pullback.ones(1, device="meta")
    for read in (x.item, lambda: bool(x), lambda: float(x), lambda: int(x.sum()), lambda: pullback.allclose(x, x)):
        with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
            read()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        x.tolist()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
