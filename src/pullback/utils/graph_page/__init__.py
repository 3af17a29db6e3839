"""A page about a recorded graph that opens in any browser: `graph_page(loss)`, `watch_backward()`, `pullback view`.

The layout is our own (arranging.py, page.js): the layout libraries that are well kept are larger than everything else
on the page together (ELK 1.5 MB, Graphviz in WebAssembly 2 MB), and folding keeps what is laid out at a time small.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pullback.autograd import differentiation
from pullback.autograd.graph import record_source_lines
from pullback.autograd.profiler import profile
from pullback.errors import GraphFreedError
from pullback.utils.graph_page.backward_recording import BackwardRecording, Step
from pullback.utils.graph_page.names_around import NamesAround
from pullback.utils.graph_page.node_table import Row, read_table
from pullback.utils.graph_page.page import Page, page_data

__all__ = ["BackwardWatch", "Page", "graph_page", "watch_backward"]


def graph_page(loss: Any, params: Any = None, *, run_backward: bool = True, title: str | None = None) -> Page:
    """Make a page about the graph behind `loss`, a tensor or several.

    `params` names its leaves: a module, a mapping or pairs. Without it, they have the names of the program's variables.

    The backward pass is run once for it, so that gradients can be shown step by step: no `.grad` is changed, and the
    graph is kept. Hooks that are registered run, too. A tensor with several elements is taken as their sum. Call it
    before `backward()`, which frees what the pass needs; afterwards, or with `run_backward=False`, the page shows
    the graph without steps.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> page = graph_page((x * x).sum(), {"x": x})
    >>> [page.data["nodes"][step["node"]]["name"] for step in page.data["steps"]]
    ['SumBackward0', 'MulBackward0', 'x']
    >>> x.grad is None
    True
    """
    roots = list(loss) if isinstance(loss, list | tuple) else [loss]
    if not any(root.requires_grad for root in roots):
        raise ValueError("graph_page needs a tensor with a graph behind it: none of what was given requires grad")
    params = NamesAround() if params is None else params
    rows = read_table(roots, params)
    steps: list[Step] = []
    events: list[Any] = []
    notes: list[str] = []
    if run_backward:
        try:
            steps, events = _run(roots, rows)
        except GraphFreedError:
            notes.append(
                "The graph has been freed by backward(), so the pass cannot be played. Call graph_page before it, "
                "or backward(retain_graph=True)."
            )
    return Page(page_data(rows, steps, title=title or _title(rows), notes=notes, events=events, params=params))


def _run(roots: list[Any], rows: list[Row]) -> tuple[list[Step], list[Any]]:
    """Run the pass to all leaves once."""
    leaves = [row.node.variable for row in rows if row.kind == "leaf"]
    starts = [root for root in roots if root.requires_grad]
    with profile() as times, BackwardRecording(rows) as recording:
        grads = [root.detach().new_ones(root.shape) for root in starts]
        differentiation.run_engine(starts, grads, leaves, True, False, allow_unused=True, accumulate=False)
    return recording.steps, [event for event in times.function_events if event.sequence_nr >= 0]


def _title(rows: list[Row]) -> str:
    operations = sum(row.kind == "operation" for row in rows)
    leaves = sum(row.kind == "leaf" for row in rows)
    return f"{rows[0].label}: {operations} operations, {leaves} leaves"


class BackwardWatch:
    """What `watch_backward` saw: the number of passes, and the page once the wanted one has ended."""

    def __init__(self) -> None:
        self.page: Page | None = None
        self.passes = 0


@contextlib.contextmanager
def watch_backward(
    params: Any = None, *, number: int = 1, title: str | None = None, then: Callable[[Page], None] | None = None
) -> Iterator[BackwardWatch]:
    """Watch the block's operations and its backward pass (the first, or the one of this `number`), and make its page.

    Unlike `graph_page` it sees the forward computation as well, so the page has the times of both. `then` is called with
    the page as soon as the pass has ended.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> with watch_backward({"x": x}) as watch:
    ...     (x * x).sum().backward()
    >>> watch.page
    <Page: 4 boxes; .save(path) writes it, .open() shows it>
    """
    watch = BackwardWatch()
    run_engine = differentiation.run_engine
    times = profile()

    def watched(roots: Any, *arguments: Any, **options: Any) -> Any:
        watch.passes += 1
        if watch.passes != number:
            result = run_engine(roots, *arguments, **options)
            times._events.clear()
            return result
        names = NamesAround() if params is None else params
        rows = read_table([root for root in roots if hasattr(root, "grad_fn")], names)
        with BackwardRecording(rows) as recording:
            result = run_engine(roots, *arguments, **options)
        stop.close()
        data = page_data(rows, recording.steps, title=title or _title(rows), events=times.function_events, params=names)
        watch.page = Page(data)
        if then is not None:
            then(watch.page)
        return result

    def put_back() -> None:
        differentiation.run_engine = run_engine

    with contextlib.ExitStack() as stop:
        stop.enter_context(record_source_lines())
        stop.enter_context(times)
        differentiation.run_engine = watched
        stop.callback(put_back)
        yield watch
