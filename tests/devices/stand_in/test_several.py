"""Programs for two GPUs: where tensors lie, what runs where, who waits for whom, and what does not mix."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
import pytest

import pullback
import pullback.nn.functional as F
from pullback import nn
from pullback.utils.checkpoint import checkpoint
from tests.devices.stand_in.watch import Watch, watched

FIRST, SECOND = pullback.device("cuda", 0), pullback.device("cuda", 1)


@pytest.fixture(autouse=True)
def in_order() -> Iterator[Watch]:
    """Every program here is watched, and must leave the first GPU current."""
    with watched() as watch:
        yield watch
        assert watch.wrong == []
    assert pullback.cuda.current_device() == 0


def begin(x: Any) -> None:
    """Launch what a tensor was put off for; the host does not wait."""
    assert x._array.raw is not None


def test_the_stand_in_refuses_work_on_the_wrong_gpu() -> None:
    x = pullback.ones(3, device="cuda:1")
    with pytest.raises(cupy.WrongDevice, match="of GPU 1 is used while GPU 0 is current"):
        cupy.exp(x._array.raw)


def test_the_watch_finds_what_was_not_waited_for(in_order: Watch) -> None:
    side = pullback.cuda.Stream(1)
    x = pullback.ones(3, device="cuda:1") * 2
    begin(x)
    with pullback.cuda.stream(side):
        begin(x * 3)
    assert in_order.wrong
    assert "reads what may not be made yet" in in_order.wrong[0]
    in_order.wrong.clear()
    del x
    assert "gets memory back that may still be read" in in_order.wrong[0]
    in_order.wrong.clear()


def test_tensors_are_made_where_they_are_asked_for() -> None:
    for device in ("cuda:1", SECOND, 1):
        x = pullback.ones(2, device=device)
        assert x.device == SECOND
        assert x.get_device() == 1
        assert str(x) == "tensor([1., 1.], device='cuda:1')"
    assert pullback.zeros_like(x).device == SECOND
    assert x.new_full((2,), 3.0).device == SECOND
    assert pullback.ones(2).cuda(1).device == SECOND
    assert pullback.ones(2).cuda().device == FIRST
    assert pullback.tensor([1.0], device="cuda").device == FIRST
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        pullback.ones(2, device="cuda:2")


def test_the_current_gpu_is_where_new_tensors_go() -> None:
    assert pullback.cuda.device_count() == 2
    with pullback.cuda.device(1):
        assert pullback.cuda.current_device() == 1
        assert pullback.ones(2, device="cuda").device == SECOND
        with pullback.cuda.device("cuda:0"):
            assert pullback.ones(2).cuda().device == FIRST
        with pullback.cuda.device(-1):
            assert pullback.cuda.current_device() == 1
    pullback.cuda.set_device("cuda:1")
    assert pullback.arange(3, device="cuda").device == SECOND
    pullback.cuda.set_device(0)
    with pullback.cuda.device_of(pullback.ones(1, device="cuda:1")):
        assert pullback.cuda.current_device() == 1
    with pullback.device("cuda:1"):
        assert pullback.rand(2).device == SECOND
        assert pullback.cuda.current_device() == 0


def test_work_follows_its_tensors_and_not_the_current_gpu() -> None:
    x = pullback.arange(6.0, device="cuda:1").view(2, 3)
    y = (x * 2 + 1).exp().log().T
    assert y.device == SECOND
    assert y.sum(0).tolist() == [9.0, 27.0]
    assert (x @ x.T).softmax(-1).device == SECOND
    assert pullback.cat([x, x])[:, 1:].device == SECOND
    assert x[x > 2].tolist() == [3.0, 4.0, 5.0]
    x[0] = 7.0
    x += 1
    assert x.tolist() == [[8.0] * 3, [4.0, 5.0, 6.0]]
    assert x.max().item() == 8.0
    assert (x._array + 1).place == SECOND


@pytest.mark.parametrize("call", [
    lambda a, b: a + b,
    lambda a, b: a @ b,
    lambda a, b: a.add_(b),
    lambda a, b: pullback.cat([a, b]),
    lambda a, b: F.linear(a, b),
    lambda a, b: pullback.where(a > 0, a, b),
    lambda a, b: a * b.sum(),
])  # fmt: skip
def test_tensors_of_two_gpus_do_not_mix(call: Any) -> None:
    words = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
    with pytest.raises(RuntimeError, match=words):
        call(pullback.ones(2, 2, device="cuda:0"), pullback.ones(2, 2, device="cuda:1"))


def test_numbers_of_the_cpu_meet_every_gpu() -> None:
    x = pullback.ones(2, device="cuda:1") * pullback.tensor(3.0)
    assert x.device == SECOND
    assert x.tolist() == [3.0, 3.0]


def test_copies_between_gpus_keep_values_layout_and_history() -> None:
    x = pullback.arange(24.0, device="cuda:0").view(2, 3, 4).permute(2, 0, 1).requires_grad_()
    y = x.to("cuda:1")
    assert y.device == SECOND
    assert y.stride() == x.stride()
    assert y.tolist() == x.tolist()
    assert y.grad_fn.name() == "ToCopyBackward0"
    (y * y).sum().backward()
    assert x.grad.device == FIRST
    assert x.grad.tolist() == (2 * x).tolist()
    z = pullback.zeros(4, 2, 3, device="cuda:1")
    z.copy_(x.detach())
    assert z.tolist() == x.tolist()
    assert x.detach()[::2].cuda(1).tolist() == x[::2].tolist()
    assert x.to("cuda:0") is x


def test_copies_do_not_go_by_way_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy, "asnumpy", lambda *args, **options: pytest.fail("the host was asked"))
    assert pullback.ones(3, device="cuda:0").to("cuda:1").device == SECOND


def test_calls_that_wait_wait_for_one_gpu_at_a_time() -> None:
    x, y = pullback.ones(4, device="cuda:0"), pullback.ones(4, device="cuda:1")
    for _ in range(3):
        a, b = x * 2, y * 3
        c, d = a + 1, b + 1
        assert c.device == FIRST
        assert d.device == SECOND
        assert (c * 2).tolist() == [6.0] * 4
        assert (d * 2).tolist() == [8.0] * 4
    before = len(cupy.cuda.launches)
    e = (x * 5).exp()
    assert e.device == FIRST
    assert len(cupy.cuda.launches) == before, "the question where it lies launches nothing"


class TwoStages(nn.Module):
    """A model whose halves lie on two GPUs."""

    def __init__(self, places: list[Any]) -> None:
        super().__init__()
        pullback.manual_seed(0)
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
        self.first.to(places[0])
        self.second.to(places[1])
        self.place = places[1]

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).tanh().to(self.place))


@pytest.mark.parametrize("optimizer", [pullback.optim.SGD, pullback.optim.AdamW])
def test_a_model_on_two_gpus_trains_as_on_the_cpu(optimizer: Any) -> None:
    losses = []
    for places in (["cpu", "cpu"], ["cuda:0", "cuda:1"]):
        model = TwoStages(places)
        steps = optimizer(model.parameters(), lr=0.1)
        x = pullback.linspace(-1, 1, 15).view(5, 3).to(places[0])
        found = []
        for _ in range(3):
            steps.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            assert [p.grad.device for p in model.parameters()] == [p.device for p in model.parameters()]
            found.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
            steps.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_a_scaler_unscales_on_both_gpus() -> None:
    model = TwoStages(["cuda:0", "cuda:1"])
    steps, scaler = pullback.optim.SGD(model.parameters(), lr=0.1), pullback.amp.GradScaler("cuda", init_scale=8.0)
    scaler.scale(model(pullback.ones(2, 3, device="cuda:0")).sum()).backward()
    scaler.unscale_(steps)
    assert model.second.bias.grad.tolist() == [2.0, 2.0]
    model.first.bias.grad[0] = float("inf")
    before = model.second.bias.tolist()
    scaler._states.clear()
    scaler.step(steps)
    assert model.second.bias.tolist() == before


def test_hooks_checkpoints_second_derivatives_and_saved_tensors_cross_gpus() -> None:
    x = pullback.tensor([0.5, 1.0], device="cuda:0", requires_grad=True)

    def across(t: Any) -> Any:
        return (t.sin() * t).to("cuda:1") ** 2

    seen = []
    y = across(x)
    y.register_hook(lambda grad: seen.append(grad.device))
    y.sum().backward()
    expected, x.grad = x.grad.tolist(), None
    assert seen == [SECOND]
    checkpoint(across, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == expected
    x.grad = None
    with pullback.autograd.graph.save_on_cpu(pin_memory=True):
        y = across(x)
    y.sum().backward()
    assert x.grad.tolist() == expected
    (first,) = pullback.autograd.grad(across(x).sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), x)
    assert second.device == FIRST
    copy = x.detach().cpu().requires_grad_()
    (first,) = pullback.autograd.grad(((copy.sin() * copy) ** 2).sum(), copy, create_graph=True)
    np.testing.assert_allclose(second.tolist(), pullback.autograd.grad(first.sum(), copy)[0].tolist(), rtol=1e-5)
    tangent = pullback.func.jvp(across, (x.detach(),), (pullback.ones_like(x.detach()),))[1]
    assert tangent.device == SECOND


def test_a_gradient_of_another_gpu_is_refused() -> None:
    x = pullback.ones(2, device="cuda:1", requires_grad=True)
    with pytest.raises(RuntimeError, match="device"):
        x.backward(pullback.ones(2, device="cuda:0"))


def test_each_gpu_draws_from_its_own_generator() -> None:
    pullback.manual_seed(7)
    a, b = pullback.rand(4, device="cuda:0"), pullback.rand(4, device="cuda:1")
    assert a.tolist() == b.tolist()
    assert pullback.rand(4, device="cuda:1").tolist() != a.tolist()
    state = pullback.cuda.get_rng_state(1)
    c = pullback.randn(4, device="cuda:1")
    pullback.cuda.set_rng_state(state, "cuda:1")
    assert pullback.randn(4, device="cuda:1").tolist() == c.tolist()
    assert len(pullback.cuda.get_rng_state_all()) == 2
    with pullback.cuda.device(1):
        pullback.cuda.manual_seed(3)
        assert pullback.cuda.initial_seed() == 3
    assert pullback.cuda.initial_seed() == 7
    generator = pullback.Generator("cuda:1").manual_seed(7)
    assert generator.device == SECOND
    assert pullback.rand(4, device="cuda:1", generator=generator).tolist() == a.tolist()


def test_memory_is_counted_for_each_gpu() -> None:
    pullback.cuda.reset_peak_memory_stats(1)
    before = [pullback.cuda.memory_allocated(n) for n in (0, 1)]
    x = pullback.zeros(1 << 16, device="cuda:1")
    assert pullback.cuda.memory_allocated(1) - before[1] >= 1 << 18
    assert pullback.cuda.memory_allocated(0) == before[0]
    del x
    assert pullback.cuda.memory_allocated("cuda:1") == before[1]
    assert pullback.cuda.max_memory_allocated(1) - before[1] >= 1 << 18
    assert pullback.cuda.memory_reserved(1) > 0
    pullback.cuda.empty_cache()
    assert "cuda:1" in pullback.cuda.memory_summary(1)
    assert pullback.cuda.mem_get_info(1)[1] == pullback.cuda.get_device_properties(1).total_memory
    assert pullback.cuda.get_device_name(1) == "stand-in GPU 1"
    with pytest.raises(pullback.OutOfMemoryError, match="CUDA out of memory"):
        pullback.empty(1 << 30, device="cuda:1")
    assert pullback.ones(3, device="cuda:1").sum().item() == 3.0


def test_a_stream_belongs_to_a_gpu() -> None:
    side = pullback.cuda.Stream(device=1)
    assert side.device == SECOND
    with pullback.cuda.stream(side):
        assert pullback.cuda.current_device() == 1
        assert pullback.cuda.current_stream() == side
        assert pullback.cuda.current_stream(0) == pullback.cuda.default_stream(0)
    assert pullback.cuda.current_stream(1) == pullback.cuda.default_stream(1)
    event = side.record_event()
    pullback.cuda.current_stream(0).wait_event(event)
    with pytest.raises(RuntimeError, match="Event device 1 does not match recording stream's device 0"):
        event.record(pullback.cuda.current_stream(0))


def test_backward_runs_on_the_streams_of_both_gpus(in_order: Watch) -> None:
    sides = [pullback.cuda.Stream(device=n) for n in (0, 1)]
    x = pullback.linspace(0, 1, 4).to("cuda:0").requires_grad_()
    base = x * 1.0
    begin(base)
    sides[0].wait_stream(pullback.cuda.current_stream(0))
    with pullback.cuda.stream(sides[0]):
        y = base.exp()
        with pullback.cuda.stream(sides[1]):
            z = (y.to("cuda:1") * 2).sin()
    pullback.cuda.current_stream(1).wait_stream(sides[1])
    pullback.cuda.current_stream(0).wait_stream(sides[0])
    loss = (z * 3).sum()
    in_order.done.clear()
    loss.backward()
    names = {(n, side.cuda_stream) for n, side in enumerate(sides)}
    assert names <= set(in_order.done)
    expected = 6 * (2 * x.detach().exp()).cos() * x.detach().exp()
    np.testing.assert_allclose(x.grad.tolist(), expected.tolist(), rtol=1e-5)
    assert pullback.cuda.current_stream(1) == pullback.cuda.default_stream(1)


def test_threads_have_their_own_current_gpu() -> None:
    found = {}

    def compute(number: int) -> None:
        pullback.cuda.set_device(number)
        x = pullback.full((3,), number + 1.0, device="cuda", requires_grad=True)
        for _ in range(20):
            ((x * 2).exp() + 1).sum().backward()
        found[number] = (x.device.index, x.grad.tolist())

    threads = [threading.Thread(target=compute, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (0, 1):
        assert found[number][0] == number
        np.testing.assert_allclose(found[number][1], [40 * np.exp(2 * (number + 1.0))] * 3, rtol=1e-5)


def test_checkpoints_of_files_remember_the_gpu(tmp_path: Any) -> None:
    pullback.save({"x": pullback.arange(3.0, device="cuda:1")}, f"{tmp_path}/x.pt")
    assert pullback.load(f"{tmp_path}/x.pt")["x"].device == SECOND
    assert pullback.load(f"{tmp_path}/x.pt", map_location="cuda:0")["x"].device == FIRST
    assert pullback.load(f"{tmp_path}/x.pt", map_location={"cuda:1": "cuda:0"})["x"].device == FIRST
    assert pullback.load(f"{tmp_path}/x.pt", map_location="cpu")["x"].tolist() == [0.0, 1.0, 2.0]


def test_compiled_functions_run_where_their_tensors_lie() -> None:
    compiled = pullback.compile(lambda x: (x * 2 + 1).tanh().sum())
    for device in ("cuda:0", "cuda:1") * 4:
        x = pullback.linspace(0, 1, 4).to(device).requires_grad_()
        y = compiled(x)
        y.backward()
        assert y.device == x.grad.device == x.device
        np.testing.assert_allclose(x.grad.tolist(), (2 * (1 - (x * 2 + 1).tanh() ** 2)).tolist(), rtol=1e-5)
