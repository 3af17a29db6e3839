"""Looking at fused nodes: in any order, from several threads, and beside passes that run over the same graph."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback import Tensor
from pullback.functions import unfused
from pullback.recording.fused_gradient import Application


def layer_with_gradients() -> tuple[Tensor, Tensor, Tensor]:
    x, weight = pullback.ones(2, 3, requires_grad=True), pullback.ones(4, 3, requires_grad=True)
    result = pullback.nn.functional.linear(x, weight, pullback.ones(4, requires_grad=True))
    seed = pullback.ones(2, 4, requires_grad=True)
    return (result, *pullback.autograd.grad(result, (x, weight), seed, create_graph=True))


def names(node: Any) -> Any:
    return node.name(), [names(following) for following, _ in node.next_functions if following is not None]


def test_gradients_show_their_steps_whatever_was_looked_at_before() -> None:
    first, *expected = layer_with_gradients()
    second, *actual = layer_with_gradients()
    shown = [names(gradient.grad_fn) for gradient in expected]
    assert names(first.grad_fn) == names(second.grad_fn)
    assert [names(gradient.grad_fn) for gradient in actual] == shown
    assert [name for name, _ in shown] == ["MmBackward0", "TBackward0"]


def test_hooks_of_steps_do_not_run_when_somebody_looks_at_a_gradient() -> None:
    result, gradient, _ = layer_with_gradients()
    assert result.grad_fn is not None
    calls: list[Any] = []
    transpose: Any = result.grad_fn.next_functions[2][0]
    transpose.register_hook(lambda *grads: calls.append(grads))
    assert gradient.grad_fn is not None
    assert gradient.grad_fn.next_functions
    assert calls == []


def test_steps_keep_their_edges_while_their_gradients_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    result, gradient, _ = layer_with_gradients()
    assert result.grad_fn is not None
    before, during = names(result.grad_fn), []
    pull_back = Application._pull_back

    def look(self: Application, ends: list[Any], catches: list[Any]) -> list[Any]:
        during.append(names(result.grad_fn))
        return pull_back(self, ends, catches)

    monkeypatch.setattr(Application, "_pull_back", look)
    assert gradient.grad_fn is not None
    assert gradient.grad_fn.next_functions
    assert during == [before]


def test_threads_that_look_at_once_see_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    result, *_ = layer_with_gradients()
    record = unfused.linear_node

    def record_slowly(node: Any) -> Any:
        time.sleep(0.05)
        return record(node)

    monkeypatch.setattr(unfused, "linear_node", record_slowly)
    seen: list[Any] = []

    def look() -> None:
        assert result.grad_fn is not None
        seen.append(result.grad_fn.next_functions)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(edges == seen[0] for edges in seen)


def look_through(node: Any) -> None:
    for following, _ in node.next_functions:
        if following is not None:
            look_through(following)


@pytest.fixture
def threads_change_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.usefixtures("threads_change_often")
def test_a_pass_has_its_gradients_while_another_thread_looks(create_graph: bool) -> None:
    weights = [(pullback.arange(9.0).reshape(3, 3) / 10 + i / 10).requires_grad_() for i in range(8)]
    biases = [pullback.full((3,), 0.1, requires_grad=True) for _ in weights]

    def loss() -> Tensor:
        h = pullback.arange(6.0).reshape(2, 3) / 6
        for weight, bias in zip(weights, biases, strict=True):
            h = pullback.nn.functional.linear(h, weight, bias).tanh()
        return h.sum()

    expected = pullback.autograd.grad(loss(), [*weights, *biases])
    for _ in range(100):
        result = loss()
        looking = threading.Thread(target=look_through, args=(result.grad_fn,))
        looking.start()
        actual = pullback.autograd.grad(result, [*weights, *biases], create_graph=create_graph)
        looking.join()
        assert all(pullback.allclose(a, e, atol=1e-5) for a, e in zip(actual, expected, strict=True))
