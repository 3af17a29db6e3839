"""torch.profiler's front end over autograd's profiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from pullback.autograd.profiler import profile as _profile
from pullback.autograd.profiler import record_function
from pullback.report import Report

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What can be profiled; only the CPU here."""

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3


class ProfilerAction(Enum):
    """What a step of a schedule does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Whether Kineto, PyTorch's tracing library, is there: it is not."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be profiled."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **options: Any
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to what is done in it."""

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """A handler that writes the trace of each finished cycle to a folder."""
    import os

    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker_name or 'worker'}.{prof.step_num}.pt.trace.json{'.gz' * use_gzip}")
        )

    return handler


class profile:
    """Profile a block, or the steps of a loop that a schedule picks.

    `record_shapes`, `profile_memory`, `with_stack` and `with_flops` ask for more about each event; `by_line()` and
    `by_module()` say where in the program the time went.

    >>> import pullback
    >>> x = pullback.ones(2, 3)
    >>> with profile(record_shapes=True, with_flops=True) as prof:
    ...     y = x @ x.T
    >>> [(event.key, event.input_shapes, event.flops) for event in prof.events()][-1]
    ('aten::mm', [[2, 3], [3, 2]], 24)
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None, record_shapes: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "with_modules": with_modules,
        }  # fmt: skip
        self._metadata: dict[str, Any] = {}
        self._current: _profile | None = None
        self._finished: _profile | None = None
        self.step_num = 0

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._follow_schedule()

    def stop(self) -> None:
        """End, and hand the trace over."""
        if self._current is not None:
            self._finish()

    def step(self) -> None:
        """End one step of the loop."""
        action = self._schedule(self.step_num) if self._schedule is not None else ProfilerAction.RECORD
        self.step_num += 1
        if action is ProfilerAction.RECORD_AND_SAVE and self._current is not None:
            self._finish()  # whoever is told sees the number of steps that have ended
        self._follow_schedule()

    def _follow_schedule(self) -> None:
        action = self._schedule(self.step_num) if self._schedule is not None else ProfilerAction.RECORD
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and self._current is None:
            self._current = _profile(**self._options)
            self._current.__enter__()

    def _finish(self) -> None:
        assert self._current is not None
        self._current.__exit__(None, None, None)
        self._finished, self._current = self._current, None
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def _result(self) -> _profile:
        if self._finished is None:
            raise RuntimeError("the profiler has not finished a cycle yet")
        return self._finished

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any) -> Any:
        """Averages by name of the last finished cycle."""
        return self._result().key_averages(group_by_input_shape, group_by_stack_n)

    def events(self) -> Any:
        """The events of the last finished cycle."""
        return self._result().function_events

    def by_operation(self) -> Report:
        """Time, memory and flops by operation, forward and backward apart.

        >>> import pullback
        >>> x = pullback.ones(3, requires_grad=True)
        >>> with pullback.profiler.profile() as prof:
        ...     x.sin().backward(pullback.ones(3))
        >>> sorted(row["operation"] for row in prof.by_operation().rows if "Accumulate" not in row["operation"])
        ['SinBackward0', 'aten::sin']
        """
        return self._result().by_operation()

    def by_line(self) -> Report:
        """Time, memory and flops by the line of the program, its gradients included.

        >>> import pullback
        >>> with pullback.profiler.profile() as prof:
        ...     y = pullback.ones(3).sin()
        ...     y = y.exp()
        >>> [row["calls"] for row in prof.by_line().rows]
        [1, 1]
        """
        return self._result().by_line()

    def by_module(self) -> Report:
        """Time, memory and flops by module, its gradients included.

        >>> import pullback
        >>> model = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.ReLU())
        >>> with pullback.profiler.profile() as prof:
        ...     y = model(pullback.ones(1, 2))
        >>> sorted(row["module"] for row in prof.by_module().rows)
        ['Sequential.0', 'Sequential.1']
        """
        return self._result().by_module()

    def memory_timeline(self) -> Any:
        """What was allocated and freed, in order of time, with `profile_memory=True`."""
        return self._result().memory_timeline()

    def to_dict(self) -> dict[str, Any]:
        """The last finished cycle as plain data."""
        return self._result().to_dict()

    def _repr_html_(self) -> str:
        return self._result()._repr_html_()

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the traces that are written from now on."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add what a text of JSON says to the traces that are written from now on."""
        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str) -> None:
        """Write the last finished cycle for chrome://tracing and Perfetto."""
        self._result().function_events.metadata = self._metadata
        self._result().export_chrome_trace(path)

    def export_page(self, path: str, loss: Any, params: Any = None) -> None:
        """Write the page about the graph behind `loss` (`pullback.graph_page`) with the times and memory of this profile.

        The graph may have been freed by the backward that was profiled; then the pass cannot be played.
        """
        from pullback.utils.graph_page import graph_page  # lazy: above this layer, and rare

        graph_page(loss, params, profiled=self).save(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line per stack with its time, as flame graph tools read them; needs `with_stack=True`."""
        self._result().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory timeline as JSON: a list of times in microseconds and a list of bytes held then."""
        self._result().export_memory_timeline(path)
