"""The count that closes the fast road: who adds to it, and that it always comes back to zero."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback
from pullback.modes.switches import close_fast_road, process, switches

MODES: dict[str, Callable[[], Any]] = {
    "no_grad": pullback.no_grad,
    "inference_mode": pullback.inference_mode,
    "saved_tensors_hooks": lambda: pullback.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "dual_level": pullback.autograd.forward_ad.dual_level,
}


def in_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_thread_that_ends_inside_of_a_mode_is_forgotten(mode: Callable[[], Any]) -> None:
    before = process.changed, process.diverted, process.finishing
    during: list[int] = []

    def work() -> None:
        mode().__enter__()
        during.append(process.changed)

    in_thread(work)
    assert during == [before[0] + 1]
    assert (process.changed, process.diverted, process.finishing) == before


def test_a_thread_that_ends_in_two_modes_counts_once() -> None:
    before = process.changed

    def work() -> None:
        pullback.no_grad().__enter__()
        pullback.inference_mode().__enter__()

    in_thread(work)
    assert process.changed == before


def test_a_thread_that_came_back_takes_nothing_when_it_ends() -> None:
    before = process.changed

    def work() -> None:
        with pullback.no_grad():
            pass

    in_thread(work)
    assert process.changed == before


def no_grad_while_waiting() -> Iterator[bool]:
    with pullback.no_grad():
        yield pullback.is_grad_enabled()


def test_a_generator_that_is_dropped_inside_of_a_mode_leaves_it() -> None:
    before = process.changed
    generator = no_grad_while_waiting()
    assert next(generator) is False
    assert process.changed == before + 1
    del generator
    assert process.changed == before
    assert pullback.is_grad_enabled()


def test_a_generator_of_a_thread_that_ended_changes_nobody_when_it_is_dropped() -> None:
    before = process.changed
    kept: list[Any] = []

    def work() -> None:
        kept.append(no_grad_while_waiting())
        next(kept[0])

    in_thread(work)
    assert process.changed == before
    kept.clear()
    assert process.changed == before
    assert pullback.is_grad_enabled()


def test_what_closes_the_road_for_good_is_not_taken_back_by_a_thread() -> None:
    before = process.changed
    in_thread(close_fast_road)
    try:
        assert process.changed == before + 1
    finally:
        process.changed -= 1
        process.diverted -= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_forgets_the_threads_of_its_parent() -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with pullback.no_grad():
            entered.set()
            leave.wait()

    before = process.changed
    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if process.changed == before and switches.grad_mode else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
