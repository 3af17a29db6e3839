"""explain: what compile makes of a call, in words."""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pullback.compiling.backend import build
from pullback.compiling.capture import Capture
from pullback.compiling.capturing import capture
from pullback.compiling.compiled_function import CompiledFunction
from pullback.compiling.entries import Entry
from pullback.compiling.explanation_page import page
from pullback.compiling.function_text import CannotSplit, text_of
from pullback.compiling.kernel_times import KernelList, timed_kernel_lists, timed_kernel_lists_of_piece
from pullback.compiling.pieces import Segments
from pullback.compiling.program import Program, Value
from pullback.compiling.program_graph import graph_of
from pullback.compiling.recorder import Stop
from pullback.compiling.statistics import counters
from pullback.compiling.structure import flatten
from pullback.fx.graph_module import GraphModule
from pullback.modes.inside_compiled import call_inside


class Segment(NamedTuple):
    """A piece of a function that becomes a program of its own: its lines, and how many kernels they called."""

    first: int
    last: int
    kernels: int


class Explanation:
    """Programs, breaks and kernels of one call. Printed, it is the whole report.

    Its attributes have the names of PyTorch's: `graph_count`, `graph_break_count`, `op_count`, `break_reasons`.
    """

    def __init__(
        self,
        stops: list[Stop],
        entry: Entry | None,
        segments: Sequence[Segment] = (),
        recompilations: Sequence[str] = (),
        kernels: Sequence[KernelList] = (),
        name: str = "a function",
        trace: Callable[[], list[Any]] = list,
    ) -> None:
        self.name = name
        self._trace = trace
        self.kernels = kernels
        """What the programs consist of: for each a title and its kernels, with text and seconds where they are known."""
        self.recompilations = recompilations
        """How often the compiled function was recorded before, for which reasons, and what sizes became of it."""
        self.break_reasons = _distinct(stops)
        self.graph_break_count = len(self.break_reasons)
        self.segments = segments
        self.graph_count = len(segments) if entry is None else 1
        self.entry = entry
        self.op_count = sum(segment.kernels for segment in segments) if entry is None else entry.calls

    def __str__(self) -> str:
        return "\n".join([self._programs(), *self.recompilations])

    def _programs(self) -> str:
        if self.entry is None and self.segments:
            lines = [f"{len(self.segments)} segments of {self.op_count} kernels. Python runs between them."]
            lines += [f"  lines {s.first} to {s.last}: {s.kernels} kernels" for s in self.segments]
            lines += ["What ends a segment:", *[f"  {stop.describe()}" for stop in self.break_reasons]]
            return "\n".join(lines)
        if self.entry is None:
            lines = ["The function runs eagerly. What keeps it from being one program:"]
            lines += [f"  {stop.describe()}" for stop in self.break_reasons]
            return "\n".join(lines)
        entry = self.entry
        lines = [f"One program of {self.op_count} kernels."]
        lines += ["Forward:", *_kernels(entry.forward_program)]
        if entry.backward_program is not None:
            kept = entry.forward_program.outputs[entry.shown :]
            size = sum(_bytes(value) for value in kept if type(value) is Value)
            lines += [f"Kept for backward: {entry.kept} arrays, {size:,} bytes.", "Backward:"]
            lines += _kernels(entry.backward_program)
        lines.append(f"Runs as: {describe_runner(entry.run_forward)}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def summary(self) -> str:
        """The first line of the report."""
        return self._programs().splitlines()[0]

    @cached_property
    def graphs(self) -> list[Any]:
        """The operations of each piece as an `fx.GraphModule`. The function runs again when they are asked for."""
        return self._trace()

    @cached_property
    def forward_program(self) -> GraphModule | None:
        """The kernels of a function that is one program, as an `fx.GraphModule` of arrays; None of one that is not."""
        return None if self.entry is None else graph_of(self.entry.forward_program)

    @cached_property
    def backward_program(self) -> GraphModule | None:
        """Those of its backward: the inputs are what was kept, and the gradients."""
        has_none = self.entry is None or self.entry.backward_program is None
        return None if has_none else graph_of(self.entry.backward_program)  # type: ignore[union-attr,arg-type]  # asked

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        """The operations of each graph."""
        return [[node.target for node in graph.graph.nodes if node.op.startswith("call")] for graph in self.graphs]

    @property
    def out_guards(self) -> list[str]:
        """What is compared before Python is skipped: the inputs of the program, in words."""
        return [] if self.entry is None else [str(given.value) for given in self.entry.inputs]

    @property
    def compile_times(self) -> str:
        """How many programs were made so far."""
        return ", ".join(f"{name} {number}" for name, number in sorted(counters["stats"].items()))

    @property
    def kept(self) -> list[str]:
        """The arrays that a program keeps for its backward."""
        if self.entry is None or self.entry.backward_program is None:
            return []
        kept = self.entry.forward_program.outputs[self.entry.shown :]
        return [f"{v.dtype} {list(map(int, v.shape))}, {_bytes(v):,} bytes" for v in kept if type(v) is Value]

    def to_html(self) -> str:
        """The report as a self-contained page: breaks with lines, recompilations, kernels with their text and time."""
        return page(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_html(), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.to_html())}" style="width:100%;height:640px" title="compile"></iframe>'
        )


def explain(function: Any) -> Callable[..., Explanation]:
    """A function that takes a call's arguments, runs it once, and tells what compile makes of it."""
    wanted = getattr(function, "function", function)
    module = getattr(function, "_orig_mod", None)
    wanted = wanted if module is None else module.__call__

    def explain_call(*args: Any, **kwargs: Any) -> Explanation:
        text = text_of(wanted)
        code = None if text is None else text.__code__
        made = call_inside(capture, (wanted, args, kwargs, code), {"with_spots": True})
        if made is None:
            raise RuntimeError("explain: another call is being recorded at the same time. Call it again.")
        entry = None if made.stops else Entry(made, wanted, build)
        segments = [] if entry is not None or text is None else _segments(wanted, text, made)
        made.release_traced()
        leaves: list[Any] = []
        flatten((args, kwargs), leaves)
        kernels = _piece_kernels(function) if entry is None else timed_kernel_lists(entry, leaves)
        made.release()
        name = getattr(wanted, "__qualname__", type(wanted).__name__)
        return Explanation(
            made.stops, entry, segments, _recompilations(function), kernels, name, lambda: _graphs(wanted, args, kwargs)
        )

    return explain_call


def _graphs(function: Any, args: Any, kwargs: Any) -> list[Any]:
    """The graphs that a backend gets of a call and of those after it."""
    graphs: list[Any] = []

    def keep(graph: Any, examples: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = CompiledFunction(function, backend=keep)
    for _ in range(3):  # a function that breaks is cut in its second call
        graphs.clear()
        compiled(*args, **kwargs)
        if graphs:
            break
    return graphs


def _piece_kernels(function: Any) -> list[KernelList]:
    """The kernels of the pieces of a compiled function that were compiled in calls before."""
    segments = getattr(function, "segments", None)
    return [
        listed
        for piece in ([] if segments is None else segments.pieces)
        for kind in piece.kinds.values()
        for entry in kind.entries[:1]
        if isinstance(entry, Entry)
        for listed in timed_kernel_lists_of_piece(entry, f"Lines {piece.lines[0]} to {piece.lines[1]}: ")
    ]


def _recompilations(function: Any) -> list[str]:
    """What is known of the calls of a compiled function before."""
    kinds = getattr(function, "kinds", None)
    if not kinds:
        return []
    instances = sum(kind.is_instance for kind in kinds.values())
    lines = [
        f"Recorded for {len(kinds) - instances} kinds of arguments; {instances} more have programs made for their sizes."
    ]
    lines += [
        f"  eager for one kind: {stop.describe()}" for kind in kinds.values() if kind.is_eager for stop in kind.stops
    ]
    return [*lines, *[f"  recorded for a shape of its own: {problem}" for problem in function.templates.problems]]


def _segments(function: Any, text: Any, made: Capture) -> list[Segment]:
    """The pieces of a function that broke, with how many kernels each called."""
    try:
        pieces = Segments(CompiledFunction(function), text, made).pieces
    except CannotSplit:
        return []
    found = []
    for piece in pieces:
        first, last = piece.lines
        kernels = sum(1 for spot in made.spots if spot is not None and first <= spot[0] <= last)
        if kernels:
            found.append(Segment(first, last, kernels))
    return found


def describe_runner(runner: Any) -> str:
    """What a runner says of itself."""
    describe = getattr(runner, "describe", None)
    return str(describe()) if describe is not None else type(runner).__name__


def _distinct(stops: list[Stop]) -> list[Stop]:
    """Each reason at each line once."""
    seen: dict[str, Stop] = {}
    for stop in stops:
        seen.setdefault(stop.describe(), stop)
    return list(seen.values())


def _kernels(program: Program) -> list[str]:
    """The kernels of a program, with how often each is called."""
    counts = Counter(call.kernel for call in program.calls)
    lines = [f"  {count:5d} {name}" for name, count in counts.most_common()]
    return lines or ["      nothing"]


def _bytes(value: Value) -> int:
    size = value.dtype.itemsize
    for length in value.shape:
        size *= length
    return int(size)
