"""One self-contained page about a graph: the text of its three files, and the data that they show.

`Page` is what users hold; what it shows is plain data (`Page.data`), made here of the table, the groups, the steps of a
backward pass and the events of a profile.
"""

from __future__ import annotations

import html
import json
import math
import os
import webbrowser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pullback.backend.array_summary import first_values, summarise
from pullback.utils.graph_page.arranging import arrange
from pullback.utils.graph_page.backward_recording import Step
from pullback.utils.graph_page.folding import fold
from pullback.utils.graph_page.node_table import Row
from pullback.version import __version__

__all__ = ["Page", "allocations", "page_data"]

FOLDER = Path(__file__).parent
MOST_EVENTS = 20_000


class Page:
    """A page about a graph, ready to be saved, opened or shown in a notebook."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def html(self) -> str:
        """The text of the page; nothing outside of it is needed."""
        style, script, frame = [
            (FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
        ]
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        parts = {"title": html.escape(self.data["title"]), "style": style, "data": data, "script": script}
        text = frame
        for name, part in parts.items():
            before, _, after = text.partition(f"<!-- {name} -->")
            text = before + part + after
        return text

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html, encoding="utf-8")
        return path

    def open(self, path: str | os.PathLike[str] = "graph.html") -> Path:
        """Write the page and open it in the browser, where there is one."""
        saved = self.save(path).resolve()
        webbrowser.open(saved.as_uri())
        return saved

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:640px;border:1px solid #8884;'
            'border-radius:8px" title="graph"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page: {len(self.data['nodes'])} boxes; .save(path) writes it, .open() shows it>"


def page_data(
    rows: Sequence[Row], steps: Sequence[Step] = (), *, title: str = "graph", notes: Iterable[str] = (),
    events: Sequence[Any] = (), params: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Everything that a page shows, as JSON can hold it."""
    groups = arrange(fold(rows), rows)
    classes = _module_classes(params)
    for group in groups:
        if group["path"] in classes:
            group["type"] = classes[group["path"]]
    sequence = {row.sequence_nr: position for position, row in enumerate(rows) if row.kind == "operation"}
    return {
        "title": title, "version": __version__, "notes": list(notes),
        "nodes": [_node(row) for row in rows],
        "groups": groups,
        "steps": [_step(step) for step in steps],
        "memory": _memory(rows, steps),
        "allocated": [],
        "events": _events(events, sequence, steps),
    }  # fmt: skip


def _module_classes(params: Any) -> dict[str, str]:
    """The class of each module by its path, where the leaves were named by a module."""
    if not hasattr(params, "named_modules"):
        return {}
    return {path: type(module).__name__ for path, module in params.named_modules() if path}


def _node(row: Row) -> dict[str, Any]:
    described: dict[str, Any] = {
        "kind": row.kind, "label": row.label, "name": row.name, "inputs": row.inputs,
        "outputs": [[list(shape), dtype] for shape, dtype in row.outputs],
    }  # fmt: skip
    if row.module:
        described["module"] = row.module
    if row.saved:
        described["saved"] = [[s.name, list(s.shape), s.dtype, s.bytes, s.storage] for s in row.saved]
    if row.place is not None:
        described["place"] = list(row.place)
    grad = getattr(getattr(row.node, "variable", None), "grad", None)
    if grad is not None and hasattr(grad, "_array"):
        described["grad"] = {"summary": _short(dict(summarise(grad._array))), "values": first_values(grad._array)}
    return described


def _step(step: Step) -> dict[str, Any]:
    return {
        "node": step.row,
        "grads": [None if summary is None else _short(dict(summary)) for summary in step.summaries],
        "values": step.values,
        "time": None if step.microseconds is None else round(step.microseconds, 2),
    }


def _short(summary: dict[str, Any]) -> dict[str, Any]:
    """Six digits are enough to be looked at, and keep a page of ten thousand nodes small."""
    return {key: _rounded(value) for key, value in summary.items()}


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _memory(rows: Sequence[Row], steps: Sequence[Step]) -> list[list[int]]:
    """What saved tensors hold after each recorded operation, and after each step of the backward pass that frees them.

    Entries are phase (0: forward, 1: backward), row and bytes. Shared memory counts once, from its first holder's recording
    until its last one's step.
    """
    held: dict[int, tuple[int, int]] = {}
    total = 0
    timeline: list[list[int]] = []
    operations = [position for position, row in enumerate(rows) if row.kind == "operation"]
    for position in sorted(operations, key=lambda p: rows[p].sequence_nr):
        for saved in rows[position].saved:
            holders, size = held.get(saved.storage, (0, saved.bytes))
            total += size if holders == 0 else 0
            held[saved.storage] = (holders + 1, size)
        timeline.append([0, position, total])
    for step in steps:
        if rows[step.row].kind != "operation":
            continue
        for saved in rows[step.row].saved:
            holders, size = held[saved.storage]
            total -= size if holders == 1 else 0
            held[saved.storage] = (holders - 1, size)
        timeline.append([1, step.row, total])
    return timeline


def _start_of_pass(events: Sequence[Any], steps: Sequence[Step]) -> float:
    """When backward began: by the events, which may be of an earlier pass than the steps, else by the steps."""
    starts = [event.time_range.start for event in events if event.is_backward] or [step.start for step in steps]
    return min(starts, default=math.inf)


def allocations(timeline: Sequence[Any], events: Sequence[Any], steps: Sequence[Step]) -> list[list[Any]]:
    """Phase, bytes and operation after each allocation and release that a profile saw among these events.

    The bytes are of all results and gradients that were made since and are still there.
    """
    first = min((event.time_range.start for event in events), default=math.inf)
    start_of_pass = _start_of_pass(events, steps)
    seen = [event for event in timeline if event.time_us >= first][:MOST_EVENTS]
    before = seen[0].total_bytes - seen[0].bytes if seen else 0
    return [
        [int(event.time_us >= start_of_pass), max(event.total_bytes - before, 0), event.operation] for event in seen
    ]


def _events(events: Sequence[Any], sequence: dict[int, int], steps: Sequence[Step]) -> list[list[Any]]:
    """Name, start, duration, depth, phase (0: forward, 1: backward) and row (or -1) of each event, times in microseconds.

    Time in which nothing runs is left out: much of it is spent on watching.
    """
    ended = [event for event in events if event.time_range.end > event.time_range.start]
    ended.sort(key=lambda event: (event.thread, event.time_range.start, -event.time_range.end))
    start_of_pass = _start_of_pass(events, steps)
    found: list[list[Any]] = []
    around: list[Any] = []
    left_out, latest = 0.0, -math.inf
    modules = _ModuleSpans()
    for event in ended[:MOST_EVENTS]:
        start, end = event.time_range.start, event.time_range.end
        while around and (around[-1].thread != event.thread or around[-1].time_range.end < end):
            around.pop()
        if not around:
            left_out = start - (latest - left_out) if math.isfinite(latest) else start
            latest = end
            modules.go_to(event.module, event.thread, int(start >= start_of_pass), start - left_out, end - left_out)
        row = sequence.get(event.sequence_nr, -1)
        phase, depth = int(start >= start_of_pass), len(around) + modules.depth
        found.append([event.name, round(start - left_out, 2), round(end - start, 2), depth, phase, row])
        around.append(event)
    return modules.spans + found


class _ModuleSpans:
    """Spans of time for modules, made of the events inside: from the first to the last in a row."""

    def __init__(self) -> None:
        self.spans: list[list[Any]] = []
        self._open: list[list[Any]] = []
        self._key: tuple[Any, ...] = ()

    @property
    def depth(self) -> int:
        """How many modules are around the current event."""
        return len(self._open)

    def go_to(self, path: str, thread: int, phase: int, start: float, end: float) -> None:
        """Close the modules that the next event is not in, open those that it is in, and make all last until its end."""
        names = path.split(".") if path else []
        shared = 0
        while self._key == (thread, phase) and shared < min(len(names), len(self._open)):
            if self._open[shared][0] != names[shared]:
                break
            shared += 1
        self._key = (thread, phase)
        del self._open[shared:]
        for depth in range(shared, len(names)):
            span: list[Any] = [names[depth], round(start, 2), 0.0, depth, phase, -1]
            self._open.append(span)
            self.spans.append(span)
        for span in self._open:
            span[2] = round(end - span[1], 2)
