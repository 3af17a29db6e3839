"""Engine: runs the recorded graph backward.

`execute` reads as its own summary. CPU work runs in the calling thread. First-order passes move raw arrays from node to
node; passes with `create_graph`, or with dispatch modes around, move Tensors; a node that needs Tensors (a custom Function,
a node with hooks) gets them wrapped and only there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.backend.device import in_use
from pullback.backend.silent_arithmetic import error_variable, ignoring
from pullback.engine.careful_run import run_carefully
from pullback.engine.graph_task import ExecInfo, GraphTask
from pullback.engine.input_buffer import FILLED, InputBuffer
from pullback.engine.leaks import begin_pass
from pullback.engine.passes import count_pass, end_pass, run_on_fresh_stack, running
from pullback.engine.ready_queue import ReadyQueue
from pullback.engine.streams import PassStreams
from pullback.errors import no_memory
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import GraphRoot
from pullback.graph.edge import Edge, Edges
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.source_lines import note_source_line
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.interception import is_backward_dispatched
from pullback.modes.switches import SWITCH_DEFAULTS, current_switches, process, switches

MAX_DEPTH = 30
"""Re-entrant passes deeper than a multiple of this go on in a thread of their own, whose stack is empty."""


class Engine:
    """Executes backward passes; one instance serves the process."""

    def execute(
        self,
        edges: Sequence[Edge],
        grads: Sequence[Any],
        *,
        keep_graph: bool,
        create_graph: bool,
        captures: Sequence[Edge] = (),
        wanted: Sequence[Node] = (),
        accumulate: bool = True,
        ends_at_captures: bool = False,
    ) -> list[Any]:
        """Send `grads` (Tensors) into `edges` and run what they reach; return the gradients at `captures`.

        Unless `accumulate`, only what leads to `captures` and to the nodes in `wanted` runs, and of the leaves only these
        accumulate. With `ends_at_captures`, nothing behind a capture is looked at: the caller knows that no path leads
        from one capture to another.
        """
        outer = running.task
        task = GraphTask(keep_graph=keep_graph, create_graph=create_graph, depth=outer.depth + 1 if outer else 0)
        task.errors = error_variable.get()
        task.called_at = begin_pass(edges, outer is None and not create_graph, keep_graph)
        root = GraphRoot(edges, grads)
        task.root = root
        ends = [node for node, _ in captures] if ends_at_captures else ()
        task.count_dependencies([root], ends)
        if process.changed:
            if is_backward_dispatched(task.dependencies):
                task.moves_tensors = True
                task.expand_layers(root)
            elif switches.dual_level >= 0:
                task.moves_tensors = task.carries_tangents = True
        if not task.moves_tensors:
            root.grads = tuple([g._array for g in grads])
        if not accumulate:
            task.mark_needed(root, list(captures), wanted, ends)
        if process.streams:
            task.streams = PassStreams(root)
        # What a recorded pass computes is recorded wherever it is called; others switch recording off for users' code.
        former = current_switches() if process.changed else SWITCH_DEFAULTS
        former_node = switches.current_node if task.moves_tensors else None
        try:
            running.task = task
            if outer is None:
                count_pass(task, True)
            if task.moves_tensors:
                set_grad_mode(create_graph)
            if task.depth and task.depth % MAX_DEPTH == 0:
                run_on_fresh_stack(lambda: self._run(task, root), task)
            else:
                self._run(task, root)
            if task.streams is not None:
                task.streams.end()
            if in_use:
                for library in in_use:
                    library.end_pass()
            if task.final_callbacks:
                task.run_callbacks()
        finally:
            end_pass(task, outer, former, former_node)
        return task.captured

    def _run(self, task: GraphTask, root: GraphRoot) -> None:
        """Send the root's gradients, then run nodes and send what they compute, until no ready node is left.

        A node that waited only for the one before it runs next, unless one in the queue comes first: a chain of operations
        never enters the queue.
        """
        info: dict[Node, ExecInfo] | None = task.exec_info
        moves_tensors = task.moves_tensors
        dependencies: dict[Node, int] = task.dependencies
        not_ready: dict[Node, InputBuffer] = task.not_ready
        queue: ReadyQueue = task.ready_queue
        heap: list[Any] = queue.heap
        leaves: list[Any] = queue.leaves
        keep_graph = task.keep_graph
        called_at = task.called_at
        log_nodes = process.log_nodes
        streams = task.streams
        node: Node = root
        following: Node
        grads: list[Any] = [None]
        owned: list[int] = [0]
        results: Sequence[Any] = root.grads
        fresh: tuple[int, ...] = ()
        # The hooks of a single root's tensor run even if nothing that is wanted lies below it.
        edges: Edges = root.next_edges if len(root.next_edges) == 1 else task.wanted_edges(root)
        token = error_variable.set(ignoring)
        try:
            while True:
                ready: Node | None = None
                ready_grads: list[Any] = []
                ready_owned: list[int] = []
                index = -1
                for edge in edges:
                    index += 1
                    if edge is None:
                        continue
                    following, input_nr = edge
                    left = dependencies[following] - 1
                    grad = results[index]
                    new = fresh[index] if fresh else 0
                    if not new and owned[0] and grad is grads[0]:
                        new = owned[0]  # handed on: as much owned as it was here, unless another edge gets it too
                        for other, result in enumerate(results):
                            if result is grad and other != index:
                                new = min(new, 0)
                    elif (
                        new <= 0 and type(following) is AccumulateGrad and _is_free_array(results, index)
                        and (new == 0 or (following.takes_arrays() and results[index].nbytes >= 4096))
                    ):  # fmt: skip
                        new = 1
                    if streams is not None:
                        streams.send(node, following, grad)
                    if left == 0 and following.output_count == 1 and following not in not_ready:
                        arrived = [grad.whole() if isinstance(grad, PartialGradient) else grad]
                        arrived_owned = [new]
                    else:
                        buffer = not_ready.get(following)
                        if buffer is None:
                            buffer = not_ready[following] = InputBuffer(following.output_count)
                        if grad is not None and moves_tensors:
                            if process.changed:  # anomaly mode: the sum is induced by the node that sent the gradient
                                switches.current_node = node
                            buffer.add_tensor(input_nr, grad, new)
                        elif grad is not None:
                            buffer.add(input_nr, grad, new)
                        if left:
                            dependencies[following] = left
                            continue
                        del not_ready[following]
                        arrived, arrived_owned = buffer.grads, buffer.owned
                    dependencies[following] = 0
                    if type(following) is AccumulateGrad and task.only_accumulates(following):
                        if arrived[0] is not None:
                            following.accumulate_array(arrived[0], arrived_owned[0])
                        continue
                    if ready is not None:
                        queue.push(ready, ready_grads, ready_owned)
                    ready, ready_grads, ready_owned = following, arrived, arrived_owned

                if ready is not None and not leaves and not (heap and heap[0][0] < -ready.sequence_nr):
                    node, grads, owned = ready, ready_grads, ready_owned
                else:
                    if ready is not None:
                        queue.push(ready, ready_grads, ready_owned)
                    elif not heap and not leaves:
                        return
                    node, grads, owned = queue.pop()

                edges = node.next_edges if info is None else task.wanted_edges(node)
                if streams is not None:
                    streams.enter(node, not edges or task.captures_at(node))
                if (
                    node.extra is not None or node.needs_tensors or type(node) is AccumulateGrad
                    or process.changed or log_nodes or process.passes != 1
                    or (info is not None and (node not in info or info[node].captures))
                ):  # fmt: skip
                    results, grad, outcome = (), None, None  # nothing but `grads` shall hold what arrived
                    outcome = run_carefully(task, node, edges, grads, owned)
                    if outcome is None:
                        results, edges = (), ()
                    else:
                        results, fresh, edges = outcome
                    continue
                if grads[0] is None and all(g is None for g in grads):
                    results = (None,) * len(edges)
                elif moves_tensors:
                    results = node.apply_differentiable(grads, edges)
                else:
                    results = node.apply(grads, edges, owned[0] > 0)
                if not keep_graph:
                    node.release_saved_tensors()
                    node.freed_by = called_at
                fresh = node.fresh
                if moves_tensors and fresh and fresh[0] < 0:
                    fresh = ()
                elif owned[0] == FILLED and not fresh and _is_view_of(results, grads[0]):
                    fresh = (FILLED,)
        except Exception as error:
            # The array library's error has a class of its own; a MemoryError of the user's hooks arrives as it is.
            if isinstance(error, MemoryError) and type(error) is not MemoryError and (told := no_memory(error)):
                note_source_line(told, node)
                raise told from None
            note_source_line(error, node)
            raise
        finally:
            error_variable.reset(token)

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the current backward pass ends."""
        task = running.task
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.final_callbacks.append(callback)


def _is_view_of(results: Sequence[Any], grad: Any) -> bool:
    """Whether a node's one gradient lies in the memory of the one that arrived: if that repeats one value, so does it."""
    return (
        len(results) == 1
        and type(results[0]) is ndarray
        and results[0].base is not None
        and (results[0].base is grad or results[0].base is grad.base)
    )


def _is_free_array(results: Sequence[Any], index: int) -> bool:
    """Whether nothing but `results` and the engine's loop holds an array."""
    return (
        type(results[index]) is ndarray
        and results[index].base is None
        and getrefcount(results[index]) == 3  # with the reference that it is called with
    )


engine = Engine()
