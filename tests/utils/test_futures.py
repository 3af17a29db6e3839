"""Futures: values, exceptions, callbacks, from other threads too."""

from __future__ import annotations

import threading

import pytest

import pullback
from pullback.pytorch.futures import Future, collect_all, wait_all


def test_waiting_for_another_thread() -> None:
    future: Future[int] = Future()
    assert not future.done()
    thread = threading.Timer(0.01, lambda: future.set_result(3))
    thread.start()
    assert future.wait() == future.value() == 3
    thread.join()


def test_callbacks_run_once_the_result_is_there() -> None:
    future: Future[int] = Future()
    seen: list[int] = []
    future.add_done_callback(lambda done: seen.append(done.value()))
    following = future.then(lambda done: done.wait() + 1)
    assert seen == []
    future.set_result(1)
    assert (seen, following.wait()) == ([1], 2)


def test_a_result_is_set_once() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    with pytest.raises(RuntimeError, match="mark a completed Future as complete again"):
        future.set_result(2)
    assert future.wait() == 1


def test_exceptions_reach_those_who_wait() -> None:
    future: Future[int] = Future()
    following = future.then(lambda done: done.wait())
    future.set_exception(ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        future.wait()
    with pytest.raises(RuntimeError, match="error when running the callback: ValueError: bad"):
        following.wait()
    with pytest.raises(RuntimeError, match="not completed"):
        Future().value()


def test_collecting() -> None:
    futures: list[Future[int]] = [Future(), Future()]
    collected = collect_all(futures)
    futures[1].set_result(2)
    assert not collected.done()
    futures[0].set_result(1)
    assert collected.wait() == futures
    assert wait_all(futures) == [1, 2]
    assert wait_all([]) == []


def test_forked_calls_are_futures() -> None:
    future = pullback.jit.fork(lambda x: x * 2, 4)
    assert pullback.jit.wait(future) == future.wait() == 8


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], list[int], True), ([1, "a"], list[int], False), ([], list[int], True), ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False), ((1, 2.0), tuple[int, float], True), ((1,), tuple[int, float], False),
        (None, int | None, True), (3, (int, str), True), ("x", int, False),
    ],
)  # fmt: skip
def test_types_of_containers(value: object, kind: object, expected: bool) -> None:
    assert pullback.jit.isinstance(value, kind) is expected
