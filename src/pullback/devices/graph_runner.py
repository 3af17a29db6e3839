"""GraphRunner: a recorded program whose launches the device takes down once and repeats by itself.

# Note [Replayed graphs]
The host needs microseconds for a launch and the device a fraction of one, so a program of many small kernels waits for the
host. A device that can take launches down (`Library.capture`) repeats them as one. What was taken down knows addresses, not
arrays, and so:

- The first calls run kernel by kernel, until everything is compiled and allocated that is made on first use.
- An input that lies where it lay before is read in place; one that moved twice is copied to a place of its own first.
- Results lie in memory of the graph, and the next call writes over them. They are lent: as long as somebody holds one of
  those of the last call, the next runs kernel by kernel. If that happens again, launches are taken down anew, with memory of
  their own, and this result is copied from then on.
- Python numbers, and values in the memory of the host, are part of what was taken down: with others it does not fit.
- A program that draws random numbers is taken down only by a device whose launches read where the stream is, and one whose
  kernels read values on the host never.

Whatever goes wrong while launches are taken down, nothing was launched: the program runs kernel by kernel.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.device_array import DeviceArray
from pullback.backend.random import default_generator

CALLS_BEFORE = 2
"""How many calls run kernel by kernel first."""
CAPTURES = 6
"""How often a program is taken down. The last time everything that may move or be held is copied."""


class Loan:
    """Lives as long as somebody holds a result that lies in memory of a graph, and keeps that memory."""

    __slots__ = ("__weakref__", "memory")

    def __init__(self, memory: Any) -> None:
        self.memory = memory


class GraphRunner:
    """Runs a program; `calls` runs it kernel by kernel. See Note [Replayed graphs]."""

    def __init__(self, library: Any, program: Any, calls: Callable[[Sequence[Any]], list[Any]]) -> None:
        self._library, self._program, self._calls = library, program, calls
        self._lock = threading.Lock()
        self._called = self._captures = 0
        self._graph: _Graph | None = None
        self._moved: Counter[int] = Counter()
        self._held: Counter[int] = Counter()
        self._used = _used_inputs(program)
        going_on = ("optimizer.",) if library.repeats_draws else ("optimizer.", "random.")
        states = [call.kernel for call in program.calls if call.kernel.startswith(going_on)]
        self.reason = f"{states[0]} goes on from where it was" if states else ""
        """Why launches are not taken down, if they are not."""

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if self.reason or not self._lock.acquire(blocking=False):
            return self._calls(inputs)
        try:
            return self._run(inputs)
        finally:
            self._lock.release()

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        self._called += 1
        if self._called <= CALLS_BEFORE:
            outputs = self._calls(inputs)
            self._library.end_pass()  # as at the end of what is taken down, so that the same kernels are compiled
            return outputs
        raws = [
            given.raw if isinstance(given, DeviceArray) and n in self._used else None for n, given in enumerate(inputs)
        ]
        on_host = [_on_host(given) for n, given in enumerate(inputs) if raws[n] is None and n in self._used]
        graph = self._graph
        if graph is not None:
            if graph.stream != self._library.current_stream():
                return self._calls(inputs)
            held = graph.held()
            self._held.update(held)
            if any(self._held[n] < 2 for n in held):
                return self._calls(inputs)
            moved = graph.moved(raws)
            self._moved.update(moved)
            if not held and not moved and graph.on_host == on_host:
                return graph.replay(inputs, raws)
        if self._captures == CAPTURES:
            self.reason, self._graph = "the numbers that it computes with change", None
            return self._calls(inputs)
        self._captures += 1
        self._graph = None
        state = default_generator.pack_state()
        try:
            self._graph = graph = _Graph(self, inputs, raws, on_host)
            if default_generator.pack_state().tobytes() != state.tobytes():
                raise RuntimeError("random numbers are drawn on the host")
        except Exception as error:  # nothing was launched
            default_generator.unpack_state(state)
            self.reason, self._graph = f"{type(error).__name__}: {error}", None
            return self._calls(inputs)
        return graph.replay(inputs, raws)

    def describe(self) -> str:
        """What runs, for `explain`."""
        if self._graph is not None:
            return (
                f"{len(self._program.calls)} kernels, repeated by the device as one graph ({self._graph.nodes} nodes)"
            )
        return f"{len(self._program.calls)} kernels, one after the other" + (f" ({self.reason})" if self.reason else "")


class _Graph:
    """Launches that were taken down, for inputs at certain addresses."""

    def __init__(self, runner: GraphRunner, inputs: Sequence[Any], raws: Sequence[Any], on_host: list[Any]) -> None:
        self._library: Any = runner._library
        library = self._library
        self.stream = library.current_stream()
        self.on_host = on_host
        self._addresses = [None if raw is None else library.address(raw) for raw in raws]
        is_last = runner._captures == CAPTURES
        moving = [n for n, raw in enumerate(raws) if raw is not None and (is_last or runner._moved[n] > 1)]
        self._copies = {n: library.room_for(raws[n]) for n in moving}
        given = [library.wrapper(self._copies[n]) if n in self._copies else array for n, array in enumerate(inputs)]
        self._captured = library.capture(lambda: runner._calls(given))
        self.nodes: int = self._captured.nodes
        self._raws: list[Any] = [made.raw if isinstance(made, DeviceArray) else None for made in self._captured.results]
        program = runner._program
        self._written = [place for place, _ in program.writes if place in self._copies]
        self._results = [
            self._source_of(value, made, program, raws)
            for value, made in zip(program.outputs, self._captured.results, strict=True)
        ]
        self._copied = {n for n in range(len(self._raws)) if is_last or runner._held[n] > 1}
        self._loans: dict[int, weakref.ref[Loan]] = {}

    def _source_of(self, value: Any, made: Any, program: Any, raws: Sequence[Any]) -> Any:
        """Where a result comes from: the place of an input, with an offset in bytes; an array of its own; or the graph."""
        if value is None or value.constant is not None:
            return made
        if not isinstance(made, DeviceArray):
            raise RuntimeError("a result lies in the memory of the host")
        raw = made.raw
        if value in program.inputs and program.inputs.index(value) not in self._copies:
            return (program.inputs.index(value), None)
        low, high = self._library.bounds(raw)
        for n, given in enumerate(raws):
            if given is not None and n not in self._copies and raw.size:
                first, last = self._library.bounds(given)
                if first <= low and high <= last:
                    return (n, self._library.address(raw) - self._library.address(given))
        return _OWN

    def held(self) -> list[int]:
        """The results of the last call that somebody holds."""
        return [n for n, loan in self._loans.items() if loan() is not None]

    def moved(self, raws: Sequence[Any]) -> list[int]:
        """The inputs that do not lie where they lay."""
        address = self._library.address
        return [
            n for n, (raw, former) in enumerate(zip(raws, self._addresses, strict=True))
            if raw is not None and n not in self._copies and address(raw) != former
        ]  # fmt: skip

    def replay(self, inputs: Sequence[Any], raws: Sequence[Any]) -> list[Any]:
        """Run it."""
        library = self._library
        for n, copy in self._copies.items():
            library.copy_memory(copy, raws[n])
        self._captured.launch()
        for n in self._written:
            library.copy_memory(raws[n], self._copies[n])
        outputs: list[Any] = []
        for n, (source, raw) in enumerate(zip(self._results, self._raws, strict=True)):
            if source is _OWN:
                outputs.append(library.wrapper(self._handed_out(n, raw)))
            elif type(source) is tuple:
                place, offset = source
                outputs.append(
                    inputs[place] if offset is None
                    else library.wrapper(library.view_of(raws[place], raw.shape, raw.dtype, offset, raw.strides))
                )  # fmt: skip
            else:
                outputs.append(source)
        return outputs

    def _handed_out(self, n: int, raw: Any) -> Any:
        if n in self._copied:
            copy = self._library.room_for(raw)
            self._library.copy_memory(copy, raw)
            return copy
        loan = Loan(self._captured)
        self._loans[n] = weakref.ref(loan)
        return self._library.lent(raw, loan)


_OWN = object()


def _on_host(given: Any) -> Any:
    """What tells one number, or array of the host, from another."""
    return (given.dtype, given.tobytes()) if hasattr(given, "tobytes") else (type(given), repr(given))


def _used_inputs(program: Any) -> set[int]:
    """The places of the inputs that a program reads, writes or gives back: others are there for what follows it."""
    read: set[Any] = {*program.outputs, *[program.inputs[place] for place, _ in program.writes]}
    for call in program.calls:
        _collect([call.arguments, call.options], read)
    return {n for n, value in enumerate(program.inputs) if value in read}


def _collect(given: Any, found: set[Any]) -> None:
    """Put the values of a program that stand in arguments, and whatever else can be hashed, into a set."""
    if isinstance(given, (tuple, list)):
        for part in given:
            _collect(part, found)
    elif isinstance(given, dict):
        _collect(list(given.values()), found)
    elif type(given).__hash__ is not None:
        found.add(given)
