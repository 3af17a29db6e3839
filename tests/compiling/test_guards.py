"""What ends the skipping of Python: values that it reads, and surroundings that change."""

from __future__ import annotations

import cProfile
import gc
import math
import threading
import types
import warnings
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.errors import Unsupported
from tests.compiling.comparison import CALLS, F, skipped, weights


def test_branch_on_a_value_stays_eager() -> None:
    compiled = pullback.compile(lambda x: x * 2 if x.sum() > 0 else -x)
    for value in (1.0, 1.0, 1.0, -1.0, 1.0, -1.0):
        x = pullback.full((2,), value)
        assert compiled(x).tolist() == [2.0 * value if value > 0 else 1.0] * 2
    assert skipped(compiled) == 0


def test_value_of_the_loss_may_be_the_result() -> None:
    w = weights(3)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss.item(), loss.detach()

    compiled = pullback.compile(step)
    for call in range(5):
        number, loss = compiled(pullback.full((3,), float(call)))
        assert type(number) is float
        assert number == loss.item() == pytest.approx((w * call).sum().item(), rel=1e-5)
    assert skipped(compiled) >= 2


NUMBERS: list[Any] = [
    lambda x: x * x.sum().item(), lambda x: (x, x.sum().item() + 1), lambda x: f"{x.sum().item()}", lambda x: x.sum().item() > 1,
    lambda x: math.exp(x.sum().item()), lambda x: [x.sum().item()][0] * 2, lambda x: round(x.sum().item()),
    lambda x: max(x.sum().item(), 1.0), lambda x: "%.1f" % x.sum().item(),  # noqa: UP031  # what is tested
]  # fmt: skip


@pytest.mark.parametrize("function", NUMBERS)
def test_value_that_python_computes_with_stays_eager(function: Any) -> None:
    compiled = pullback.compile(function)
    for call in range(CALLS):
        x = pullback.full((2,), 1.0 if call < 3 else 2.0)
        assert str(compiled(x)) == str(function(x))
    assert skipped(compiled) == 0


READS: list[Any] = [
    lambda x: x.sum().item() > 0, lambda x: x.tolist(), lambda x: int(x.sum()), lambda x: str(x), lambda x: x.numpy().sum(),
    lambda x: print(x.shape), lambda x: pullback.nonzero(x), lambda x: x[x > 0],
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_values_that_python_reads_stay_eager(read: Any, capsys: Any) -> None:
    def function(x: Any) -> Any:
        read(x)
        return x * 2

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    assert skipped(compiled) == 0


def test_fullgraph_raises_with_line_and_remedy() -> None:
    def choose(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(Unsupported, match=r"decides a branch, at .*test_guards.py:\d+ .*torch.where"):
        pullback.compile(choose, fullgraph=True)(pullback.ones(2))


def test_global_that_changes_is_noticed() -> None:
    compiled = pullback.compile(lambda x: x * FACTOR[0] + OFFSET)
    global OFFSET
    for _ in range(CALLS):
        assert compiled(pullback.ones(1)).tolist() == [5.0]
    OFFSET = 4.0
    assert compiled(pullback.ones(1)).tolist() == [6.0]
    FACTOR[0] = 3.0
    assert compiled(pullback.ones(1)).tolist() == [7.0]
    FACTOR[0], OFFSET = 2.0, 3.0


FACTOR, OFFSET = [2.0], 3.0


def test_closure_and_attributes_that_change_are_noticed() -> None:
    class Settings:
        scale = 2.0

        def __init__(self) -> None:
            self.shift = 1.0

    settings, power = Settings(), 1

    def function(x: Any) -> Any:
        return (x * settings.scale + settings.shift) ** power

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        assert compiled(pullback.ones(1)).tolist() == [3.0]
    settings.shift = 2.0
    assert compiled(pullback.ones(1)).tolist() == [4.0]
    Settings.scale = 5.0
    assert compiled(pullback.ones(1)).tolist() == [7.0]
    power = 2
    assert compiled(pullback.ones(1)).tolist() == [49.0]


def test_parameter_that_is_replaced_is_noticed() -> None:
    layer = nn.Linear(2, 1, bias=False)
    compiled = pullback.compile(layer)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    layer.weight = nn.Parameter(pullback.full((1, 2), 3.0))
    assert compiled(pullback.ones(2)).tolist() == [6.0]
    layer.weight.data = pullback.full((1, 2), 4.0)
    assert compiled(pullback.ones(2)).tolist() == [8.0]
    layer.weight.requires_grad_(False)
    assert not compiled(pullback.ones(2)).requires_grad


def test_hook_that_is_added_later_runs() -> None:
    layer = nn.Linear(2, 1)
    compiled = pullback.compile(layer)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    seen: list[Any] = []
    layer.register_forward_hook(lambda module, args, result: seen.append(1))
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    assert len(seen) == CALLS


EFFECTS: list[Any] = []


def test_effects_on_containers_attributes_and_globals_are_not_lost() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            EFFECTS.append(self.calls)
            return x + 1

    counter = Counter()
    compiled = pullback.compile(counter)
    for _ in range(10):
        compiled(pullback.ones(1))
    assert counter.calls == 10
    assert list(range(1, 11)) == EFFECTS


def test_numbers_that_python_draws_are_drawn_each_time() -> None:
    import random

    compiled = pullback.compile(lambda x: x * random.random())
    random.seed(0)
    actual = [compiled(pullback.ones(1)).item() for _ in range(6)]
    random.seed(0)
    assert actual == pytest.approx([random.random() for _ in range(6)])


def test_kinds_of_arguments_are_bounded() -> None:
    compiled = pullback.compile(lambda x, n: x.sum() * n)
    for size in range(1, 17):
        assert compiled(pullback.ones(size), size).item() == size * size
    with pytest.warns(UserWarning, match="recompile_limit"):
        compiled(pullback.ones(20), 20)
    assert compiled(pullback.ones(21), 21).item() == 21 * 21
    assert len(compiled.kinds) <= 16


def test_wrong_shape_on_a_later_call_raises_what_eager_raises() -> None:
    compiled = pullback.compile(lambda x, y: x @ y)
    for _ in range(CALLS):
        compiled(pullback.ones(2, 3), pullback.ones(3, 2))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        compiled(pullback.ones(2, 3), pullback.ones(2, 2))
    assert compiled(pullback.ones(2, 3), pullback.ones(3, 2)).shape == (2, 2)


def test_exception_in_the_middle_leaves_tensors_as_they_were() -> None:
    layer = nn.Linear(2, 2)

    def function(x: Any, fails: bool) -> Any:
        y = layer(x)
        if fails:
            raise KeyError("on purpose")
        return y

    compiled = pullback.compile(function)
    with pytest.raises(KeyError, match="on purpose"):
        compiled(pullback.ones(2), True)
    assert type(layer.weight._array).__name__ == "ndarray"
    for _ in range(CALLS):
        assert pullback.equal(compiled(pullback.ones(2), False), layer(pullback.ones(2)))


def test_index_out_of_range_in_a_program_raises_what_eager_raises() -> None:
    table = weights(3, 2)
    compiled = pullback.compile(lambda i: F.embedding(i, table))
    for _ in range(CALLS):
        compiled(pullback.tensor([0, 2]))
    assert skipped(compiled) == 2
    with pytest.raises(IndexError, match="index out of range"):
        compiled(pullback.tensor([0, 7]))


def test_one_function_serves_many_threads() -> None:
    layer = nn.Linear(3, 3)
    compiled = pullback.compile(layer)
    failures: list[Any] = []

    def work(seed: int) -> None:
        for call in range(30):
            x = weights(2, 3, seed=seed * 100 + call)
            y = compiled(x)
            (grad,) = pullback.autograd.grad(y.sum(), x)
            if not pullback.allclose(y, x @ layer.weight.T + layer.bias, atol=1e-6):
                failures.append((seed, call))
            if not pullback.allclose(grad, layer.weight.sum(0).expand(2, 3), atol=1e-6):
                failures.append((seed, call, "grad"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_no_warning_is_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pullback.compile(lambda x: x + 1)(pullback.ones(1))


def test_profile_of_the_user_goes_on_after_a_recording() -> None:
    profile = cProfile.Profile()
    profile.enable()
    try:
        result = pullback.compile(lambda x: x * 2)(pullback.ones(1))
        math.floor(result.item())
    finally:
        profile.disable()
    assert any("floor" in str(entry.code) for entry in profile.getstats())


@pytest.mark.parametrize("collect", [gc.collect, lambda: None])
def test_tensor_from_outside_that_cannot_be_followed_is_found(collect: Any) -> None:
    hidden = {"tensor": pullback.tensor([2.0])}

    class Holder:
        def __getattr__(self, name: str) -> Any:
            return hidden["tensor"]

    holder = Holder()

    def function(x: Any) -> Any:
        y = x * pullback.tensor([3.0])
        collect()
        return y * holder.anything

    compiled = pullback.compile(function)
    for factor in (2.0, 2.0, 2.0, 5.0):
        hidden["tensor"] = pullback.tensor([factor])
        assert compiled(pullback.ones(1)).item() == 3 * factor


class Numbered(type):
    number = 2.0


class Scale(metaclass=Numbered):
    def __mul__(self, other: Any) -> Any:
        return other * 2

    def __len__(self) -> int:
        return 3


def test_special_methods_metaclasses_and_modules_in_closures_that_change_are_noticed(monkeypatch: Any) -> None:
    module, scale = types.ModuleType("numbers_of_a_user"), Scale()
    vars(module)["number"] = 5.0

    def function(x: Any) -> Any:
        return (scale * x) * len(scale) + module.number + Scale.number

    compiled = pullback.compile(function)
    changes: list[Any] = [
        (Scale, "__mul__", lambda self, other: other * 7), (Scale, "__len__", lambda self: 4), (module, "number", 6.0),
        (Numbered, "number", 8.0),
    ]  # fmt: skip
    for change in [None, *changes]:
        if change is not None:
            monkeypatch.setattr(*change)
        for _ in range(3):
            assert compiled(pullback.ones(1)).item() == function(pullback.ones(1)).item()
    assert skipped(compiled) >= 5
