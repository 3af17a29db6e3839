"""torch.compile on a device that is not the CPU: recorded as on the CPU, and repeated by the device as a graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
import pullback.nn.functional as F
from pullback.devices import graph_runner
from tests.devices import sweep
from tests.devices.fake_library import library
from tests.devices.test_devices import network


@pytest.fixture(autouse=True)
def nothing_was_launched() -> Iterator[None]:
    library.graph_launches = library.stream = 0
    yield
    library.stream = 0


def numbers(seed: int, *shape: int, requires_grad: bool = True) -> Any:
    pullback.manual_seed(seed)
    return pullback.randn(*shape, device="fake").requires_grad_(requires_grad)


def runner_of(compiled: Any) -> Any:
    return next(iter(compiled.kinds.values())).entries[0].run_forward


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a chain": lambda x: (x * 0.5 + 0.1).tanh() * (x * 2).sigmoid(),
    "products": lambda x: F.gelu(x @ x.T) @ x,
    "in place": lambda x: (x * 2).add_(1).mul_(x).sum(),
    "views": lambda x: x.view(2, 10)[:, 3:].exp().sum(0),
    "a view of the input": lambda x: x[1:].t(),
    "new tensors": lambda x: (
        pullback.zeros(4, 5, device=x.device) + x + pullback.empty(4, 5, device=x.device).fill_(3.0)
    ),
    "a tensor of the CPU": lambda x: x * pullback.tensor(2.0) + x.sum(),
    "rows": lambda x: F.layer_norm(x, (5,)).softmax(-1),
    "positions on the CPU": lambda x: x[pullback.tensor([0, 2])] + x[[1, 2]],
    "a trip to the CPU": lambda x: x.cpu().exp().to(x.device),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_has_eager_values_and_gradients(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = pullback.compile(function)
    for seed in range(8):
        x, y = numbers(seed, 4, 5), numbers(seed, 4, 5)
        wanted, made = function(x), compiled(y)
        assert made.device.type == "fake"
        wanted.sum().backward()
        made.sum().backward()
        pullback.testing.assert_close(made.cpu(), wanted.cpu())
        pullback.testing.assert_close(y.grad.cpu(), x.grad.cpu())
    assert compiled.runs == 6
    assert "CompiledFunctionBackward" in made.grad_fn.name() or name == "a view of the input"


def test_launches_are_repeated_by_the_device() -> None:
    compiled = pullback.compile(FUNCTIONS["a chain"])
    for seed in range(8):
        compiled(numbers(seed, 4, 5, requires_grad=False))
    assert library.graph_launches == 8 - 2 - graph_runner.CALLS_BEFORE
    assert "repeated by the device" in runner_of(compiled).describe()


def test_results_that_are_held_are_not_written_over() -> None:
    compiled = pullback.compile(lambda x: x * 2 + 1)
    held = [compiled(numbers(seed, 4, 5, requires_grad=False)) for seed in range(12)]
    for seed, made in enumerate(held):
        pullback.testing.assert_close(made.cpu(), (numbers(seed, 4, 5, requires_grad=False) * 2 + 1).cpu())
    assert library.graph_launches > 4


def test_views_of_a_result_hold_it_too() -> None:
    compiled = pullback.compile(lambda x: x * 2 + 1)
    held = [compiled(numbers(seed, 4, 5, requires_grad=False))[1:].t() for seed in range(8)]
    for seed, made in enumerate(held):
        pullback.testing.assert_close(made.cpu(), (numbers(seed, 4, 5, requires_grad=False) * 2 + 1)[1:].t().cpu())


def test_two_forwards_before_their_backwards() -> None:
    compiled = pullback.compile(lambda x: (x * x).tanh())
    for seed in range(6):
        one, other = numbers(seed, 4, 5), numbers(seed + 100, 4, 5)
        first, second = compiled(one), compiled(other)
        first.sum().backward()
        second.sum().backward()
        for x in (one, other):
            again = x.detach().clone().requires_grad_()
            (again * again).tanh().sum().backward()
            pullback.testing.assert_close(x.grad.cpu(), again.grad.cpu())


def test_inputs_that_move_are_copied() -> None:
    compiled = pullback.compile(lambda x: x.exp().sum())
    kept = []
    for seed in range(10):
        x = numbers(seed, 4, 5, requires_grad=False)
        kept.append(x)  # so that the next one lies elsewhere
        pullback.testing.assert_close(compiled(x).cpu(), x.exp().sum().cpu())
    assert library.graph_launches > 4
    assert runner_of(compiled)._graph._copies


def test_tensors_are_written_to_wherever_they_lie() -> None:
    def add_to(total: Any, x: Any) -> None:
        total.add_(x)
        total[0] = 5.0

    compiled = pullback.compile(add_to)
    totals = [pullback.zeros(4, 5, device="fake") for _ in range(10)]
    for seed, total in enumerate(totals):
        x = numbers(seed, 4, 5, requires_grad=False)
        compiled(total, x)
        wanted = x.clone()
        wanted[0] = 5.0
        pullback.testing.assert_close(total.cpu(), wanted.cpu())
        assert total._version == 2


def test_numbers_that_change_are_not_repeated() -> None:
    compiled = pullback.compile(lambda x, rate: x * rate)
    for step in range(12):
        x = numbers(step, 4, 5, requires_grad=False)
        pullback.testing.assert_close(compiled(x, step / 3).cpu(), (x * (step / 3)).cpu())


def test_another_stream_is_not_the_graphs() -> None:
    compiled = pullback.compile(lambda x: x * 3)
    x = numbers(0, 4, 5, requires_grad=False)
    for _ in range(6):
        compiled(x)
    launched = library.graph_launches
    library.stream = 1
    pullback.testing.assert_close(compiled(x).cpu(), (x * 3).cpu())
    assert library.graph_launches == launched


def test_what_reads_values_on_the_host_runs_kernel_by_kernel() -> None:
    targets = pullback.tensor([0, 3, 1, 2], device="fake")
    compiled = pullback.compile(lambda x: F.cross_entropy(x, targets))
    for seed in range(6):
        x = numbers(seed, 4, 5, requires_grad=False)
        pullback.testing.assert_close(compiled(x).cpu(), F.cross_entropy(x, targets).cpu())
    assert "HostRead" in runner_of(compiled).reason


def test_random_numbers_go_on() -> None:
    compiled = pullback.compile(lambda x: F.dropout(x, 0.5) + pullback.rand(4, 5, device="fake"))
    x = pullback.ones(4, 5, device="fake")
    pullback.manual_seed(3)
    made = [compiled(x).cpu() for _ in range(6)]
    pullback.manual_seed(3)
    for one in made:
        pullback.testing.assert_close(one, (F.dropout(x, 0.5) + pullback.rand(4, 5, device="fake")).cpu())


def test_branches_on_values_cut_the_function() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    compiled = pullback.compile(function)
    for seed in range(8):
        x = numbers(seed, 4, 5, requires_grad=False)
        pullback.testing.assert_close(compiled(x).cpu(), function(x).cpu())
    assert compiled.segments is not None
    with pytest.raises(RuntimeError, match="decides a branch"):
        pullback.compile(function, fullgraph=True)(numbers(0, 4, 5))


@pytest.mark.parametrize("make", [pullback.optim.AdamW, pullback.optim.SGD])
def test_a_training_step(make: Any) -> None:
    models = [network("fake"), network("fake")]
    optimizers = [make(model.parameters(), lr=1e-2) for model in models]

    def step(number: int, x: Any, t: Any) -> Any:
        optimizers[number].zero_grad()
        loss = F.cross_entropy(models[number](x), t)
        loss.backward()
        optimizers[number].step()
        return loss.detach()

    compiled = pullback.compile(step)
    for seed in range(8):
        x = numbers(seed, 2, 1, 8, 8, requires_grad=False)
        t = pullback.tensor([0, 2], device="fake")
        pullback.testing.assert_close(compiled(1, x, t).cpu(), step(0, x, t).cpu())
    assert compiled.runs > 3
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        pullback.testing.assert_close(other.cpu(), one.cpu())


def test_a_wrong_shape_raises_what_eager_raises() -> None:
    compiled = pullback.compile(lambda x, y: x @ y)
    for _ in range(5):
        compiled(numbers(0, 4, 5), numbers(1, 5, 3))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        compiled(numbers(0, 4, 5), numbers(1, 4, 3))


OF_ANY_SIZE: dict[str, Callable[[Any], Any]] = {
    "products": lambda x: F.gelu(x @ x.T).softmax(-1).sum(0) * x.shape[0],
    "new tensors": lambda x: x * pullback.ones(x.shape[0], 1, device=x.device) + pullback.zeros_like(x),
    "parts": lambda x: x[: x.shape[0] // 2].cumsum(0) / x.shape[0],
    "in place": lambda x: (x * 2).add_(1).view(-1).exp(),
}


@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_sizes_that_change_are_not_recorded_again(name: str) -> None:
    function = OF_ANY_SIZE[name]
    compiled = pullback.compile(function)
    for number, size in enumerate([4, 4, 9, 9, 30, 30, *range(10, 20)]):
        x, y = numbers(number, size, 5), numbers(number, size, 5)
        wanted, made = function(x), compiled(y)
        wanted.square().sum().backward()
        made.square().sum().backward()
        pullback.testing.assert_close(made.cpu(), wanted.cpu())
        pullback.testing.assert_close(y.grad.cpu(), x.grad.cpu())
    assert [kind.is_instance for kind in compiled.kinds.values()].count(True) >= 10


def test_programs_that_were_made_for_a_size_are_repeated_by_the_device() -> None:
    compiled = pullback.compile(OF_ANY_SIZE["in place"])
    for size in (4, 4, 9, 9, 30, 30, 12):
        compiled(numbers(0, size, 5, requires_grad=False))
    library.graph_launches = 0
    for _ in range(6):
        compiled(numbers(0, 12, 5, requires_grad=False))
    assert library.graph_launches > 2
    told = str(pullback.compiler.explain(compiled)(numbers(0, 12, 5, requires_grad=False)))
    assert "programs made for their sizes" in told


def test_devices_are_kinds_of_arguments() -> None:
    compiled = pullback.compile(lambda x: x * 2)
    for device in ("cpu", "fake", "cpu", "fake", "cpu", "fake"):
        made = compiled(pullback.ones(3, device=device))
        assert made.device.type == device
        assert made.tolist() == [2.0, 2.0, 2.0]


SAMPLES = sweep.load_samples("fake")
CHOSEN = SAMPLES if os.environ.get("PULLBACK_GPU_KERNELS") == "all" else SAMPLES[::12]


@pytest.mark.parametrize("sample", [pytest.param(sample, id=sample.name) for sample in CHOSEN])
def test_a_compiled_sample_is_as_the_eager_one(sample: Any) -> None:
    assert sweep.compiled_difference(sample, "fake")[0] is None
