"""A backward pass that stops after each node: what `Tensor.backward_steps` runs.

The order of nodes and of sums is that of `Engine._run`, without its short cuts: no gradient is overwritten, so all of them
can be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback.backend.silent_arithmetic import error_variable
from pullback.engine.careful_run import as_value, evaluate, run_carefully
from pullback.engine.graph_task import GraphTask
from pullback.engine.input_buffer import InputBuffer
from pullback.engine.leaks import begin_pass
from pullback.engine.passes import running_pass
from pullback.engine.streams import PassStreams
from pullback.engine.validation import fit_gradients
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import GraphRoot
from pullback.graph.edge import Edge, Edges
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.saved_tensor import begin_reading
from pullback.graph.source_lines import note_source_line
from pullback.modes.switches import process
from pullback.native import silent


class Arrival(NamedTuple):
    """A node whose gradients are complete; it has not run yet."""

    node: Node
    grads: tuple[Any, ...]


class Departure(NamedTuple):
    """A node that ran, with what it sends along its edges."""

    node: Node
    edges: Edges
    grads: tuple[Any, ...]


def run_in_steps(
    edges: Sequence[Edge],
    grads: Sequence[Any],
    *,
    keep_graph: bool,
    wanted: Sequence[Node] = (),
    only_look: bool = False,
) -> Iterator[Arrival | Departure]:
    """Send `grads` (Tensors) into `edges` and run what they reach; stop before and after each node.

    `only_look`: nodes compute what they send, and nothing else happens: no hook runs, no leaf gets a gradient.
    """
    task = GraphTask(keep_graph=keep_graph, create_graph=False, depth=0)
    task.errors = error_variable.get()
    task.called_at = begin_pass(edges, not only_look, keep_graph)
    root = GraphRoot(edges, [grad._array for grad in grads])
    task.root = root
    task.count_dependencies([root])
    if process.streams:
        task.streams = PassStreams(root)
    if wanted:
        task.mark_needed(root, [], wanted)
    sent = Departure(root, task.wanted_edges(root), root.grads)
    while True:
        _send(task, sent)
        if not len(task.ready_queue):
            break
        node, arrived, _ = task.ready_queue.pop()
        yield Arrival(node, tuple(arrived))
        with on_stream_of(task, node):
            sent = _look(task, node, arrived) if only_look else _run(task, node, arrived)
        yield sent
    if task.streams is not None:
        task.streams.end()
    with running_pass(task):
        task.run_callbacks()


@contextmanager
def on_stream_of(task: GraphTask, node: Node, sender: Node | None = None, grad: Any = None) -> Iterator[None]:
    """Run a block on the stream of a node, to which `sender` sends a gradient; after it the user's stream is back."""
    streams = task.streams
    if streams is not None and sender is not None:
        streams.send(sender, node, grad)
    elif streams is not None:
        streams.enter(node, not node.next_edges)
    try:
        yield
    finally:
        if streams is not None:
            streams.pause()


def _send(task: GraphTask, sent: Departure) -> None:
    """Add gradients to what has arrived at the next nodes, and queue those that wait for no other."""
    for edge, grad in zip(sent.edges, sent.grads, strict=False):
        if edge is None:
            continue
        node, input_nr = edge
        buffer = task.not_ready.setdefault(node, InputBuffer(node.output_count))
        if grad is not None:
            with on_stream_of(task, node, sent.node, grad):
                buffer.add(input_nr, grad, 0)
        task.dependencies[node] -= 1
        if not task.dependencies[node]:
            del task.not_ready[node]
            task.ready_queue.push(node, buffer.grads, [0] * len(buffer.grads))


@silent
def _run(task: GraphTask, node: Node, grads: list[Any]) -> Departure:
    with running_pass(task):
        try:
            edges = task.wanted_edges(node)
            outcome = run_carefully(task, node, edges, grads, [0] * len(grads))
        except Exception as error:
            note_source_line(error, node)
            raise
    if outcome is None:
        return Departure(node, (), ())
    results = tuple([grad.whole() if isinstance(grad, PartialGradient) else grad for grad in outcome[0]])
    return Departure(node, outcome[2], results)


@silent
def _look(task: GraphTask, node: Node, grads: list[Any]) -> Departure:
    """Compute what a node would send."""
    if isinstance(node, AccumulateGrad):
        return Departure(node, (), ())
    acting, edges = task.acting_for(node, task.wanted_edges(node))
    reading = begin_reading(acting) if acting.extra is not None and acting.extra.packed else ()
    try:
        with running_pass(task):
            results = evaluate(task, acting, edges, list(grads), reading)
    finally:
        for value in reading:
            value.read = None
    if acting.needs_tensors:
        results = [grad if grad is None else as_value(grad) for grad in fit_gradients(acting, results)]
    return Departure(node, edges, tuple(results))
