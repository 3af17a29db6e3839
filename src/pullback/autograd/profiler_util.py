"""What a profile consists of: events with their times and nesting, averages by name, the table, the Chrome trace."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from types import FrameType
from typing import Any

from pullback.graph.source_lines import PACKAGE, SourceLine
from pullback.report import Report, bytes_text, place_text

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


_EVALUATE = "autograd::engine::evaluate_function: "


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
        self.self_cpu_memory_usage = 0
        self.device_time_total = 0.0
        self.flops = 0
        self.concrete_inputs: list[Any] = []
        self.stack: list[str] = []
        """The lines of the program that led here, innermost first, as `file(line): function`."""
        self.source: SourceLine | None = None
        self.module = ""

    @property
    def line(self) -> str:
        """The line of the program that called the operation, or whose gradient this is."""
        return (self.source and place_text(self.source.place)) or ""

    @property
    def is_backward(self) -> bool:
        """Whether this is a node of backward, or runs inside of one."""
        event: FunctionEvent | None = self
        while event is not None:
            if event.name.startswith(_EVALUATE):
                return True
            event = event.cpu_parent
        return False

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
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.stack: list[str] = []

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event or another average."""
        self.key = self.key or other.key
        self.input_shapes = self.input_shapes or other.input_shapes
        self.count += other.count
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        self.stack = self.stack or other.stack
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
    """Events or averages, with tables and traces."""

    options: dict[str, bool] = {}
    """What the profile was asked to record."""
    memory: list[Any] | None = None
    metadata: dict[str, Any] = {}
    """What a program adds to the trace, by name."""
    shows_shapes = False
    shows_stack = 0

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, **options: Any) -> EventList:
        """The averages by name, and by input shapes or by the innermost `group_by_stack_n` lines of the program."""
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = (event.key, shapes, tuple(event.stack[:group_by_stack_n]))
            averages.setdefault(key, FunctionEventAvg()).add(event)
        result = EventList(averages.values())
        result.options, result.memory = self.options, self.memory
        result.shows_shapes, result.shows_stack = group_by_input_shapes, group_by_stack_n
        return result

    def total_average(self) -> FunctionEventAvg:
        """The sum of everything."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = "Total"
        return total

    # Grouped by what the program is made of.

    def grouped(self, by: str) -> Report:
        """Self time, memory and flops by "operation", "line" or "module", most time first."""
        rows: dict[str, dict[str, Any]] = {}
        for event in self:
            if event.is_user_annotation and by != "operation":
                continue  # what runs inside of it is there under lines and modules of its own
            key = event.key.removeprefix(_EVALUATE) if by == "operation" else getattr(event, by)
            row = rows.setdefault(
                key or f"(no {by})",
                {by: key or f"(no {by})", "calls": 0, "forward_us": 0.0, "backward_us": 0.0, "total_us": 0.0,
                 "share": 0.0, "allocated_bytes": 0, "flops": 0},
            )  # fmt: skip
            time = event.self_cpu_time_total
            row["backward_us" if event.is_backward else "forward_us"] += time
            row["total_us"] += time
            row["calls"] += not event.name.startswith(_EVALUATE)
            row["allocated_bytes"] += max(0, event.self_cpu_memory_usage)
            row["flops"] += event.flops
        total = sum(row["total_us"] for row in rows.values())
        for row in rows.values():
            row["share"] = row["total_us"] / total if total else 0.0
        columns = [by, "calls", "forward_us", "backward_us", "total_us", "share"]
        columns += ["allocated_bytes"] * bool(self.options.get("profile_memory"))
        columns += ["flops"] * bool(self.options.get("with_flops"))
        ordered = sorted(rows.values(), key=lambda row: -row["total_us"])
        return Report(f"Time by {by}", columns, ordered, {"total_us": total})

    def memory_timeline(self) -> list[Any]:
        """What was allocated and freed, in order of time."""
        if self.memory is None:
            raise RuntimeError("the profile has no memory timeline: profile with profile_memory=True")
        return self.memory

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data: one dict per event, with the position of the event around it, and the memory."""
        positions = {id(event): index for index, event in enumerate(self)}
        events = [
            {
                "name": event.name, "start_us": event.time_range.start, "duration_us": event.cpu_time_total,
                "self_us": event.self_cpu_time_total, "thread": event.thread, "sequence_nr": event.sequence_nr,
                "parent": None if event.cpu_parent is None else positions[id(event.cpu_parent)],
                "backward": event.is_backward, "annotation": event.is_user_annotation, "line": event.line,
                "module": event.module, "shapes": event.input_shapes, "bytes": event.self_cpu_memory_usage,
                "flops": event.flops, "stack": event.stack,
            }
            for event in self
        ]  # fmt: skip
        memory = [event._asdict() for event in self.memory or ()]
        return {"events": events, "memory": memory, "options": dict(self.options)}

    # The table.

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
        shown = events[: row_limit if row_limit >= 0 else None]
        columns = [("Name", [_shortened(e.key, max_name_column_width) for e in shown]), *_time_columns(shown, total)]
        if self.options.get("profile_memory"):
            columns.append(("CPU Mem", [bytes_text(e.cpu_memory_usage) for e in shown]))
            columns.append(("Self CPU Mem", [bytes_text(e.self_cpu_memory_usage) for e in shown]))
        columns.append(("# of Calls", [str(e.count) for e in shown]))
        if self.shows_shapes and self.options.get("record_shapes"):
            columns.append(
                ("Input Shapes", [_shortened(str(e.input_shapes or []), max_shapes_column_width) for e in shown])
            )
        if self.shows_stack:
            lines = [" <- ".join(e.stack[: self.shows_stack]) for e in shown]
            columns.append(("Source Location", [_shortened(line, max_src_column_width) for line in lines]))
        if self.options.get("with_flops"):
            columns.append(("Total FLOPs", [f"{e.flops:,}" if e.flops else "--" for e in shown]))
        widths = [max(12, *[len(cell) for cell in (name, *cells)]) for name, cells in columns]
        rule = "  ".join("-" * width for width in widths) + "  "
        lines = [header] if header else []
        lines += [
            rule,
            "  ".join(name.rjust(width) for (name, _), width in zip(columns, widths, strict=True)) + "  ",
            rule,
        ]
        for index in range(len(shown)):
            cells = [cells[index].rjust(width) for (_, cells), width in zip(columns, widths, strict=True)]
            lines.append("  ".join(cells) + "  ")
        lines += [rule, f"Self CPU time total: {format_time(total if events else 0.0)}", ""]
        return "\n".join(lines)

    # Files.

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing and Perfetto, packed if `path` ends in .gz.

        Forward and backward of one operation are joined by an arrow; memory is shown as a counter.
        """
        process = os.getpid()
        entries: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": 0, "args": {"name": "pullback"}}
        ]
        forward: dict[int, Any] = {}
        for event in self:
            entries.append(_trace_entry(event, process))
            if event.sequence_nr < 0:
                continue
            if event.name.startswith(_EVALUATE):
                start = forward.get(event.sequence_nr)
                if start is not None:
                    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, "pid": process}
                    entries.append({**common, "ph": "s", "ts": start.time_range.start, "tid": start.thread})
                    entries.append({**common, "ph": "f", "bp": "e", "ts": event.time_range.start, "tid": event.thread})
            else:
                forward.setdefault(event.sequence_nr, event)
        for change in self.memory or ():
            place = {"pid": process, "tid": change.thread, "ts": change.time_us}
            held = {"Bytes": change.bytes, "Total Allocated": change.total_bytes, "Device Type": 0, "Device Id": -1}
            entries.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "args": held, **place})
            entries.append({"ph": "C", "name": "memory", "args": {"bytes": change.total_bytes}, **place})
        options = {name: int(value) for name, value in self.options.items()}
        trace = {"schemaVersion": 1, "deviceProperties": [], **options, **self.metadata, "displayTimeUnit": "ms",
                 "traceEvents": entries, "traceName": str(path)}  # fmt: skip
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            json.dump(trace, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line per stack, outermost frame first, with its time in whole microseconds."""
        if not self.options.get("with_stack"):
            raise RuntimeError("the profile has no stacks to export: profile with with_stack=True")
        sums: dict[str, float] = defaultdict(float)
        for event in self:
            if event.stack:
                frames = [frame.replace(";", ",").replace(" ", "_") for frame in reversed(event.stack)]
                sums[";".join([*frames, event.name.replace(" ", "_")])] += getattr(
                    event, metric.replace("cuda", "device")
                )
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {int(value)}\n" for stack, value in sums.items() if int(value) > 0)

    def export_memory_timeline(self, path: str) -> None:
        """Write `[times in microseconds, bytes held then]` as JSON."""
        timeline = self.memory_timeline()
        with open(path, "w", encoding="utf-8") as file:
            json.dump([[e.time_us for e in timeline], [e.total_bytes for e in timeline]], file)

    def _repr_html_(self) -> str:
        return (
            self.grouped("operation")._repr_html_()
            if self and hasattr(self[0], "is_backward")
            else f"<pre>{self}</pre>"
        )

    def __str__(self) -> str:
        return self.table()


def _time_columns(events: list[Any], total: float) -> list[tuple[str, list[str]]]:
    return [
        ("Self CPU %", [f"{e.self_cpu_time_total / total * 100:.2f}%" for e in events]),
        ("Self CPU", [e.self_cpu_time_total_str for e in events]),
        ("CPU total %", [f"{e.cpu_time_total / total * 100:.2f}%" for e in events]),
        ("CPU total", [e.cpu_time_total_str for e in events]),
        ("CPU time avg", [e.cpu_time_str for e in events]),
    ]


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _trace_entry(event: FunctionEvent, process: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"Sequence number": event.sequence_nr, "External id": event.id}
    if event.input_shapes:
        facts["Input Dims"] = event.input_shapes
    if event.stack:
        facts["Call stack"] = ";".join(event.stack)
    if event.line:
        facts["Line"] = event.line
    if event.module:
        facts["Module Hierarchy"] = event.module
    if event.flops:
        facts["Flops"] = event.flops
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.name, "pid": process,
        "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": facts,
    }  # fmt: skip


def calling_stack() -> list[str]:
    """The lines of the program that led here, innermost first; those of this package are left out."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return lines


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
