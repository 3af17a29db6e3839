"""Results that are there later: PyTorch's `torch.futures`, on Python's."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class FutureBase:
    """The class that PyTorch has as `torch.Future`: every future is one of these."""


FutureBase.__name__ = FutureBase.__qualname__ = "Future"


class Future(FutureBase, Generic[T]):
    """A result that someone sets and others wait for.

    >>> future = Future()
    >>> doubled = future.then(lambda done: 2 * done.wait())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._result: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the result, or an exception in its place, was set."""
        return self._result.done()

    def wait(self) -> T:
        """The result, as soon as it is there; an exception that was set is raised."""
        return self._result.result()

    def value(self) -> T:
        """The result, which must be there."""
        if not self.done():
            raise RuntimeError("the Future is not completed: wait() waits for its value")
        return self._result.result()

    def set_result(self, result: T) -> None:
        """Set the result and run what waits for it."""
        self._check_open()
        self._result.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception in place of the result."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._check_open()
        self._result.set_exception(result)

    def _check_open(self) -> None:
        if self.done():
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                "completed once."
            )

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback` makes of this one, when it is done."""
        following: Future[S] = Future()

        def run(_: object) -> None:
            try:
                following.set_result(callback(self))
            except Exception as error:
                following.set_exception(
                    RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
                )

        self._result.add_done_callback(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Run `callback` with this future, when it is done."""
        self._result.add_done_callback(lambda _: callback(self))


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of all of these, done when the last of them is."""
    collected: Future[list[Future[Any]]] = Future()
    waiting = set(map(id, futures))

    def finish(future: Future[Any]) -> None:
        waiting.discard(id(future))
        if not waiting and not collected.done():
            collected.set_result(list(futures))

    if not futures:
        collected.set_result([])
    for future in futures:
        future.add_done_callback(finish)
    return collected


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The results of all of these, as soon as they are there.

    >>> first, second = Future(), Future()
    >>> first.set_result(1), second.set_result(2)
    (None, None)
    >>> wait_all([first, second])
    [1, 2]
    """
    return [future.wait() for future in collect_all(futures).wait()]
