"""Layers divided among two ranks, beside the same layers whole."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.distributed.fsdp import fully_shard
from pullback.distributed.tensor import DeviceMesh, DTensor, Replicate, Shard, init_device_mesh
from pullback.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

RANK = int(os.environ.get("RANK", 0))


def _mesh() -> DeviceMesh:
    return init_device_mesh("cpu", (2,))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        return x + self.second(pullback.relu(self.first(self.norm(x))))


def _filled(module: Any) -> Any:
    with pullback.no_grad():
        for index, parameter in enumerate(module.parameters()):
            values = pullback.sin(pullback.arange(float(parameter.numel())) * (index + 1))
            parameter.copy_(values.reshape(parameter.shape))
    return module


def _input() -> Any:
    return pullback.cos(pullback.arange(16.0)).reshape(2, 2, 4)


def _whole(tensor: Any) -> Any:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _pass(module: Any, x: Any, whole: bool = True) -> list[Any]:
    """What comes out, and all gradients."""
    x = x.clone()
    if x.is_floating_point():
        x.requires_grad_()
    y = _whole(module(x)) if whole else module(x)
    (y * y).sum().backward()
    return [y.detach(), x.grad, *[_whole(parameter.grad) for parameter in module.parameters()]]


def _assert_same(actual: list[Any], expected: list[Any]) -> None:
    for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
        assert (a is None and b is None) or pullback.allclose(a, b, atol=1e-5), (index, a, b)


def check_a_divided_block_computes_what_the_whole_one_does() -> None:
    expected = _pass(_filled(Block()), _input())
    plan: dict[str, Any] = {"first": ColwiseParallel(), "second": RowwiseParallel()}
    module = parallelize_module(_filled(Block()), _mesh(), plan)
    assert module.first.weight.to_local().shape == (3, 4)
    assert module.second.weight.to_local().shape == (4, 3)
    assert module.second.bias.placements == (Replicate(),)
    _assert_same(_pass(module, _input()), expected)


def check_sequences_are_divided_between_blocks() -> None:
    y, x_grad, *grads = _pass(_filled(Block()), _input())
    plan: dict[str, Any] = {
        "norm": SequenceParallel(), "first": ColwiseParallel(input_layouts=Shard(1)),
        "second": RowwiseParallel(output_layouts=Shard(1)),
    }  # fmt: skip
    module = parallelize_module(_filled(Block()), _mesh(), plan)
    own = slice(RANK, RANK + 1)
    _assert_same(_pass(module, _input()[:, own], whole=False), [y[:, own], x_grad[:, own], *grads])


def check_every_style_of_one_layer() -> None:
    indices = pullback.tensor([[0, 4], [3, 1]])
    cases: list[tuple[Any, Any, Any]] = [
        (nn.Linear(4, 5), ColwiseParallel(output_layouts=Replicate()), _input()),
        (nn.Linear(4, 6), ColwiseParallel(use_local_output=False), _input()),
        (nn.Linear(4, 6), RowwiseParallel(input_layouts=Replicate()), _input()),
        (nn.Linear(4, 6), RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False), _input()),
        (nn.Linear(4, 6, bias=False), RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1), use_local_output=False), _input()),
        (nn.Embedding(5, 4), ColwiseParallel(output_layouts=Replicate()), indices),
        (nn.Embedding(5, 4, padding_idx=1), RowwiseParallel(input_layouts=Replicate()), indices),
        (nn.Embedding(5, 4, padding_idx=4), RowwiseParallel(input_layouts=Replicate()), indices),
    ]  # fmt: skip
    for layer, style, x in cases:
        expected = _pass(_filled(copy.deepcopy(layer)), x)
        _assert_same(_pass(parallelize_module(_filled(layer), _mesh(), style), x), expected)


def check_inputs_and_outputs_are_laid() -> None:
    layer = _filled(nn.Linear(4, 4))
    expected = layer(_input()).detach()
    own = _input()[:, RANK : RANK + 1]
    gathers = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_output=True)
    assert pullback.allclose(parallelize_module(copy.deepcopy(layer), _mesh(), gathers)(own), expected)
    by_name = PrepareModuleInput(
        input_kwarg_layouts={"input": Shard(1)},
        desired_input_kwarg_layouts={"input": Replicate()},
        use_local_output=True,
    )
    assert pullback.allclose(parallelize_module(copy.deepcopy(layer), _mesh(), by_name)(input=own), expected)
    divides = PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    divided = parallelize_module(copy.deepcopy(layer), _mesh(), divides)(_input())
    assert pullback.allclose(divided, expected[RANK : RANK + 1])
    both = PrepareModuleInputOutput(
        input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_input=True, output_layouts=Replicate(),
        desired_output_layouts=Shard(1),
    )  # fmt: skip
    assert pullback.allclose(parallelize_module(layer, _mesh(), both)(own), expected[:, RANK : RANK + 1])


def check_divided_layers_learn_as_whole_ones() -> None:
    modules = [_filled(Block()), _filled(Block())]
    plan: dict[str, Any] = {"first": ColwiseParallel(), "second": RowwiseParallel()}
    parallelize_module(modules[1], _mesh(), plan)
    for module in modules:
        optimizer = pullback.optim.AdamW(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            module(_input()).square().sum().backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
    _assert_same([_whole(p) for p in modules[1].parameters()], [p.detach() for p in modules[0].parameters()])


def check_plans_with_patterns() -> None:
    module = nn.ModuleDict({"a": Block(), "b": Block()})
    parallelize_module(module, _mesh(), {"*.first": ColwiseParallel(), "b.sec*": RowwiseParallel()})
    assert isinstance(module["a"].first.weight, DTensor)
    assert isinstance(module["b"].second.weight, DTensor)
    assert not isinstance(module["a"].second.weight, DTensor)
    with pytest.warns(UserWarning, match="Parallelize plan key 'lost' could not be resolved"):
        parallelize_module(module, _mesh(), {"lost": ColwiseParallel()})
    with pytest.warns(UserWarning, match="No parallelize_plan is provided"):
        parallelize_module(module, _mesh())


def check_what_cannot_be_divided() -> None:
    with pytest.raises(
        NotImplementedError, match=r"ColwiseParallel currently only support nn\.Linear and nn\.Embedding"
    ):
        parallelize_module(nn.Conv1d(2, 2, 1), _mesh(), ColwiseParallel())
    wrong: Any = {"first": 3}
    with pytest.raises(TypeError, match=r"Expect .*ParallelStyle.*<class 'int'> found"):
        parallelize_module(Block(), _mesh(), wrong)
    with pytest.raises(AssertionError, match="should have same length"):
        PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(), Shard(0)))
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("data", "layer"))
    divided = parallelize_module(nn.Linear(4, 4), mesh["layer"], ColwiseParallel())
    with pytest.raises(NotImplementedError, match="lie on another mesh"):
        fully_shard(divided, mesh=mesh["data"])
