"""Backward from several threads, and backward inside of backward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback


def _run_in_threads(count: int, work: Callable[[], None]) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_threads_that_share_a_leaf_give_the_exact_sum() -> None:
    x = pullback.ones(50, requires_grad=True)

    def work() -> None:
        for _ in range(40):
            (x * 2).sum().backward()

    assert _run_in_threads(8, work) == []
    assert x.grad.tolist() == [2.0 * 8 * 40] * 50


def test_one_graph_in_two_threads_without_retain_runs_once() -> None:
    failures = 0
    for _ in range(20):
        x = pullback.ones(10, requires_grad=True)
        y = x
        for _ in range(20):
            y = y * y
        total = y.sum()
        errors = _run_in_threads(2, total.backward)
        failures += len(errors)
        assert all("a second time" in str(e) for e in errors)
        assert len(errors) == 1
    assert failures == 20


def test_one_graph_in_many_threads_with_retain_gives_the_exact_sum() -> None:
    x = pullback.tensor([3.0], requires_grad=True)
    y = (x * x).sum()
    assert _run_in_threads(8, lambda: y.backward(retain_graph=True)) == []
    assert x.grad.item() == 6.0 * 8


def test_an_exception_in_a_thread_does_not_disturb_another() -> None:
    x = pullback.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    errors = _run_in_threads(4, y.backward)
    assert [type(e) for e in errors] == [ZeroDivisionError] * 4
    (x * 5).backward()
    assert x.grad.item() == 5.0


class _Reenter(pullback.autograd.Function):
    """Its backward makes a graph of its own and runs that backward, to a given depth."""

    @staticmethod
    def forward(ctx: Any, x: Any, depth: int) -> Any:
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        with pullback.enable_grad():
            inner = x.detach().requires_grad_()
            result = inner * 2 if ctx.depth == 0 else _Reenter.apply(inner, ctx.depth - 1)
            result.backward(grad)
        return inner.grad, None


@pytest.mark.parametrize("depth", [0, 1, 50, 1000])
def test_re_entrant_backward(depth: int) -> None:
    x = pullback.ones(3, requires_grad=True)
    _Reenter.apply(x, depth).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_an_exception_deep_inside_reaches_the_caller() -> None:
    class Fails(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if ctx.depth == 0:
                raise KeyError("deep")
            with pullback.enable_grad():
                inner = pullback.ones(1, requires_grad=True)
                Fails.apply(inner, ctx.depth - 1).backward()
            return inner.grad, None

    with pytest.raises(KeyError, match="deep"):
        Fails.apply(pullback.ones(1, requires_grad=True), 100).backward()
    assert pullback.is_grad_enabled()


def test_modes_of_one_thread_do_not_leak_into_another() -> None:
    seen: list[bool] = []
    with pullback.no_grad():
        assert _run_in_threads(1, lambda: seen.append(pullback.is_grad_enabled())) == []
    assert seen == [True]
