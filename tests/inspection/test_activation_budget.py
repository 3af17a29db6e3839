"""A bound on saved memory changes no bit of a gradient, and is kept."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import pullback
from pullback import nn
from pullback.errors import InPlaceModificationError
from pullback.inspection.activation_budget import activation_budget
from pullback.inspection.recomputation import Store
from pullback.inspection.saved_memory import saved_report
from tests.fuzz.execution import run
from tests.fuzz.generation import make_program

F = nn.functional


class Attention(nn.Module):
    """Views, transposes, in-place sums and dropout, as models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.join, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        queries, keys, values = self.join(self.norm(x)).chunk(3, -1)
        heads = [t.view(4, 8, 2, 8).transpose(1, 2) for t in (queries, keys, values)]
        weights = (heads[0] @ heads[1].transpose(-1, -2) / 8).softmax(-1)
        mixed = (F.dropout(weights, 0.2) @ heads[2]).transpose(1, 2).reshape(4, 8, 16)
        x = x.clone()
        x += self.out(mixed)
        x[:, :2].mul_(2)
        return (x * 0.5).add_(0.5).tanh()


def mlp() -> tuple[Any, Any]:
    layers = [
        layer
        for _ in range(6)
        for layer in (nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Tanh())
    ]
    return nn.Sequential(*layers), pullback.randn(64, 32)


def convolutions() -> tuple[Any, Any]:
    layers = [
        layer
        for i in range(4)
        for layer in (nn.Conv2d(4 if i else 3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    ]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 64, 5)), pullback.randn(8, 3, 16, 16)


def attention() -> tuple[Any, Any]:
    return nn.Sequential(Attention(), Attention(), Attention()), pullback.randn(4, 8, 16)


def gradients(make: Any, budget: Any) -> list[bytes]:
    """The bits of the loss, of all gradients and buffers, and of the next random numbers."""
    pullback.manual_seed(0)
    model, x = make()
    with budget:
        loss = model(x).square().mean()
    loss.backward()
    values = [loss.detach(), *[p.grad for p in model.parameters()], *model.buffers(), pullback.rand(3)]
    return [value.numpy().tobytes() for value in values]


@pytest.mark.parametrize("make", [mlp, convolutions, attention])
@pytest.mark.parametrize("limit", [0, 20_000, 40_000, 10**9])
def test_gradients_are_the_same_to_the_bit(make: Any, limit: int) -> None:
    budget = activation_budget(limit)
    assert gradients(make, budget) == gradients(make, nullcontext())
    recomputed = sum(row["recomputed"] for row in budget.report().rows)
    assert (recomputed > 0) == (limit < 10**9)


@pytest.mark.parametrize("make", [mlp, convolutions, attention])
def test_gradients_are_the_same_from_disk(make: Any, tmp_path: Path) -> None:
    budget = activation_budget(20_000, offload="disk", directory=str(tmp_path))
    model, x = make()
    with budget:
        loss = model(x).sum()
    assert len(list(tmp_path.iterdir())) > 3
    loss.backward()
    del loss
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert gradients(make, activation_budget(20_000, offload="disk")) == gradients(make, nullcontext())


def peaks(model: Any, x: Any, block: Any) -> tuple[int, int, int]:
    """Bytes held after forward, the peak of forward, and that of backward: the least of two runs.

    A table of the interpreter that grows meanwhile (that of interned names: two megabytes at once) does so in one of them.
    """
    first, second = _peaks(model, x, block), _peaks(model, x, block)
    return min(first[0], second[0]), min(first[1], second[1]), min(first[2], second[2])


def _peaks(model: Any, x: Any, block: Any) -> tuple[int, int, int]:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with block:
            y = model(x)
        held, forward = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        if y.requires_grad:
            y.sum().backward()
        return held - before, forward - before, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_what_is_held_stays_within_the_budget() -> None:
    pullback.manual_seed(0)
    layers = [layer for _ in range(20) for layer in (nn.Linear(256, 256), nn.GELU(), nn.Tanh())]
    model, x = nn.Sequential(*layers), pullback.randn(512, 256)
    one, limit = x._array.nbytes, 4 * x._array.nbytes
    with activation_budget(limit) as budget:  # whatever is made once is made, gradients too
        model(x).sum().backward()
    assert budget.report().facts["peak_bytes"] <= limit + one
    plain_held, _, plain_backward = peaks(model, x, nullcontext())
    _, operation, _ = peaks(model, x, pullback.no_grad())  # an operation with what it reads, makes and uses inside
    gradient = plain_backward - plain_held + one
    held, forward, backward = peaks(model, x, activation_budget(limit))
    assert held < limit + 1.5 * one < 0.2 * plain_held  # the result, and nodes
    assert forward < limit + operation + one
    assert backward < limit + operation + gradient + 2 * one
    assert backward < 0.5 * plain_backward


def test_the_ledger_sees_what_is_held() -> None:
    model, x = mlp()
    full = saved_report(model(x)).facts["activation_bytes"]
    with activation_budget(30_000) as budget:
        y = model(x)
        held = budget.report().facts["held_bytes"]
    assert 0 < held <= 30_000
    # What the block did not make, its input and the masks of dropout, is saved as it is.
    assert held <= saved_report(y).facts["activation_bytes"] <= 30_000 + x._array.nbytes < full


def test_the_graph_can_be_run_again_and_differentiated_again() -> None:
    def second(budget: Any) -> Any:
        x = pullback.linspace(0.1, 1.0, 50).requires_grad_()
        with budget:
            y = x.sin().exp().mul(x).tanh().sum()
        first = pullback.autograd.grad(y, x, create_graph=True)[0]
        again = pullback.autograd.grad(y, x, create_graph=True)[0]
        return pullback.autograd.grad((first * again).sum(), x)[0]

    assert pullback.equal(second(activation_budget(0)), second(nullcontext()))


def test_autocast_is_there_when_an_operation_runs_again() -> None:
    def run(budget: Any) -> list[Any]:
        pullback.manual_seed(0)
        model, x = mlp()
        with pullback.autocast("cpu", pullback.bfloat16), budget:
            y = model(x)
        y.float().sum().backward()
        return [p.grad.tolist() for p in model.parameters()]

    assert run(activation_budget(1000)) == run(nullcontext())


def test_a_saved_value_that_was_modified_is_still_noticed() -> None:
    x = pullback.ones(100, requires_grad=True)
    with activation_budget(0):
        y = x.exp()
        z = y * 1
    y.add_(1)
    with pytest.raises(InPlaceModificationError, match="modified by an inplace operation"):
        z.sum().backward()


def test_an_input_that_was_modified_is_noticed_where_it_is_needed() -> None:
    x, w = pullback.ones(100), pullback.ones(100, requires_grad=True)
    with activation_budget(0):
        y = (w + x).exp()  # saves its result, which needs x once it is dropped
        total = y.sum()
    del y
    x.zero_()
    with pytest.raises(InPlaceModificationError, match="activation_budget needs"):
        total.backward()


def test_values_written_in_place_are_made_again_in_order() -> None:
    def run(budget: Any) -> Any:
        x = pullback.linspace(0.1, 1.0, 60).requires_grad_()
        with budget:
            y = x * 2
            y.mul_(3)
            y[::2].sin_()
            z = (y.view(6, 10).t() * 3).contiguous()
            del y
            w = z.tanh()
            del z
            total = (w * w).sum()
            del w
        total.backward()
        return x.grad

    budget = activation_budget(0)
    assert pullback.equal(run(budget), run(nullcontext()))
    assert sum(row["recomputed"] for row in budget.report().rows) > 0


def test_custom_functions_take_part_with_what_they_saved() -> None:
    class Cube(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad * ctx.saved_tensors[0] ** 2

    def run(budget: Any) -> Any:
        x = pullback.linspace(0.1, 1.0, 60).requires_grad_()
        with budget:
            y = Cube.apply(x.sin()).exp().sum()
        y.backward()
        return x.grad

    budget = activation_budget(0)
    assert pullback.equal(run(budget), run(nullcontext()))
    assert "sin" in [row["operation"] for row in budget.report().rows]


def test_a_custom_function_runs_once_and_what_it_made_is_made_again() -> None:
    calls = []

    class Softplus(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            calls.append("forward")
            inner = F.dropout(x.exp(), 0.5) + 1
            ctx.save_for_backward(inner)
            return inner.log()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (inner,) = ctx.saved_tensors
            return grad * (inner - 1) / inner

    def run(budget: Any) -> tuple[Any, int]:
        pullback.manual_seed(0)
        x = pullback.linspace(0.1, 1.0, 10_000).requires_grad_()
        with budget:
            y = x
            for _ in range(6):
                y = Softplus.apply(y)
            total = y.sum()
        del y
        held = saved_report(total).facts["activation_bytes"]
        total.backward()
        return x.grad, held

    (actual, held), (expected, plain) = run(activation_budget(40_000)), run(nullcontext())
    assert pullback.equal(actual, expected)
    assert held <= 40_000 < 240_000 <= plain
    assert calls == ["forward"] * 12


def test_offloading_to_the_cpu_keeps_the_budget_on_the_cpu() -> None:
    budget = activation_budget(20_000, offload="cpu")
    assert gradients(mlp, budget) == gradients(mlp, nullcontext())
    facts = budget.report().facts
    assert facts["peak_bytes"] <= 20_000 + 64 * 32 * 4


def test_threads_may_run_the_backward() -> None:
    x = pullback.linspace(0.1, 1.0, 1000).requires_grad_()
    with activation_budget(0):
        losses = [x.sin().exp().tanh().sum() for _ in range(4)]
    threads = [threading.Thread(target=loss.backward) for loss in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    y = pullback.linspace(0.1, 1.0, 1000).requires_grad_()
    (4 * y.sin().exp().tanh().sum()).backward()
    pullback.testing.assert_close(x.grad, y.grad)


def test_transforms_work_inside_of_the_block() -> None:
    def f(x: Any) -> Any:
        return x.sin().exp().tanh().sum()

    x = pullback.linspace(0.1, 1.0, 20)
    with activation_budget(0):
        inside = pullback.func.grad(f)(x), pullback.func.vmap(pullback.func.grad(f))(x.view(4, 5))
    assert pullback.equal(inside[0], pullback.func.grad(f)(x))
    assert pullback.equal(inside[1], pullback.func.vmap(pullback.func.grad(f))(x.view(4, 5)))


def test_the_report_tells_the_slowdown() -> None:
    budget = activation_budget(0)
    gradients(mlp, budget)
    facts = budget.report().facts
    assert facts["slowdown"] > 1
    assert facts["recompute_seconds"] > 0
    assert facts["held_bytes"] == 0
    assert "gelu" in str(budget.report())


def test_the_slowdown_counts_what_the_forward_took_longer() -> None:
    budget = activation_budget(10**9)
    gradients(mlp, budget)
    facts = budget.report().facts
    assert facts["recompute_seconds"] == 0
    assert facts["bookkeeping_seconds"] > 0
    assert facts["slowdown"] > 1


def test_what_is_held_is_ranked_once_for_many_values_that_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    rank = Mock(wraps=Store._rank)
    monkeypatch.setattr(Store, "_rank", lambda store: rank(store))
    y = pullback.ones(1000, requires_grad=True)
    with activation_budget(400_000) as budget:
        for _ in range(400):
            y = y.sin()
    y.sum().backward()
    dropped = sum(row["dropped"] for row in budget.report().rows)
    assert dropped > 300
    assert rank.call_count < dropped / 8


@pytest.mark.parametrize("wrong", [-1, 1.5, True])
def test_a_budget_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(ValueError, match="number of bytes"):
        activation_budget(wrong)


def test_values_are_offloaded_to_disk_or_to_the_cpu() -> None:
    with pytest.raises(ValueError, match="'disk' or to 'cpu', got 'tape'"):
        activation_budget(1, offload="tape")


@pytest.mark.parametrize("offload", [None, "disk"])
def test_random_programs_do_not_notice_the_budget(offload: str | None) -> None:
    for seed in range(100):
        statements = make_program(pullback, seed)
        expected = run(pullback, statements, look_always=True)
        with activation_budget(0, offload=offload):
            actual = run(pullback, statements, look_always=True)
        assert repr(actual) == repr(expected), f"program {seed}"


def test_results_in_the_order_of_transposed_operands_and_copies_of_reshape_are_dropped_too() -> None:
    attention = pullback.nn.MultiheadAttention(8, 2)
    x = pullback.randn(6, 3, 8, requires_grad=True)
    gradients = []
    for budget in (10**6, 0):
        with pullback.activation_budget(budget):
            loss = attention(x, x, x)[0].square().sum()
        if not budget:
            held = saved_report(loss).facts["activation_bytes"]
            assert held == 0
        gradients.append(pullback.autograd.grad(loss, [x, *attention.parameters()]))
    assert all(map(pullback.equal, *gradients))


def test_a_permuted_storage_goes_to_a_file_and_back(tmp_path: Path) -> None:
    x = pullback.randn(3, 4, 5, requires_grad=True)
    with pullback.activation_budget(0, offload="disk", directory=str(tmp_path)):
        loss = (x.permute(2, 0, 1) * 2).square().sum()
    (grad,) = pullback.autograd.grad(loss, x)
    assert pullback.equal(grad, x.detach() * 8)


def test_passes_that_are_recorded_in_the_block_keep_the_budget() -> None:
    w = pullback.randn(30, 30, requires_grad=True)

    def penalty() -> Any:
        y = (w.sin() @ w.t()).tanh()
        (grad,) = pullback.autograd.grad(y.sum(), w, create_graph=True)
        return grad.square().sum()

    penalty().backward()
    assert w.grad is not None
    expected, w.grad = w.grad, None
    with activation_budget(3 * 3600) as budget:
        loss = penalty()
    assert saved_report(loss).facts["activation_bytes"] <= 3 * 3600 + 100  # numbers of one element beside
    loss.backward()
    assert bool((w.grad == expected).all())
    assert {row["operation"] for row in budget.report().rows} >= {"tanh_backward", "sin"}
