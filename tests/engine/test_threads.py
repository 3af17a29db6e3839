"""Backward from several threads, and backward inside of backward."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pullback


def _run_in_threads(count: int, work: Callable[[], None]) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error.with_traceback(None))  # which would keep the graph in memory

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@contextmanager
def _switching_threads_often() -> Iterator[None]:
    """Let threads take turns after a few instructions, so that a pass is interrupted inside of its nodes."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(former)


def _nodes_of(tensor: Any) -> list[Any]:
    """The nodes on the way from a tensor along the first inputs."""
    nodes = [tensor.grad_fn]
    while nodes[-1].next_functions and nodes[-1].next_functions[0][0] is not None:
        nodes.append(nodes[-1].next_functions[0][0])
    return nodes


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


@pytest.mark.parametrize("create_graph", [False, True])
def test_threads_that_want_different_inputs_of_one_graph_get_their_own_gradients(create_graph: bool) -> None:
    weights = [pullback.tensor(float(number), requires_grad=True) for number in range(2, 10)]
    total: Any = weights[0] * 1
    for weight in weights[1:]:
        total = total * weight
    edges = [node.next_functions for node in _nodes_of(total)]
    product = total.item()
    wrong: list[tuple[int, float]] = []

    def work(number: int) -> None:
        for _ in range(60):
            (grad,) = pullback.autograd.grad(total, weights[number], retain_graph=True, create_graph=create_graph)
            if grad.item() != pytest.approx(product / weights[number].item()):
                wrong.append((number, grad.item()))

    numbers = iter(list(range(8)) * 2)
    with _switching_threads_often():
        assert _run_in_threads(16, lambda: work(next(numbers))) == []
    assert wrong == []
    assert [node.next_functions for node in _nodes_of(total)] == edges


def test_threads_differentiate_a_write_into_a_view_at_once() -> None:
    x = pullback.tensor([0.5, 1.5, 2.5], requires_grad=True)
    whole = x * 1
    whole[1:].exp_()
    total = (whole * whole).sum()
    exact = [1.0, *[2 * pullback.exp(2 * x.detach())[i].item() for i in (1, 2)]]
    exact_second = [2.0, *[4 * pullback.exp(2 * x.detach())[i].item() for i in (1, 2)]]
    seen: list[list[float]] = []

    def work() -> None:
        for _ in range(30):
            (grad,) = pullback.autograd.grad(total, x, retain_graph=True, create_graph=True)
            (second,) = pullback.autograd.grad(grad.sum(), x, retain_graph=True)
            seen.append([*grad.tolist(), *second.tolist()])

    with _switching_threads_often():
        assert _run_in_threads(8, work) == []
    assert seen == [pytest.approx([*exact, *exact_second], rel=1e-5)] * 240
