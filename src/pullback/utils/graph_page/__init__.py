"""A page about a recorded graph that opens in any browser: `graph_page(loss)`, `watch_backward()`, `pullback view`.

The layout is our own (arranging.py, page.js): the layout libraries that are well kept are larger than everything else
on the page together (ELK 1.5 MB, Graphviz in WebAssembly 2 MB), and folding keeps what is laid out at a time small.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pullback.autograd import differentiation
from pullback.autograd.profiler import profile
from pullback.errors import GraphFreedError
from pullback.modes.kept_gradients import KeptGradients
from pullback.tensor.tensor import Tensor
from pullback.utils.graph_page.backward_recording import BackwardRecording
from pullback.utils.graph_page.names_around import NamesAround
from pullback.utils.graph_page.node_table import Row, read_table
from pullback.utils.graph_page.page import Page, allocations, page_data
from pullback.utils.graph_page.watching import BackwardWatch, title_of, watch_backward, why_it_ended

__all__ = ["BackwardWatch", "Page", "graph_page", "watch_backward"]


def graph_page(
    loss: Any, params: Any = None, *, run_backward: bool = True, title: str | None = None, profiled: Any = None
) -> Page:
    """Make a page about the graph behind `loss`, a tensor or several.

    `params` names its leaves: a module, a mapping or pairs. Others have the names of the program's variables.

    The backward pass is run once for it, so that gradients can be shown step by step: no `.grad` is changed, and the
    graph is kept. Hooks that are registered run, too. A tensor with several elements is taken as their sum. Call it
    before `backward()`, which frees what the pass needs; afterwards, or with `run_backward=False`, the page shows
    the graph without steps. `profiled` is a `profiler.profile` that saw the
    computation: the page shows its times and its memory.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> page = graph_page((x * x).sum(), {"x": x})
    >>> [page.data["nodes"][step["node"]]["name"] for step in page.data["steps"]]
    ['SumBackward0', 'MulBackward0', 'x']
    >>> x.grad is None
    True
    """
    roots = list(loss) if isinstance(loss, list | tuple) else [loss]
    for root in roots:
        if not isinstance(root, Tensor):
            raise TypeError(f"graph_page expects a tensor or several, got {type(root).__name__}")
    if not any(root.requires_grad for root in roots):
        raise ValueError("graph_page needs a tensor with a graph behind it: none of what was given requires grad")
    around = NamesAround()
    params = around if params is None else params
    rows = read_table(roots, params, around)
    notes: list[str] = []
    with profile() as times, KeptGradients(), BackwardRecording(rows) as recording:
        if run_backward:
            try:
                _run(roots, rows)
            except Exception as error:
                notes.append(why_it_ended(error))
                if isinstance(error, GraphFreedError):
                    recording.steps.clear()  # some nodes save nothing, and ran
    events = [event for event in times.function_events if event.sequence_nr >= 0]
    if profiled is not None:
        events = list(profiled.events())
    data = page_data(rows, recording.steps, title=title or title_of(rows), notes=notes, events=events, params=params)
    with contextlib.suppress(RuntimeError):  # it may have no memory timeline
        data["allocated"] = allocations(() if profiled is None else profiled.memory_timeline(), events, recording.steps)
    return Page(data)


def _run(roots: list[Any], rows: list[Row]) -> None:
    """Run the pass to all leaves once."""
    leaves = [row.node.variable for row in rows if row.kind == "leaf"]
    starts = [root for root in roots if root.requires_grad]
    grads = [root.detach().new_ones(root.shape) for root in starts]
    differentiation.run_engine(starts, grads, leaves, True, False, allow_unused=True, accumulate=False)
