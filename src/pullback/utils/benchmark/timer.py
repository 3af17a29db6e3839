"""Timer: how long a statement takes."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import pullback
from pullback.utils.benchmark.measurement import Measurement, TaskSpec

timer = timeit.default_timer


class Language(Enum):
    """What statements are written in."""

    PYTHON = 0
    CPP = 1


class set_torch_threads:
    """A block with a number of threads."""

    def __init__(self, n: int) -> None:
        self._wanted = n

    def __enter__(self) -> None:
        self._former = pullback.get_num_threads()
        pullback.set_num_threads(self._wanted)

    def __exit__(self, *exception: object) -> None:
        pullback.set_num_threads(self._former)


class Timer:
    """Times a statement, on one thread unless told otherwise.

    >>> Timer("x + x", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("pullback's Timer measures statements of Python only")
        if global_setup:
            raise ValueError("global_setup is C++ only, most likely you wanted setup")
        names = {"torch": pullback, "pullback": pullback, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """The time of so many executions, after a few to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def _number_per_block(self, min_run_time: float) -> int:
        """How many executions take long enough to be timed, but only a small part of the time that there is."""
        number = 1
        while True:
            taken = self._time(number)
            if taken >= min(1e-3, min_run_time / 10) or number >= 10**9:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Time blocks of executions until `min_run_time` is over."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_block(min_run_time)
            return self._blocks(number, callback, min_run_time, lambda times: True)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:  # fmt: skip
        """Time blocks of executions until their times lie close together, for `max_run_time` at most."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_block(0.05)

            def suffices(times: list[float]) -> bool:
                is_steady = len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)
                return is_steady or sum(times) >= max_run_time

            return self._blocks(number, callback, min_run_time, suffices)

    def _blocks(
        self, number: int, callback: Any, min_run_time: float, suffices: Callable[[list[float]], bool]
    ) -> Measurement:
        times: list[float] = []
        while sum(times) < min_run_time or not suffices(times):
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not there, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    autorange = repeat
