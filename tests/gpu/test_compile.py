"""torch.compile on a GPU: recorded, fused, and repeated as a CUDA graph."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
import pullback.nn.functional as F
from tests.devices import sweep
from tests.devices.test_compiled import FUNCTIONS, runner_of
from tests.devices.test_devices import network

cupy = pytest.importorskip("cupy")


def numbers(seed: int, *shape: int, requires_grad: bool = True) -> Any:
    pullback.manual_seed(seed)
    return pullback.randn(*shape).to("cuda").requires_grad_(requires_grad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_has_eager_values_and_gradients(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = pullback.compile(function)
    for seed in range(8):
        x, y = numbers(seed, 4, 5), numbers(seed, 4, 5)
        wanted, made = function(x), compiled(y)
        wanted.sum().backward()
        made.sum().backward()
        pullback.testing.assert_close(made.cpu(), wanted.cpu())
        pullback.testing.assert_close(y.grad.cpu(), x.grad.cpu())
    print(name, runner_of(compiled).describe())
    assert compiled.runs == 6


@pytest.mark.parametrize("name", ["a chain", "products", "in place", "views", "rows"])
def test_launches_are_repeated_by_the_gpu(name: str) -> None:
    compiled = pullback.compile(FUNCTIONS[name])
    for seed in range(8):
        compiled(numbers(seed, 4, 5, requires_grad=False))
    assert "repeated by the device" in runner_of(compiled).describe(), runner_of(compiled).describe()


def test_large_results_that_are_held_are_not_written_over() -> None:
    compiled = pullback.compile(lambda x: x * 2 + 1)
    held = [compiled(numbers(seed, 300, 300, requires_grad=False)) for seed in range(12)]
    for seed, made in enumerate(held):
        pullback.testing.assert_close(made.cpu(), (numbers(seed, 300, 300, requires_grad=False) * 2 + 1).cpu())


def test_two_large_forwards_before_their_backwards() -> None:
    compiled = pullback.compile(lambda x: (x * x).tanh() @ x)
    for seed in range(6):
        one, other = numbers(seed, 300, 300), numbers(seed + 100, 300, 300)
        first, second = compiled(one), compiled(other)
        first.sum().backward()
        second.sum().backward()
        for x in (one, other):
            again = x.detach().clone().requires_grad_()
            ((again * again).tanh() @ again).sum().backward()
            pullback.testing.assert_close(x.grad.cpu(), again.grad.cpu(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("make", [pullback.optim.AdamW, pullback.optim.SGD])
def test_a_training_step(make: Any) -> None:
    models = [network("cpu").to("cuda"), network("cpu").to("cuda")]
    optimizers = [make(model.parameters(), lr=1e-2) for model in models]

    def step(number: int, x: Any, t: Any) -> Any:
        optimizers[number].zero_grad()
        loss = F.cross_entropy(models[number](x), t)
        loss.backward()
        optimizers[number].step()
        return loss.detach()

    compiled = pullback.compile(step)
    for seed in range(12):
        x = numbers(seed, 2, 1, 8, 8, requires_grad=False)
        t = pullback.tensor([0, 2], device="cuda")
        pullback.testing.assert_close(compiled(1, x, t).cpu(), step(0, x, t).cpu(), rtol=1e-3, atol=1e-4)
    print(runner_of(compiled).describe())
    assert compiled.runs > 5


def test_random_numbers_go_on() -> None:
    compiled = pullback.compile(lambda x: F.dropout(x, 0.5) + pullback.rand(4, 5, device="cuda"))
    x = pullback.ones(4, 5, device="cuda")
    pullback.manual_seed(3)
    made = [compiled(x).cpu() for _ in range(8)]
    assert "repeated by the device" in runner_of(compiled).describe(), runner_of(compiled).describe()
    pullback.manual_seed(3)
    for one in made:
        pullback.testing.assert_close(one, (F.dropout(x, 0.5) + pullback.rand(4, 5, device="cuda")).cpu())


def test_random_numbers_of_forward_and_backward_go_on() -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(8, 8), pullback.nn.Dropout(0.5), pullback.nn.Linear(8, 1)).to(
        "cuda"
    )
    compiled = pullback.compile(lambda x: model(x).sum())
    x = pullback.ones(4, 8, device="cuda")

    def gradients(function: Any) -> list[Any]:
        pullback.manual_seed(3)
        found = []
        for _ in range(8):
            model.zero_grad()
            function(x).backward()
            found.append(model[0].weight.grad.cpu().clone())
        return [*found, pullback.rand(2, device="cuda").cpu()]

    for one, other in zip(gradients(compiled), gradients(lambda x: model(x).sum()), strict=True):
        pullback.testing.assert_close(one, other)


@pytest.mark.parametrize("sample", [pytest.param(sample, id=sample.name) for sample in sweep.load_samples("cuda")])
def test_a_compiled_sample_is_as_the_eager_one(sample: Any) -> None:
    wrong, how = sweep.compiled_difference(sample, "cuda")
    print(f"{sample.name}: {how}")
    assert wrong is None


def test_a_wrong_target_is_told_of() -> None:
    compiled = pullback.compile(F.cross_entropy)
    x, t = numbers(0, 4, 5, requires_grad=False), pullback.tensor([0, 3, 1, 2], device="cuda")
    for _ in range(6):
        compiled(x, t)
    t[0] = 7
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        compiled(x, t).item()
    pullback.cuda.synchronize()
