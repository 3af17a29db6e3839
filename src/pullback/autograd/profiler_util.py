"""What a profile consists of: events with their times and nesting, averages by name, the table, the Chrome trace."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

__all__ = [
    "EventList", "EventMetadata", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MemRecordsAcc", "StringTable",
]  # fmt: skip


class Interval:
    """A stretch of time, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class Kernel:
    """A piece of work on an accelerator."""

    def __init__(self, name: str, device: int, duration: float) -> None:
        self.name, self.device, self.duration = name, device, duration


class EventMetadata:
    """Further facts of an event."""


class StringTable(defaultdict[str, str]):
    """Names as they are shown."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records; kept for programs that ask for the name."""

    def __init__(self, mem_records: Any) -> None:
        self._mem_records = mem_records


def format_time(microseconds: float) -> str:
    """A time with a unit that suits it.

    >>> format_time(1234.5)
    '1.234ms'
    """
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _formatted(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as text."""

    cpu_time_str = _formatted("cpu_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    count: int
    cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """The average time of one call."""
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count


class FunctionEvent(FormattedTimesMixin):
    """One call: an operation, a node of backward, or a block named by record_function."""

    def __init__(self, id: int, name: str, thread: int, start_us: float, sequence_nr: int = -1) -> None:
        self.id = id
        self.name = self.trace_name = self.key = name
        self.thread = thread
        self.time_range = Interval(start_us, start_us)
        self.sequence_nr = sequence_nr
        self.input_shapes: list[Any] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.count = 1
        self.is_user_annotation = False
        self.cpu_memory_usage = 0
        self.device_time_total = 0.0
        self.stack: list[str] = []

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]  # computed here, stored in averages
        """Microseconds from start to end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The same without the calls inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} thread={self.thread}>"


class FunctionEventAvg(FormattedTimesMixin):
    """The sum over all calls of one name."""

    def __init__(self) -> None:
        self.key: str = ""
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes: Any = None

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event or another average."""
        self.key = self.key or other.key
        self.input_shapes = self.input_shapes or other.input_shapes
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"count={self.count}>"
        )


class EventList(list[Any]):
    """Events or averages, with a table and a trace."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shapes: bool = False, **options: Any) -> EventList:
        """The averages by name, or by name and input shapes."""
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, str(event.input_shapes)) if group_by_input_shapes else event.key
            averages.setdefault(key, FunctionEventAvg()).add(event)
        return EventList(averages.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = "Total"
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """A table of the events, the first `row_limit` in the order of `sort_by`."""
        events = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None) is not None)]
        if sort_by is not None:
            events.sort(key=lambda e: getattr(e, sort_by.replace("cuda", "device"), 0), reverse=True)
        total = sum(e.self_cpu_time_total for e in events) or 1.0
        width = min(max([len(e.key) for e in events] + [4]) + 4, max_name_column_width)
        columns = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        rule = "  ".join(["-" * width, *["-" * 12] * len(columns)]) + "  "
        lines = [header] if header else []
        lines += [rule, "  ".join(["Name".rjust(width), *[c.rjust(12) for c in columns]]) + "  ", rule]
        for event in events[: row_limit if row_limit >= 0 else None]:
            name = event.key if len(event.key) <= width else event.key[: width - 3] + "..."
            cells = [
                f"{event.self_cpu_time_total / total * 100:.2f}%", event.self_cpu_time_total_str,
                f"{event.cpu_time_total / total * 100:.2f}%", event.cpu_time_total_str, event.cpu_time_str, str(event.count),
            ]  # fmt: skip
            lines.append("  ".join([name.rjust(width), *[c.rjust(12) for c in cells]]) + "  ")
        lines += [rule, f"Self CPU time total: {format_time(total if events else 0.0)}", ""]
        return "\n".join(lines)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing; forward and backward of one operation are joined by an arrow."""
        entries: list[dict[str, Any]] = []
        forward: dict[int, Any] = {}
        for event in self:
            entries.append(
                {"name": event.name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
                 "tid": event.thread, "pid": "CPU functions", "args": {"sequence_nr": event.sequence_nr}}
            )  # fmt: skip
            if event.sequence_nr < 0:
                continue
            if event.name.startswith("autograd::engine::evaluate_function"):
                start = forward.get(event.sequence_nr)
                if start is not None:
                    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, "pid": "CPU functions"}
                    entries.append({**common, "ph": "s", "ts": start.time_range.start, "tid": start.thread})
                    entries.append({**common, "ph": "f", "bp": "e", "ts": event.time_range.start, "tid": event.thread})
            else:
                forward.setdefault(event.sequence_nr, event)
        with open(path, "w") as file:
            json.dump(entries, file)

    def __str__(self) -> str:
        return self.table()


def nest(events: Iterable[FunctionEvent]) -> None:
    """Say of each event which other of its thread it ran inside of."""
    open_events: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in sorted(events, key=lambda e: (e.thread, e.time_range.start, -e.time_range.end)):
        stack = open_events[event.thread]
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            event.cpu_parent = stack[-1]
            stack[-1].cpu_children.append(event)
        stack.append(event)
