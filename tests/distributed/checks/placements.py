"""Tensors that lie on two ranks, and the ways from one placement to another."""

from __future__ import annotations

import os
from typing import Any

import pytest

import pullback
from pullback.distributed.tensor import (
    DeviceMesh,
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    init_device_mesh,
    ones,
    randn,
)

RANK = int(os.environ.get("RANK", 0))


def _mesh() -> DeviceMesh:
    return init_device_mesh("cpu", (2,))


def _whole(rows: int = 4) -> Any:
    return pullback.arange(rows * 3.0).reshape(rows, 3)


def _summand() -> Any:
    """Of a third of its multiples, what this rank adds."""
    return _whole() * (RANK + 1) / 3


def check_every_way_from_one_placement_to_another() -> None:
    sources: list[Any] = [Shard(0), Shard(1), Shard(-1), Replicate(), Partial()]
    for source in sources:
        for target in (Shard(0), Shard(1), Replicate()):
            here = (
                DTensor.from_local(_summand(), _mesh(), [source])
                if source == Partial()
                else distribute_tensor(_whole(), _mesh(), [source])
            )
            there = here.redistribute(placements=[target])
            assert there.placements == (target,)
            assert list(there.shape) == [4, 3]
            own = _whole()
            if isinstance(target, Shard):
                own = own.tensor_split([2], dim=target.dim)[RANK]
            assert pullback.allclose(there.to_local(), own), (source, target)
            assert pullback.allclose(there.full_tensor(), _whole()), (source, target)


def check_parts_of_different_sizes() -> None:
    divided = distribute_tensor(pullback.arange(5.0), _mesh(), [Shard(0)])
    assert divided.to_local().tolist() == ([0, 1, 2] if RANK == 0 else [3, 4])
    assert divided.full_tensor().tolist() == [0, 1, 2, 3, 4]
    local = pullback.arange(3.0 - RANK)
    again = DTensor.from_local(local, _mesh(), [Shard(0)], shape=pullback.Size([5]), stride=(1,))
    assert again.full_tensor().tolist() == [0, 1, 2, 0, 1]
    assert DTensor.from_local(pullback.ones(2), _mesh(), [Shard(0)]).shape == (4,)


def check_other_ways_of_joining() -> None:
    for name, expected in {"max": 2, "min": 1, "avg": 1.5}.items():
        mixed = DTensor.from_local(pullback.full((2,), RANK + 1.0), _mesh(), [Partial(name)])
        assert mixed.full_tensor().tolist() == [expected, expected]


def check_what_cannot_be_placed() -> None:
    divided = distribute_tensor(_whole(), _mesh(), [Shard(0)])
    with pytest.raises(
        RuntimeError, match=r"Can not redistribute from S\(0\) to P\(sum\), redistributing to Partial is"
    ):
        divided.redistribute(placements=[Partial()])
    with pytest.raises(ValueError, match=r"Found placements length: 2, and device_mesh\.ndim: 1"):
        distribute_tensor(_whole(), _mesh(), [Shard(0), Shard(1)])
    with pytest.raises(IndexError, match="Dimension out of range"):
        distribute_tensor(_whole(), _mesh(), [Shard(2)])
    with pytest.raises(RuntimeError, match="placements is needed"):
        divided.redistribute()
    with pytest.raises(RuntimeError, match="pass both shape and stride"):
        DTensor.from_local(_whole(), _mesh(), shape=pullback.Size([4, 3]))


def _gradient(source: Any, target: Any) -> list[Any]:
    """Of numbers that this rank multiplies and places, when what arrives has gradients that count up."""
    x = _whole().requires_grad_()
    arrived = DTensor.from_local(x * (RANK + 1), _mesh(), [source]).redistribute(placements=[target]).to_local()
    (arrived * pullback.arange(float(arrived.numel())).reshape(arrived.shape)).sum().backward()
    return [value / (RANK + 1) for value in x.grad.reshape(-1).tolist()]


def check_gradients_go_the_way_back() -> None:
    up = [float(n) for n in range(24)]
    assert _gradient(Shard(0), Replicate()) == (up[:12] if RANK == 0 else up[12:])
    assert _gradient(Partial(), Replicate()) == up[:12]
    assert _gradient(Partial(), Shard(0)) == up[:6] * 2
    assert _gradient(Replicate(), Shard(0)) == up[:6] * 2
    swapped = [[0, 1, 0, 2, 3, 1, 4, 5, 2, 6, 7, 3], [8, 9, 4, 10, 11, 5, 12, 13, 6, 14, 15, 7]]
    assert _gradient(Shard(0), Shard(1)) == swapped[RANK]


def check_gradients_that_lie_in_another_way() -> None:
    x = pullback.ones(2, requires_grad=True)
    DTensor.from_local(x, _mesh(), [Replicate()]).to_local(grad_placements=[Partial()]).sum().backward()
    assert x.grad.tolist() == [2, 2]


def check_leaves_get_gradients_that_lie_as_they_do() -> None:
    leaf: Any = distribute_tensor(_whole(), _mesh(), [Shard(0)]).requires_grad_()
    (leaf.to_local() * (RANK + 1)).sum().backward()
    assert isinstance(leaf.grad, DTensor)
    assert leaf.grad.placements == (Shard(0),)
    (leaf.full_tensor() * 2).sum().backward()
    assert leaf.grad.full_tensor()[:, 0].tolist() == [3, 3, 4, 4]
    leaf.grad = None
    leaf.redistribute(placements=[Shard(1)]).to_local().sum().backward()
    assert leaf.grad.to_local().tolist() == [[1, 1, 1], [1, 1, 1]]


def check_new_tensors() -> None:
    assert full((4, 3), 7.0, device_mesh=_mesh(), placements=[Shard(1)]).to_local().shape == (4, 2 - RANK)
    assert ones(5, device_mesh=_mesh(), placements=[Shard(0)]).full_tensor().tolist() == [1] * 5
    drawn = randn(2, 2, device_mesh=_mesh(), requires_grad=True)
    assert drawn.requires_grad
    assert drawn.placements == (Replicate(),)
    first = DTensor.from_local(drawn.detach().to_local(), _mesh(), [Replicate()], run_check=True)
    assert pullback.equal(first.to_local(), drawn.detach().to_local())  # all ranks have the same numbers


def check_modules_whose_parameters_are_placed() -> None:
    def divide(name: str, module: Any, mesh: DeviceMesh) -> None:
        if name == "0":
            module.weight = pullback.nn.Parameter(distribute_tensor(module.weight, mesh, [Shard(0)]))

    module = distribute_module(
        pullback.nn.Sequential(pullback.nn.Linear(2, 4), pullback.nn.BatchNorm1d(4)), _mesh(), divide,
        lambda part, inputs, mesh: (inputs[0] + mesh.size(),), lambda part, outputs, mesh: outputs * mesh.size(),
    )  # fmt: skip
    assert module[0].weight.placements == (Shard(0),)
    assert module[0].bias.placements == module[1].running_mean.placements == (Replicate(),)
    assert list(module.state_dict()["0.weight"].shape) == [4, 2]


def check_meshes_of_two_dimensions() -> None:
    for shape in ((2, 1), (1, 2)):
        mesh = init_device_mesh("cpu", shape)
        for placements in (
            [Shard(0), Shard(0)],
            [Shard(1), Shard(0)],
            [Replicate(), Shard(0)],
            [Shard(0), Replicate()],
        ):
            divided = distribute_tensor(_whole(5), mesh, placements)
            assert pullback.equal(divided.full_tensor(), _whole(5))
            turned = divided.redistribute(placements=placements[::-1])
            assert pullback.equal(turned.full_tensor(), _whole(5)), (shape, placements)
