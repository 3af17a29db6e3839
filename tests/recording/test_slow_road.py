"""The slow road: what leads off the fast path, and what it adds to a result."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pullback
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.modes.switches import process, resume_gradients, suspend_gradients
from pullback.recording import slow_road


@pytest.fixture
def diverted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations that leave the fast path."""
    seen: list[str] = []

    def divert(name: str, given: Any, out: Any = None) -> Any:
        seen.append(name)
        return original(name, given, out)

    monkeypatch.setattr(process, "diverted", 0)  # Tensor subclasses of other tests count for good
    original = slow_road.divert
    for family in ("trigonometric", "reductions"):
        module = __import__(f"pullback.generated.{family}", fromlist=["divert"])
        monkeypatch.setattr(module, "divert", divert)
    return seen


def test_a_plain_call_stays_on_the_fast_path(diverted: list[str]) -> None:
    x = pullback.ones(2, requires_grad=True)
    pullback.sin(x)
    assert diverted == []


def test_grad_mode_alone_diverts_nothing(diverted: list[str]) -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.no_grad():
        y = pullback.sin(x)
    assert diverted == []
    assert not y.requires_grad
    assert pullback.sin(x).requires_grad


def test_grad_mode_of_another_thread_does_not_stop_recording() -> None:
    entered, leave = threading.Event(), threading.Event()
    before = process.changed, process.diverted

    def without_gradients() -> None:
        with pullback.no_grad():
            entered.set()
            leave.wait()

    other = threading.Thread(target=without_gradients)
    other.start()
    entered.wait()
    try:
        assert (process.changed, process.diverted) == (before[0] + 1, before[1])
        assert pullback.sin(pullback.ones(2, requires_grad=True)).requires_grad
    finally:
        leave.set()
        other.join()


def test_inference_mode_diverts_nothing_and_marks_results(diverted: list[str]) -> None:
    x, before = pullback.ones(2), process.finishing
    with pullback.inference_mode():
        y = pullback.sin(x)
        assert process.finishing == before + 1
    assert diverted == []
    assert y.is_inference()
    assert not pullback.sin(x).is_inference()
    assert process.finishing == before


def test_transforms_divert_nothing(diverted: list[str]) -> None:
    before = process.finishing
    gradient = pullback.func.grad(lambda x: pullback.sin(x).mul_(2.0).sum())(pullback.zeros(2))
    assert diverted == []
    assert gradient.tolist() == [2.0, 2.0]
    assert process.finishing == before


def test_interceptors_divert_while_they_are_on(diverted: list[str]) -> None:
    y = pullback.vmap(pullback.sin)(pullback.zeros(2))
    assert diverted == ["sin"]
    assert y.tolist() == [0.0, 0.0]
    assert process.diverted == 0


def test_a_mode_entered_while_gradients_are_suspended_leaves_the_counts_as_they_were() -> None:
    before = process.changed, process.diverted, process.finishing
    former = suspend_gradients()
    with pullback.inference_mode():
        pass
    resume_gradients(former)
    assert (process.changed, process.diverted, process.finishing) == before


def test_out_diverts_once(diverted: list[str]) -> None:
    x, out = pullback.ones(2), pullback.empty(2)
    assert pullback.sin(x, out=out) is out
    assert diverted == ["sin"]


def test_an_interceptor_takes_the_call_over() -> None:
    calls: list[tuple[str, int, dict[str, Any]]] = []

    def take(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls.append((function.__name__, len(args), kwargs))
        return "taken"

    push_interceptor(take)
    try:
        assert pullback.generated.sin(pullback.ones(2)) == "taken"
        assert pullback.generated.add(pullback.ones(2), 1, alpha=2) == "taken"
    finally:
        pop_interceptor()
    assert calls == [("sin", 1, {"out": None}), ("add", 2, {"alpha": 2, "out": None})]


def test_an_interceptor_that_declines_lets_the_fast_path_go_on() -> None:
    push_interceptor(lambda *call: NotImplemented)
    try:
        y = pullback.sin(pullback.ones(2, requires_grad=True))
    finally:
        pop_interceptor()
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "SinBackward0"


def test_a_number_first_becomes_a_tensor() -> None:
    assert pullback.add(1, pullback.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pullback.sin("x"), r"sin\(\): argument 'input' \(position 1\) must be Tensor, not str"),
        (lambda: pullback.cumsum(pullback.ones(2)), r'cumsum\(\) missing 1 required positional arguments: "dim"'),
        (lambda: pullback.generated.amax(pullback.ones(2), 0, 1), r"argument 'keepdim' .*must be bool, not int"),
    ],
)
def test_wrong_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_shapes_that_do_not_broadcast_are_both_shown() -> None:
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        pullback.ones(2) * pullback.ones(3)
