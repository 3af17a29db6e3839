"""nn.parallel on two GPUs: scatter, gather, replicate, parallel_apply and DataParallel."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.nn.parallel import comm, data_parallel, gather, parallel_apply, replicate, scatter
from pullback.nn.parallel.scatter_gather import scatter_kwargs

pytestmark = pytest.mark.skipif(pullback.cuda.device_count() < 2, reason="there are no two GPUs")
FIRST, SECOND = pullback.device("cuda", 0), pullback.device("cuda", 1)
Pair = namedtuple("Pair", "a b")


def numbers(*shape: int) -> Any:
    count = int(np.prod(shape))
    return pullback.linspace(-1, 1, count).view(shape).cuda(0)


def test_scatter_splits_tensors_and_repeats_the_rest() -> None:
    rows = scatter((numbers(3, 2), {"x": numbers(4, 1), "n": 5}, Pair(numbers(2, 2), "b"), []), [0, 1])
    assert [row[0].device for row in rows] == [FIRST, SECOND]
    assert [list(row[0].shape) for row in rows] == [[2, 2], [1, 2]]
    assert [row[1]["x"].device for row in rows] == [FIRST, SECOND]
    assert [row[1]["n"] for row in rows] == [5, 5]
    assert isinstance(rows[1][2], Pair)
    assert rows[1][2].b == "b"
    assert rows[0][3] == []
    inputs, kwargs = scatter_kwargs((numbers(2, 2),), None, [0, 1])
    assert len(inputs) == len(kwargs) == 2
    assert kwargs[1] == {}


def test_gradients_of_scatter_are_gathered() -> None:
    x = numbers(4, 2).requires_grad_()
    a, b = scatter(x, [0, 1])
    assert a.grad_fn.name() == "ScatterBackward"
    (a.sum().to("cuda:1") + (b * 2).sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]


def test_gather_joins_what_lies_alike() -> None:
    rows = [numbers(2, 2).requires_grad_(), numbers(1, 2).to("cuda:1").requires_grad_()]
    joined = gather(rows, 1)
    assert joined.device == SECOND
    assert joined.shape == (3, 2)
    assert joined.grad_fn.name() == "GatherBackward"
    (joined * numbers(3, 2).cuda(1)).sum().backward()
    assert rows[0].grad.device == FIRST
    assert rows[0].grad.tolist() == numbers(3, 2)[:2].tolist()
    assert rows[1].grad.tolist() == numbers(3, 2)[2:].tolist()
    packed = [{"x": (row, None)} for row in rows]
    assert gather(packed, "cpu")["x"][0].device.type == "cpu"
    assert gather(packed, 0)["x"][1] is None
    assert isinstance(gather([Pair(*rows), Pair(*rows)], 0), Pair)
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        gather([{}, {"x": rows[0]}], 0)
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        gather([pullback.ones(2)], 0)


def test_gather_makes_a_vector_of_numbers() -> None:
    losses = [pullback.tensor(float(n), device=f"cuda:{n}", requires_grad=True) for n in (0, 1)]
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        joined = gather(losses, 0)
    assert joined.tolist() == [0.0, 1.0]
    (joined * pullback.tensor([2.0, 3.0]).cuda()).sum().backward()
    assert [loss.grad.item() for loss in losses] == [2.0, 3.0]


class Shared(nn.Module):
    """A module with a child that is there twice, a buffer, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.again = self.layer
        self.scale = nn.Parameter(pullback.tensor(2.0))
        self.register_buffer("shift", pullback.tensor(0.5))
        self.places: list[Any] = []

    def forward(self, x: Any, factor: float = 1.0) -> Any:
        self.places.append((x.device, pullback.cuda.current_device()))
        return self.again(self.layer(x).tanh()) * self.scale * factor + self.shift


def test_replicas_share_nothing_but_gradients() -> None:
    net = Shared().cuda()
    replicas = replicate(net, [0, 1])
    assert replicas[1].layer is replicas[1].again
    assert replicas[1].layer.weight.device == SECOND
    assert replicas[1].scale.grad_fn.name() == "BroadcastBackward"
    assert replicas[1].shift.device == SECOND
    assert list(replicas[1].parameters()) == []
    (replicas[0].scale.to("cuda:1") + replicas[1].scale * 3).backward()
    assert net.scale.grad.item() == 4.0
    assert replicate(net, [0, 1], detach=True)[1].scale.grad_fn is None


def test_modules_run_side_by_side_on_their_gpus() -> None:
    layers = [nn.Linear(2, 1).to(place) for place in (FIRST, SECOND)]
    inputs = [(pullback.ones(3, 2, device=place),) for place in (FIRST, SECOND)]
    with pullback.no_grad():
        results = parallel_apply(layers, inputs, devices=[0, 1])
        assert [result.device for result in results] == [FIRST, SECOND]
        assert not any(result.requires_grad for result in results)
    for layer, given, result in zip(layers, inputs, parallel_apply(layers, inputs), strict=True):
        assert result.tolist() == layer(*given).tolist()
    with pytest.raises(RuntimeError, match=r"(?s)Caught RuntimeError in replica 1 on device cuda:1.*mat1 and mat2"):
        parallel_apply(layers, [inputs[0], (pullback.ones(3, 5, device=SECOND),)])


def test_data_parallel_has_the_values_and_gradients_of_the_module() -> None:
    pullback.manual_seed(0)
    net = Shared().cuda()
    x = numbers(5, 2)
    expected = net(x, factor=3.0)
    expected.square().sum().backward()
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    parallel = nn.DataParallel(net)
    assert parallel.device_ids == [0, 1]
    net.places.clear()
    actual = parallel(x, factor=3.0)
    assert sorted(str(place) for place, _ in net.places) == ["cuda:0", "cuda:1"]
    assert all(place.index == current for place, current in net.places)
    assert actual.device == FIRST
    np.testing.assert_allclose(actual.tolist(), expected.tolist(), rtol=1e-5)
    actual.square().sum().backward()
    for parameter, gradient in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(parameter.grad.tolist(), gradient.tolist(), rtol=1e-5, atol=1e-6)
    assert data_parallel(net, x, output_device=1).device == SECOND
    assert data_parallel(net, x, device_ids=[0]).device == FIRST
    assert data_parallel(net, x[:1]).shape == (1, 2)


def test_data_parallel_wants_the_module_on_the_first_gpu() -> None:
    parallel = nn.DataParallel(nn.Linear(2, 1).to("cuda:1"))
    with pytest.raises(
        RuntimeError, match=r"on device cuda:0 \(device_ids\[0\]\) but found one of them on device: cuda:1"
    ):
        parallel(numbers(4, 2))


def test_sums_and_copies() -> None:
    rows = [pullback.full((2,), 1.0 + n, device=f"cuda:{n}") for n in (0, 1)]
    assert comm.reduce_add(rows, 1).tolist() == [3.0, 3.0]
    assert comm.reduce_add(rows, 1).device == SECOND
    assert comm.reduce_add_coalesced([rows[:1] * 2, rows[1:] * 2])[1].tolist() == [3.0, 3.0]
    copies = comm.broadcast(rows[0], [0, 1])
    assert copies[0] is rows[0]
    assert copies[1].device == SECOND
    parts = comm.scatter(numbers(3, 1), [0, 1], chunk_sizes=[1, 2])
    assert [part.shape[0] for part in parts] == [1, 2]
    assert comm.gather(parts, destination="cpu").device.type == "cpu"
    with pytest.raises(AssertionError, match="reduce_add expects all inputs to be on GPUs, but input 0 is on CPU"):
        comm.reduce_add([pullback.ones(2)] * 2)
