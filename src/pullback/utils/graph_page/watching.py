"""Watches a program for its backward pass and makes the page about it: forward computation, pass and times together."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from pullback.autograd import differentiation
from pullback.autograd.graph import record_source_lines
from pullback.autograd.profiler import profile
from pullback.errors import GraphFreedError
from pullback.utils.graph_page.backward_recording import BackwardRecording
from pullback.utils.graph_page.names_around import NamesAround
from pullback.utils.graph_page.node_table import Row, read_table
from pullback.utils.graph_page.page import Page, allocations, page_data

__all__ = ["BackwardWatch", "title_of", "watch_backward", "why_it_ended"]


class BackwardWatch:
    """What `watch_backward` saw: the number of passes, and the page once the wanted one has ended."""

    def __init__(
        self, params: Any, number: int, title: str | None, then: Callable[[Page], None] | None, every_thread: bool
    ) -> None:
        self.page: Page | None = None
        self.passes = 0
        self._params, self._number, self._title, self._then = params, number, title, then
        self._times = profile(profile_memory=True)
        self._stop = contextlib.ExitStack()
        self._thread, self._is_inside = None if every_thread else threading.get_ident(), False

    def _repr_html_(self) -> str | None:
        return None if self.page is None else self.page._repr_html_()

    def __enter__(self) -> BackwardWatch:
        importlib.import_module("pullback.nn")  # above this layer; calls of its modules are followed from here on
        self._stop.enter_context(record_source_lines())
        self._stop.enter_context(self._times)
        self._stop.enter_context(self._watched_autograd())
        self._stop.enter_context(self._watched_transforms())
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.close()

    @contextlib.contextmanager
    def _watched_autograd(self) -> Iterator[None]:
        """See the passes of `backward` and `autograd.grad`."""
        run_engine = differentiation.run_engine

        def watched(roots: Any, grads: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
            tensors = [root for root in roots if hasattr(root, "grad_fn")]
            ends = [getattr(value, "grad_fn", None) for value in inputs]
            return self._see(tensors, ends, lambda: run_engine(roots, grads, inputs, *arguments, **options))

        differentiation.run_engine = watched
        try:
            yield
        finally:
            differentiation.run_engine = run_engine

    @contextlib.contextmanager
    def _watched_transforms(self) -> Iterator[None]:
        """See the passes of pullback.func, which hands edges to the engine itself."""
        transforms: Any = importlib.import_module("pullback.func.transform_level")  # above this layer
        engine = transforms.engine

        def execute(edges: Any, grads: Any, **options: Any) -> Any:
            starts = zip(edges, grads, strict=True)
            roots = [SimpleNamespace(shape=grad.shape, dtype=grad.dtype, grad_fn=edge[0]) for edge, grad in starts]
            ends = [edge[0] for edge in options.get("captures", ())]
            return self._see(roots, ends, lambda: engine.execute(edges, grads, **options))

        transforms.engine = SimpleNamespace(execute=execute)
        try:
            yield
        finally:
            transforms.engine = engine

    def _see(self, roots: list[Any], ends: list[Any], run: Callable[[], Any]) -> Any:
        """Run a pass from `roots` that may return the gradients at the nodes `ends`; make the page of the wanted one.

        Passes of other threads are left alone unless they are asked for, and so are those inside of another pass (of a
        checkpoint, say), or beside one.
        """
        if self._is_inside or self._thread not in (None, threading.get_ident()):
            return run()
        self.passes += 1
        self._is_inside = True
        try:
            if self.passes == self._number:
                return self._record(roots, ends, run)
            result = run()
            self._forget()
            return result
        finally:
            self._is_inside = False

    def _record(self, roots: list[Any], ends: list[Any], run: Callable[[], Any]) -> Any:
        """Run the wanted pass and make its page."""
        around = NamesAround()
        names = around if self._params is None else self._params
        rows = read_table(roots, names, around)
        recording, notes = BackwardRecording(rows), []
        try:
            with recording:
                captured = run()
            recording.note_captures(ends, captured or ())
            return captured
        except Exception as error:
            notes.append(why_it_ended(error))
            raise
        finally:
            self._make_page(rows, recording, notes, names)
            self._forget()

    def _forget(self) -> None:
        """Drop what was profiled so far.

        The profile itself goes on until the block ends: what was entered after it (autocast, a transform) is left first.
        """
        self._times._events.clear()
        self._times._forward.clear()
        if self._times._memory is not None:
            self._times._memory.events.clear()

    def _make_page(self, rows: list[Row], recording: BackwardRecording, notes: list[str], names: Any) -> None:
        title, events, memory = self._title or title_of(rows), self._times._events, self._times._memory
        data = page_data(rows, recording.steps, title=title, notes=notes, events=events, params=names)
        data["allocated"] = allocations([] if memory is None else memory.events, events, recording.steps)
        self.page = Page(data)
        if self._then is not None:
            self._then(self.page)


def watch_backward(
    params: Any = None, *, number: int = 1, title: str | None = None, then: Callable[[Page], None] | None = None,
    every_thread: bool = False,
) -> BackwardWatch:  # fmt: skip
    """Watch the block's operations and its backward pass (the first, or the one of this `number`), and make its page.

    Unlike `graph_page` it sees the forward computation as well, so the page has the times of both. A pass that fails is
    shown up to there. `then` is called with the page as soon as the pass has ended. With `every_thread` passes of other
    threads count too, though their forward computation is not timed.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> with watch_backward({"x": x}) as watch:
    ...     (x * x).sum().backward()
    >>> watch.page
    <Page: 4 boxes; .save(path) writes it, .open() shows it>
    """
    return BackwardWatch(params, number, title, then, every_thread)


def title_of(rows: list[Row]) -> str:
    """What a page is called where nobody named it."""
    operations = sum(row.kind == "operation" for row in rows)
    leaves = sum(row.kind == "leaf" for row in rows)
    counted = f"{operations:,} operation{'s' * (operations != 1)}, {leaves:,} {'leaf' if leaves == 1 else 'leaves'}"
    return f"{rows[0].label}: {counted}"


def why_it_ended(error: Exception) -> str:
    """What the page says of a pass that failed."""
    if isinstance(error, GraphFreedError):
        return (
            "The graph has been freed by backward(), so the pass cannot be played. Call graph_page before it, "
            "or backward(retain_graph=True)."
        )
    reason = str(error).strip().partition("\n")[0]
    return f"The backward pass ended in {type(error).__name__}: {reason} The steps up to there are shown."
