"""torch.cuda as programs use it: moving, streams, events, memory, sharing with other libraries, mixed precision."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback.utils.checkpoint import checkpoint

cupy = pytest.importorskip("cupy")


def test_tensors_move_and_print() -> None:
    x = pullback.tensor([1.0, 2.0]).cuda()
    assert x.is_cuda
    assert x.device == pullback.device("cuda", 0)
    assert str(x) == "tensor([1., 2.], device='cuda:0')"
    assert x.cpu().tolist() == [1.0, 2.0]


def test_mixing_devices_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        pullback.ones(2, device="cuda") + pullback.ones(2)
    assert (pullback.ones(2, device="cuda") * pullback.tensor(2.0)).tolist() == [2.0, 2.0]


def test_memory_is_counted_and_out_of_memory_is_survived() -> None:
    pullback.cuda.reset_peak_memory_stats()
    before = pullback.cuda.memory_allocated()
    x = pullback.zeros(1 << 20, device="cuda")
    assert pullback.cuda.memory_allocated() - before >= 4 << 20
    del x
    assert pullback.cuda.memory_allocated() <= before + (1 << 20)
    assert pullback.cuda.max_memory_allocated() >= before + (4 << 20)
    with pytest.raises(pullback.OutOfMemoryError, match="CUDA out of memory"):
        pullback.empty(1 << 40, device="cuda")
    assert pullback.ones(3, device="cuda").sum().item() == 3.0


def test_streams_and_events() -> None:
    stream = pullback.cuda.Stream()
    start, end = (pullback.cuda.Event(enable_timing=True) for _ in range(2))
    x = pullback.ones(1000, 1000, device="cuda")
    stream.wait_stream(pullback.cuda.current_stream())
    start.record()
    with pullback.cuda.stream(stream):
        assert pullback.cuda.current_stream() == stream
        y = x @ x
    pullback.cuda.current_stream().wait_stream(stream)
    end.record()
    pullback.cuda.synchronize()
    assert y[0, 0].item() == 1000.0
    assert start.elapsed_time(end) > 0


def test_backward_runs_on_the_streams_of_forward() -> None:
    sides = [pullback.cuda.Stream() for _ in range(3)]
    seen = []

    def compute(streams: list[pullback.cuda.Stream]) -> list[float]:
        pullback.manual_seed(0)
        x = pullback.randn(700, 700, device="cuda", requires_grad=True)
        base = x * 0.05
        here, results = pullback.cuda.current_stream(), []
        for stream in streams:
            stream.wait_stream(here)
            with pullback.cuda.stream(stream):
                y = base
                for _ in range(6):
                    y = ((y @ base) * 0.3 + base).tanh()
                y.register_hook(lambda grad: seen.append(pullback.cuda.current_stream()))
                results.append(y)
        for stream in streams:
            here.wait_stream(stream)
        sum(results[1:], results[0]).sum().backward()
        assert pullback.cuda.current_stream() == here
        gradient = x.grad * 1
        return gradient.flatten()[::10001].tolist()

    expected = compute([pullback.cuda.current_stream()] * 3)
    for _ in range(5):
        seen.clear()
        assert compute(sides) == expected
        assert set(seen) == set(sides)


def test_memory_that_another_stream_uses_is_not_given_away() -> None:
    side, here = pullback.cuda.Stream(), pullback.cuda.current_stream()
    for _ in range(10):
        x = pullback.full((1 << 22,), 1.0, device="cuda")
        side.wait_stream(here)
        with pullback.cuda.stream(side):
            y = x
            for _ in range(20):
                y = (y.view(2048, 2048) @ y.view(2048, 2048)).flatten() / 2048
            z = x * y
        x.record_stream(side)
        del x
        others = [pullback.full((1 << 22,), float(n), device="cuda") for n in range(4)]
        here.wait_stream(side)
        assert z.sum().item() == 1 << 22, others


def test_memory_is_pinned_for_the_gpu() -> None:
    x = pullback.arange(12.0).reshape(3, 4).T
    y = x.pin_memory()
    assert y.is_pinned()
    assert not x.is_pinned()
    assert y.pin_memory() is y
    assert y.stride() == x.stride()
    assert y.cuda(non_blocking=True).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        y.cuda().pin_memory()
    (batch,) = pullback.utils.data.DataLoader([1.0, 2.0], batch_size=2, pin_memory=True)
    assert batch.is_pinned()


def network_and_input() -> tuple[pullback.nn.Module, pullback.Tensor]:
    pullback.manual_seed(0)
    layers = [m for _ in range(6) for m in (pullback.nn.Linear(512, 512), pullback.nn.GELU())]
    return pullback.nn.Sequential(*layers).cuda(), pullback.randn(4096, 512, device="cuda")


def test_saved_tensors_wait_on_the_host_beside_the_computation() -> None:
    model, x = network_and_input()
    model(x).sum().backward()
    expected = [p.grad.cpu() for p in model.parameters()]
    held = {}
    for pin_memory in (False, True):
        model.zero_grad()
        pullback.cuda.synchronize()
        before = pullback.cuda.memory_allocated()
        with pullback.autograd.graph.save_on_cpu(pin_memory=pin_memory):
            y = model(x)
        pullback.cuda.synchronize()
        y = y.sum()
        held[pin_memory] = pullback.cuda.memory_allocated() - before
        y.backward()
        for p, gradient in zip(model.parameters(), expected, strict=True):
            np.testing.assert_array_equal(p.grad.cpu().numpy(), gradient.numpy())
    assert held[False] < 40 << 20
    assert held[True] < 60 << 20


def test_activations_beyond_a_budget_wait_on_the_host() -> None:
    model, x = network_and_input()
    model(x).sum().backward()
    expected = [p.grad.cpu() for p in model.parameters()]
    model.zero_grad()
    with pullback.activation_budget(24 << 20, offload="cpu") as budget:
        loss = model(x).sum()
    loss.backward()
    for p, gradient in zip(model.parameters(), expected, strict=True):
        np.testing.assert_array_equal(p.grad.cpu().numpy(), gradient.numpy())
    rows = budget.report().rows
    assert sum(row["dropped"] for row in rows) > 0
    assert sum(row["recomputed"] for row in rows) == 0


def test_memory_is_shared_with_cupy_without_a_copy() -> None:
    a = cupy.arange(4, dtype=cupy.float32)
    x = pullback.from_dlpack(a)
    x += 1
    assert a.tolist() == [1, 2, 3, 4]
    y = pullback.ones(3, device="cuda")
    b = cupy.from_dlpack(y)
    b *= 5
    assert y.tolist() == [5, 5, 5]
    assert cupy.asarray(y).data.ptr == b.data.ptr


def test_memory_is_shared_with_pytorch_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    a = torch.arange(4.0, device="cuda")
    x = pullback.from_dlpack(a)
    x *= 2
    pullback.cuda.synchronize()
    assert a.tolist() == [0, 2, 4, 6]


def test_autocast_and_grad_scaler_train() -> None:
    pullback.manual_seed(0)
    model = pullback.nn.Sequential(pullback.nn.Linear(8, 16), pullback.nn.GELU(), pullback.nn.Linear(16, 1)).cuda()
    optimizer = pullback.optim.AdamW(model.parameters(), lr=0.05)
    scaler = pullback.amp.GradScaler("cuda")
    x = pullback.randn(32, 8, device="cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with pullback.autocast("cuda"):
            out = model(x)
            assert out.dtype is pullback.float16
            loss = ((out.float() - x.sum(1, keepdim=True)) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_checkpoint_draws_the_same_numbers_again() -> None:
    x = pullback.ones(1000, device="cuda", requires_grad=True)
    y = checkpoint(lambda t: pullback.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.cpu().numpy(), y.detach().cpu().numpy())


def test_a_network_trains_as_on_the_cpu() -> None:
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "cuda"):
        pullback.manual_seed(0)
        model = pullback.nn.Sequential(
            pullback.nn.Conv2d(1, 4, 3, padding=1), pullback.nn.BatchNorm2d(4), pullback.nn.ReLU(), pullback.nn.MaxPool2d(2),
            pullback.nn.Flatten(), pullback.nn.Linear(64, 8), pullback.nn.LayerNorm(8), pullback.nn.Linear(8, 3),
        ).to(device)  # fmt: skip
        optimizer = pullback.optim.AdamW(model.parameters(), lr=0.01)
        generator = pullback.Generator().manual_seed(1)
        images = pullback.randn(6, 1, 8, 8, generator=generator).to(device)
        labels = pullback.tensor([0, 1, 2, 0, 1, 2], device=device)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = pullback.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=2e-3)


def test_state_goes_to_a_file_and_back(tmp_path: object) -> None:
    x = pullback.arange(4.0, device="cuda")
    pullback.save({"x": x}, f"{tmp_path}/x.pt")
    assert pullback.load(f"{tmp_path}/x.pt")["x"].is_cuda
    assert pullback.load(f"{tmp_path}/x.pt", map_location="cpu")["x"].tolist() == [0, 1, 2, 3]
