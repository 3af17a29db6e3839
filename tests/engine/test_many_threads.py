"""64 threads at once: sums are exact, modes are each thread's own, hooks that raise damage nothing, and a fork goes on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.modes.switches import process

THREADS = 64


def run_in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What each thread returns, or the exception that ended it; all begin together."""
    found: list[Any] = [None] * THREADS
    begin = threading.Barrier(THREADS)

    def run(number: int) -> None:
        begin.wait()
        try:
            found[number] = work(number)
        except Exception as error:
            found[number] = error.with_traceback(None)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_shared_graph_gives_exact_sums() -> None:
    x = pullback.arange(1.0, 5.0).requires_grad_()
    y = ((x * x).view(2, 2)[0] * 3 + x[:2]).sum()

    assert run_in_threads(lambda number: y.backward(retain_graph=True)) == [None] * THREADS
    assert x.grad.tolist() == [THREADS * v for v in [7.0, 13.0, 0.0, 0.0]]


def test_backward_and_grad_of_one_graph_together() -> None:
    x = pullback.tensor([2.0, 3.0], requires_grad=True)
    y = (x**3).sum()

    def work(number: int) -> Any:
        if number % 2:
            return y.backward(retain_graph=True)
        return pullback.autograd.grad(y, x, retain_graph=True)[0].tolist()

    found = run_in_threads(work)
    assert found == [None if number % 2 else [12.0, 27.0] for number in range(THREADS)]
    assert x.grad.tolist() == [12.0 * THREADS / 2, 27.0 * THREADS / 2]


def test_graphs_of_their_own_over_one_leaf() -> None:
    x = pullback.ones(3, requires_grad=True)

    def work(number: int) -> None:
        for _ in range(5):
            z = (x * number).clone()
            z[1].mul_(2)
            z.sum().backward()

    assert run_in_threads(work) == [None] * THREADS
    total = 5 * THREADS * (THREADS - 1) / 2
    assert x.grad.tolist() == [total, 2 * total, total]


def test_hooks_that_raise_in_half_of_the_threads() -> None:
    x = pullback.ones(2, requires_grad=True)
    shared = x * 3

    def work(number: int) -> None:
        y = shared * number
        if number % 2:
            y.register_hook(lambda grad: 1 / 0)
        y.sum().backward(retain_graph=True)

    found = run_in_threads(work)
    assert [type(error) for error in found[1::2]] == [ZeroDivisionError] * (THREADS // 2)
    assert found[0::2] == [None] * (THREADS // 2)
    assert x.grad.tolist() == [3.0 * sum(range(0, THREADS, 2))] * 2
    assert process.passes == 0


def test_modes_are_each_threads_own() -> None:
    before = process.changed, process.diverted, process.finishing
    x = pullback.ones(2, requires_grad=True)
    modes: list[Callable[[], Any]] = [
        pullback.no_grad,
        pullback.inference_mode,
        pullback.enable_grad,
        lambda: pullback.autocast("cpu", pullback.bfloat16),
    ]

    def work(number: int) -> list[bool]:
        seen = []
        for step in range(20):
            with modes[(number + step) % 4]():
                seen.append((x * 2).requires_grad)
            seen.append((x * 2).requires_grad)
        return seen

    expected = {kind: [value for step in range(20) for value in ((kind + step) % 4 >= 2, True)] for kind in range(4)}
    assert run_in_threads(work) == [expected[number % 4] for number in range(THREADS)]
    assert (process.changed, process.diverted, process.finishing) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_is_forked_while_threads_compute_goes_on_alone() -> None:
    x = pullback.ones(1000, requires_grad=True)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with pullback.no_grad():
                x * 2
            (x * 3).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    statuses = []
    for _ in range(5):
        child = os.fork()
        if not child:
            y = pullback.ones(2000, requires_grad=True)
            (y @ y).backward()
            os._exit(0 if y.grad.sum().item() == 4000.0 else 1)
        statuses.append(_status_of(child))
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 5


def _status_of(child: int) -> int:
    """The child's exit status; one that hangs is ended after two minutes."""
    timer = threading.Timer(120, os.kill, (child, 9))
    timer.start()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    return status
