"""The profiler: times operations, nodes of backward and named blocks, and links forward with backward."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from pullback.autograd.flops import count_flops, is_product
from pullback.autograd.profiled_memory import MemoryEvent, MemoryTracker
from pullback.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
    calling_stack,
    nest,
)
from pullback.autograd.running_modules import RunningModules
from pullback.facts import fact_of
from pullback.generated.registry import OPERATIONS
from pullback.graph.history import recorded_edge
from pullback.graph.source_lines import calling_line, source_line_of
from pullback.modes.guards import guarded
from pullback.modes.interception import push_interceptor, remove_interceptor
from pullback.modes.node_observer import NodeObserver
from pullback.modes.switches import switches
from pullback.report import Report
from pullback.tensor.tensor import Tensor

__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "MemRecordsAcc", "emit_itt",
    "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile", "record_function",
]  # fmt: skip

_next_id = itertools.count().__next__
_active: list[profile] = []


@functools.cache
def shown_name(name: str) -> str:
    """What PyTorch's profiler calls an operation: as ATen does."""
    plain = name.removesuffix("_")
    operation = OPERATIONS.get(plain)
    shown = fact_of(plain, "profiled")
    if operation is not None and shown is None:
        shown = operation.aten.partition("(")[0] or operation.public or plain
    return name if shown is None else shown + name[len(plain) :]


class profile(NodeObserver):
    """Record what runs inside of the block.

    `record_shapes` notes the shapes of arguments, `profile_memory` what is allocated and freed, `with_stack` the lines of
    the program that led to each call, `with_flops` the multiplications and additions of products, convolutions, sums and
    products of elements. `key_averages().table()` sums up by name, `by_line()` and `by_module()` by where the program
    called; gradients count where their operation was called.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with profile(profile_memory=True) as prof:
    ...     (x * x).sum().backward()
    >>> sorted(event.key for event in prof.key_averages() if "Mul" in event.key)
    ['MulBackward0', 'autograd::engine::evaluate_function: MulBackward0']
    >>> [(event.operation, event.bytes) for event in prof.memory_timeline()][:2]
    [('aten::mul', 8), ('aten::sum', 4)]
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, with_modules: bool = False,
        use_kineto: bool = False, use_cpu: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.entered = False
        self._events: list[FunctionEvent] = []
        self._open: dict[int, list[FunctionEvent]] = {}
        self._forward: dict[int, FunctionEvent] = {}
        self._memory: MemoryTracker | None = MemoryTracker(self._account) if profile_memory else None
        self._finished: EventList | None = None
        self._modules = RunningModules()

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        try:
            self._modules.follow()
            self.start_observing()
            push_interceptor(self._operation)
            _active.append(self)
        except BaseException:
            self._leave()
            raise
        return self

    @guarded
    def _leave(self) -> None:
        remove_interceptor(self._operation)
        if self in _active:
            _active.remove(self)
        self.stop_observing()
        self._modules.leave()

    @guarded
    def __exit__(self, *exception: object) -> None:
        if not self.enabled:
            return
        self._leave()
        nest(self._events)
        self._finished = EventList(sorted(self._events, key=lambda e: e.time_range.start))
        self._finished.options = {
            name: getattr(self, name)
            for name in ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
        }
        if self._memory is not None:
            self._finished.memory = self._memory.events
            self._memory.stop()

    # What is recorded.

    def begin(self, name: str, sequence_nr: int = -1) -> FunctionEvent:
        """Start an event."""
        thread = threading.get_ident()
        event = FunctionEvent(_next_id(), name, thread, 0.0, sequence_nr)
        self._events.append(event)
        self._open.setdefault(thread, []).append(event)
        event.time_range.start = event.time_range.end = time.perf_counter_ns() / 1000
        return event

    def end(self, event: FunctionEvent) -> None:
        """End an event."""
        event.time_range.end = time.perf_counter_ns() / 1000
        running = self._open[event.thread]
        if event in running:
            del running[running.index(event) :]

    def _account(self, size: int) -> tuple[str, int]:
        """Give memory that was allocated or freed just now to the events that run; name the innermost."""
        thread = threading.get_ident()
        running = self._open.get(thread, ())
        for event in running:
            event.cpu_memory_usage += size
        if running:
            running[-1].self_cpu_memory_usage += size
        return (running[-1].name if running else ""), thread

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "operation")
        source = calling_line()
        event = self.begin(f"aten::{shown_name(name)}")
        event.source, event.module = source, self._modules.path
        if self.with_stack:
            event.stack = calling_stack()
        if self.record_shapes:
            event.input_shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in args]
            event.concrete_inputs = [None if isinstance(a, Tensor) else a for a in args]
        if self._memory is not None:
            self._memory.ignore(args)
        event.time_range.start = time.perf_counter_ns() / 1000
        try:
            result = function(*args, **kwargs)
        finally:
            if self._memory is not None and "result" in locals():
                self._memory.see(result)
            self.end(event)
        first = result[0] if isinstance(result, tuple) and result else result
        edge = recorded_edge(first) if isinstance(first, Tensor) else None
        if edge is not None:
            event.sequence_nr = edge[0]._sequence_nr()
            self._forward.setdefault(event.sequence_nr, event)
        if self.with_flops:
            event.flops = count_flops(name, args, result)
        return result

    def observe(self, node: Any, grads: Any, edges: Any, run: Callable[[], Any]) -> Any:
        """Run a node of backward inside of its two events, as PyTorch names them."""
        outer = self.begin(f"autograd::engine::evaluate_function: {node.name()}", node._sequence_nr())
        inner = self.begin(node.name(), node._sequence_nr())
        origin = self._forward.get(node._sequence_nr())
        for event in (outer, inner):
            if origin is not None:
                event.source, event.module, event.stack = origin.source, origin.module, origin.stack
            else:
                event.source = source_line_of(node)  # of an operation from before the block, say
            if self.record_shapes:
                event.input_shapes = [[] if grad is None else list(grad.shape) for grad in grads]
        if origin is not None and is_product(origin.name):
            inner.flops = origin.flops * sum(edge is not None for edge in edges[:2])
        try:
            result = run()
            if self._memory is not None:
                self._memory.see(result)
            return result
        finally:
            self.end(inner)
            self.end(outer)

    def see_arrival(self, node: Any, grad: Any) -> None:
        """Note that a leaf takes its gradient: two events as of other nodes, which take no time of their own."""
        outer = self.begin(f"autograd::engine::evaluate_function: {node.name()}", node._sequence_nr())
        self.end(self.begin(node.name(), node._sequence_nr()))
        self.end(outer)

    # What is shown.

    @property
    def function_events(self) -> EventList:
        """The events in the order they began."""
        if self._finished is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._finished

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any) -> EventList:
        """Averages by name, and by shapes of arguments or innermost lines of the program where these are asked for."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def by_operation(self) -> Report:
        """Time, memory and flops by operation, forward and backward apart."""
        return self.function_events.grouped("operation")

    def by_line(self) -> Report:
        """Time, memory and flops by the line of the program, its gradients included."""
        return self.function_events.grouped("line")

    def by_module(self) -> Report:
        """Time, memory and flops by module, its gradients included."""
        return self.function_events.grouped("module")

    def memory_timeline(self) -> list[MemoryEvent]:
        """What was allocated and freed, in order of time, with `profile_memory=True`."""
        return self.function_events.memory_timeline()

    def to_dict(self) -> dict[str, Any]:
        """The whole profile as plain data: events with their times and places, and the memory timeline."""
        return self.function_events.to_dict()

    def _repr_html_(self) -> str:
        return self.by_operation()._repr_html_()

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return self.function_events.self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing and Perfetto."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line per stack with its time, as flame graph tools read them; needs `with_stack=True`."""
        self.function_events.export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory timeline as JSON: a list of times in microseconds and a list of bytes held then."""
        self.function_events.export_memory_timeline(path)

    def __str__(self) -> str:
        return str(self._finished) if self._finished is not None else "<unfinished torch.autograd.profile>"

    __repr__ = __str__


def _innermost_profile() -> profile | None:
    observer = switches.node_observer
    while observer is not None and not isinstance(observer, profile):
        observer = observer._around
    return observer


class record_function:
    """Name a block of the program in the profile; also decorates functions."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        self._profile = _innermost_profile()
        if self._profile is not None:
            self._event = self._profile.begin(self.name)
            self._event.is_user_annotation = True
            self._event.source, self._event.module = calling_line(), self._profile._modules.path
        return self

    def __exit__(self, *exception: object) -> None:
        if self._profile is not None:
            self._profile.end(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class _Marker:
    """Markers for other tools, which do nothing on the CPU."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class emit_itt(_Marker):
    """Accepted; nothing listens here."""


class emit_nvtx(_Marker):
    """Accepted; nothing listens here."""


class EnforceUnique:
    """Raises if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of profiled loops."""

    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count."""
        cls._steps[requester] = 0

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count one more."""
        cls._steps[requester] = cls._steps.get(requester, 0) + 1
        return cls._steps[requester]

    @classmethod
    def current_step(cls) -> int:
        """The highest count."""
        return max(cls._steps.values(), default=0)


def load_nvprof(path: str) -> EventList:
    """Not available: there is no CUDA here."""
    raise NotImplementedError("load_nvprof reads traces of NVIDIA's profiler, which this build cannot make")


parse_nvprof_trace = load_nvprof
