"""Engine: runs the recorded graph backward.

`execute` reads as its own summary. CPU work runs in the calling thread. First-order passes move raw arrays from node to
node; passes with `create_graph`, or with dispatch modes around, move Tensors; a node that needs Tensors (a custom Function,
a node with hooks) gets them wrapped and only there.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from sys import getrefcount
from typing import Any

from pullback.backend.array_module import as_array, contains_nan, expanded_first, ndarray
from pullback.backend.device import in_use
from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.silent_arithmetic import error_variable, ignoring
from pullback.backend.sparse_array import SparseArray
from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.engine.graph_task import ExecInfo, GraphTask
from pullback.engine.input_buffer import FILLED, IN_FULL, InputBuffer
from pullback.engine.leaks import begin_pass
from pullback.engine.ready_queue import ReadyQueue
from pullback.engine.streams import PassStreams
from pullback.engine.validation import fit_gradient, fit_gradients
from pullback.errors import AnomalyError, no_memory
from pullback.graph.accumulate_grad import USERS, AccumulateGrad
from pullback.graph.anomaly_metadata import report_anomaly
from pullback.graph.basic_nodes import GraphRoot
from pullback.graph.edge import Edge, Edges
from pullback.graph.hooks import HookDict, call_node_hooks, call_tensor_hooks
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.saved_tensor import PackedTensor, begin_reading
from pullback.graph.source_lines import note_source_line
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.guards import guarded
from pullback.modes.interception import dispatch, is_backward_dispatched
from pullback.modes.switches import (
    SWITCH_DEFAULTS,
    current_switches,
    process,
    set_switch,
    set_switches,
    switched,
    switches,
)
from pullback.native.locks import process_lock
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor


class _Running(threading.local):
    """The pass that runs in this thread, innermost last."""

    task: GraphTask | None = None


_running = _Running()
_log = logging.getLogger("pullback.autograd")
_passes = 0
_passes_lock = process_lock()
_locks_lock = process_lock()


def _forget_other_threads() -> None:
    """In a child process: passes of other threads ended with them."""
    global _passes
    _passes = 0 if _running.task is None else 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def _lock_of(node: Node) -> threading.RLock:  # type: ignore[valid-type, unused-ignore]  # a factory in older typeshed
    """The node's own lock, made when passes of several threads first meet."""
    with _locks_lock:
        if node.lock is None:
            node.lock = threading.RLock()
        return node.lock


@guarded
def _count_pass(task: GraphTask, runs: bool) -> None:
    """Count an outermost pass while it runs, once."""
    global _passes
    with _passes_lock:
        _passes += runs - task.is_counted
        task.is_counted = runs
        if runs and _passes > 1:
            note_unpromised(ARRIVAL, "backward passes of several threads, where they share leaves")


def is_running() -> bool:
    """Whether a backward pass runs in any thread."""
    return _passes > 0


@guarded
def _end_pass(task: GraphTask, outer: GraphTask | None, former: dict[str, Any], former_node: Any) -> None:
    """Leave the thread as it was before the pass. See Note [Guards]."""
    if task.moves_tensors:
        switches.current_node = former_node
    _running.task = outer
    if process.changed or former is not SWITCH_DEFAULTS:  # what hooks entered and did not leave ends with the pass
        observer, former_observer = switches.node_observer, former["node_observer"]
        set_switches(former)
        if former_observer is not None and former_observer.is_stopped:  # by what ran in the pass: it is not put back
            set_switch("node_observer", observer)
    if task.streams is not None:
        task.streams.leave()
    if outer is None:
        _count_pass(task, False)


MAX_DEPTH = 30
"""Re-entrant passes deeper than a multiple of this go on in a thread of their own, whose stack is empty."""


def run_on_fresh_stack(run: Callable[[], None], task: GraphTask) -> None:
    """Run a deeply nested pass in a new thread with this thread's switches, and raise here what it raises."""
    state = current_switches()
    others = {name: getattr(switches, name) for name in ("anomaly_check_nan", "dual_ids", "current_node")}
    failure: list[BaseException] = []

    def target() -> None:
        _running.task = task
        set_switches(state)
        vars(switches).update(others)
        try:
            run()
        except BaseException as error:
            failure.append(error)
        finally:
            set_switches(SWITCH_DEFAULTS)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


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
        accumulate. With `ends_at_captures`, what lies behind a capture is not looked at: the caller knows that no path
        leads from there to another one.
        """
        outer = _running.task
        task = GraphTask(keep_graph=keep_graph, create_graph=create_graph, depth=outer.depth + 1 if outer else 0)
        task.errors = error_variable.get()
        task.called_at = begin_pass(edges, outer is None and not create_graph, keep_graph)
        root = GraphRoot(edges, grads)
        task.root = root
        ends = [node for node, _ in captures] if ends_at_captures else ()
        task.count_dependencies([root], ends)
        if process.changed and is_backward_dispatched(task.dependencies):
            task.moves_tensors = True
            task.expand_layers(root)
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
            _running.task = task
            if outer is None:
                _count_pass(task, True)
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
            _end_pass(task, outer, former, former_node)
        return task.captured

    def _run(self, task: GraphTask, root: GraphRoot) -> None:
        """Send the root's gradients, then run nodes and send what they compute until none is left that is ready.

        A node that only waited for the one before it runs next, unless one in the queue comes first: a chain of operations
        costs no queue at all.
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
                    or process.changed or log_nodes or _passes != 1
                    or (info is not None and (node not in info or info[node].captures))
                ):  # fmt: skip
                    results, grad, outcome = (), None, None  # nothing but `grads` shall hold what arrived
                    outcome = self._run_carefully(task, node, edges, grads, owned)
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

    def _run_carefully(
        self, task: GraphTask, node: Node, edges: Edges, grads: list[Any], owned: list[int]
    ) -> tuple[Sequence[Any], tuple[int, ...], Edges] | None:
        """The general case: hooks, captures, accumulation, Tensors where they are needed.

        Return the gradients, which of them are owned (Note [Owned gradients]) and where they go; None where nothing does.
        """
        if process.log_nodes:
            shapes = ", ".join("None" if g is None else str(list(g.shape)) for g in grads)
            _log.debug("Executing: %r with grad_outputs: [%s]", node, shapes)
        buffer = InputBuffer(0)
        buffer.grads, buffer.owned = grads, owned
        if not task.moves_tensors:
            _show_as_made(grads, owned)
        if not self._prepare(task, node, buffer):
            return None
        if isinstance(node, AccumulateGrad):
            self._accumulate(task, node, buffer)
            return None
        acting, edges = task.acting_for(node, edges)
        extra = node.extra
        results = self._evaluate_guarded(task, acting, edges, grads)
        if acting is not node and not task.keep_graph:
            node.release_saved_tensors()  # what it kept for passes that were reading it: Note [Expansion]
        held = list(owned)
        owned[:] = [0] * len(owned)  # what saw a gradient may have kept it
        fresh = acting.fresh
        tensors = task.moves_tensors or node.needs_tensors
        if extra is not None and extra.post_hooks:
            if not tensors:
                results = list(results)
                _show_as_made(results, fresh)
            results, tensors = self._post_hooks(task, node, extra.post_hooks, edges, grads, results), True
        if node.needs_tensors:
            results = fit_gradients(node, results)
        if process.changed and switches.anomaly_mode and switches.anomaly_check_nan:
            _check_nan(node, edges, results)
        if task.moves_tensors:
            fresh = _own(results, grads, held)
        elif tensors:
            fresh = _held_here_alone(results)
            results = _as_values(results)
        return results, fresh, edges

    def _prepare(self, task: GraphTask, node: Node, buffer: InputBuffer) -> bool:
        """Hooks on the arriving gradients, captures, pre-hooks; False if the node itself need not run."""
        if node.extra is not None and node.extra.former_shape:
            _restore_shape(task, node, buffer)
        info = None
        if task.exec_info is not None:
            info = task.exec_info.get(node)
            if info is None:
                self._tensor_hooks(task, node, buffer)
                return False
            if info.needed:  # as in PyTorch: what hooks replace is seen by the nodes below alone
                task.capture(info, buffer.grads, buffer.owned)
        self._tensor_hooks(task, node, buffer)
        if info is not None and not info.needed:
            task.capture(info, buffer.grads, buffer.owned)
            return False
        extra = node.extra
        if extra is not None and extra.pre_hooks:
            shown = node.shown_outputs()
            tensors = _as_tensors(task, buffer.grads[:shown])
            replaced = list(_in_mode(task, None, call_node_hooks, extra.pre_hooks, tensors))
            del tensors
            self._take_over(task, buffer, range(shown), replaced)
        return True

    def _tensor_hooks(self, task: GraphTask, node: Node, buffer: InputBuffer) -> None:
        """Run tensor hooks, then retain_grad. See Note [Hook order] in graph/hooks.py."""
        extra = node.extra
        if isinstance(node, AccumulateGrad):
            self._cast_for_leaf(task, node, buffer)
            hooks = node.variable._extra.hooks if node.variable._extra is not None else None
            if hooks:
                self._replace(task, node, buffer, 0, partial(call_tensor_hooks, hooks))
            if process.changed and switches.node_observer is not None:
                switches.node_observer.tell_arrival(node, buffer.grads[0])
        if extra is None:
            return
        for output_nr, tensor_hooks in list(extra.tensor_hooks.items()):
            if tensor_hooks and (buffer.grads[output_nr] is not None or node.tells_absent_gradients):
                self._replace(task, node, buffer, output_nr, partial(call_tensor_hooks, tensor_hooks))
        for output_nr, keep in list(extra.retain_hooks.items()):
            self._replace(task, node, buffer, output_nr, keep)

    def _cast_for_leaf(self, task: GraphTask, node: AccumulateGrad, buffer: InputBuffer) -> None:
        """Bring the gradient of a leaf whose `grad_dtype` the user chose to that dtype, before hooks see it."""
        grad, wanted = buffer.grads[0], node.chosen_dtype()
        if grad is None or wanted is None or isinstance(grad, SparseArray):
            return
        array = grad._array if task.moves_tensors else as_array(grad)
        if array.dtype != wanted:
            cast = _in_mode(task, node, (grad if task.moves_tensors else as_tensor(grad)).to, from_numpy_dtype(wanted))
            self._take_over(task, buffer, (0,), [cast])

    def _replace(self, task: GraphTask, node: Node, buffer: InputBuffer, index: int, run: Callable[[Any], Any]) -> None:
        """Run hooks on one gradient as a Tensor; a replacement takes its place."""
        wrapped = buffer.grads[index]
        if not task.moves_tensors and wrapped is not None:
            wrapped = as_tensor(wrapped)
            buffer.grads[index] = None  # the Tensor alone holds it, so that it shows whether the hook has kept it
        shown = [wrapped]
        del wrapped
        after = [_in_mode(task, node, run, shown[0])]
        if after[0] is not None and after[0] is not shown[0]:
            shown.clear()
            self._take_over(task, buffer, (index,), after)
            return
        after.clear()
        if task.moves_tensors or shown[0] is None or not _is_free(shown, 0):
            buffer.owned[index] = min(buffer.owned[index], 0)
        if not task.moves_tensors and shown[0] is not None:
            if buffer.owned[index] > 0 and shown[0]._counter is not None:
                buffer.owned[index] += shown[0]._counter.value  # the hook wrote to it
            buffer.grads[index] = as_value(shown[0])

    def _take_over(self, task: GraphTask, buffer: InputBuffer, indices: Sequence[int], tensors: list[Any]) -> None:
        """Put what hooks returned in the place of gradients; those that nobody else holds are owned."""
        if task.moves_tensors:
            owned: Sequence[int] = [0] * len(tensors)
        else:
            owned = _held_here_alone(tensors)
            tensors = _as_values(tensors)
        for index, grad, own in zip(indices, tensors, owned, strict=True):
            buffer.grads[index], buffer.owned[index] = grad, own

    def _accumulate(self, task: GraphTask, node: AccumulateGrad, buffer: InputBuffer) -> None:
        """AccumulateGrad with its hooks: accumulation, post-accumulate hooks, post-hooks."""
        extra = node.extra
        grad = buffer.grads[0]
        if grad is not None:
            if task.create_graph:
                node.accumulate_tensor(grad)
            elif task.moves_tensors and type(grad) is not SparseTensor:
                assert dispatch.accumulate is not None
                _in_mode(task, node, dispatch.accumulate, node, grad, buffer.owned[0])
            else:
                node.accumulate_array(as_value(grad) if task.moves_tensors else grad, buffer.owned[0])
        variable_extra = node.variable._extra
        if grad is not None and variable_extra is not None and variable_extra.post_accumulate_hooks:
            for hook in list(variable_extra.post_accumulate_hooks.values()):
                result = _in_mode(task, node, hook, node.variable)
                if result is not None and not isinstance(result, Tensor):
                    raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
                if result is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if extra is not None and extra.post_hooks:
            _in_mode(task, node, call_node_hooks, extra.post_hooks, (), tuple(_as_tensors(task, [grad])))

    def _evaluate_guarded(self, task: GraphTask, node: Node, edges: Edges, grads: list[Any]) -> Sequence[Any]:
        """Evaluate a node before the eyes of observers, and release what it saved."""
        # Two passes may share this graph: one of them must find the other's release whole.
        with _lock_of(node) if _passes > 1 else nullcontext():
            reading = begin_reading(node) if node.extra is not None and node.extra.packed else ()
            if process.changed and switches.node_observer is not None:
                run = partial(self._evaluate, task, node, edges, grads, reading)
                results = switches.node_observer.evaluate(node, tuple(grads), edges, run)
            else:
                results = self._evaluate(task, node, edges, grads, reading)
            for value in reading:
                value.read = None
            if not task.keep_graph:
                node.release_saved_tensors()
                node.freed_by = task.called_at
        return results

    def _evaluate(
        self, task: GraphTask, node: Node, edges: Edges, grads: list[Any], reading: Sequence[PackedTensor] = ()
    ) -> Sequence[Any]:
        """The node's gradients: Tensors where the pass is recorded or the node needs them, else arrays.

        What went through hooks is unpacked first, all of it, as in PyTorch.
        """
        try:
            if not node.needs_tensors and all(g is None for g in grads):
                return (None,) * len(edges)
            for value in reading:
                value.unpacked()
            if task.moves_tensors and not task.create_graph and not node.needs_tensors:
                assert dispatch.pull_back is not None
                return list(_in_mode(task, node, dispatch.pull_back, node, grads, edges))
            if task.create_graph or node.needs_tensors:
                tensors = _as_tensors(task, grads)
                if node.needs_tensors and (node.extra is None or not node.extra.post_hooks):
                    grads[:] = [None] * len(grads)  # the node holds them alone: it may free them early
                return _in_mode(task, node, node.apply_differentiable, tensors, edges)
            results = node.apply(grads, edges)
            return [result.whole() if isinstance(result, PartialGradient) else result for result in results]
        except Exception:
            if process.changed and switches.anomaly_mode:
                report_anomaly(node)
            raise

    def _post_hooks(
        self, task: GraphTask, node: Node, hooks: HookDict, edges: Edges, grads: list[Any], results: Sequence[Any]
    ) -> Sequence[Any]:
        """What a node's hooks make of the gradients it computed; they see None for those that the pass does not want."""
        tensors = task.moves_tensors or node.needs_tensors
        known = [None if edge is None else result for edge, result in zip(edges, results, strict=False)]
        shown = tuple(known if tensors else _as_tensors(task, known))
        outputs = tuple(_as_tensors(task, grads[: node.shown_outputs()]))
        return _in_mode(task, node, call_node_hooks, hooks, shown, outputs)

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the current backward pass ends."""
        task = _running.task
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.final_callbacks.append(callback)


class running_pass:
    """Be the pass that runs in this thread, while one node of it does."""

    def __init__(self, task: GraphTask) -> None:
        self._task = task
        self._outer = _running.task

    def __enter__(self) -> None:
        _running.task = self._task

    @guarded
    def __exit__(self, *exception: object) -> None:
        _running.task = self._outer


def as_tensor(value: Any) -> Tensor:
    """A gradient of the array path as users see it."""
    return new_sparse_tensor(value) if isinstance(value, SparseArray) else new_tensor(as_array(value))


def as_value(tensor: Tensor) -> Any:
    """A user's gradient as the array path moves it."""
    return tensor._sparse if isinstance(tensor, SparseTensor) else tensor._array


def current_graph_task() -> GraphTask | None:
    """The backward pass that runs in this thread."""
    return _running.task


def _in_mode(task: GraphTask, node: Node | None, function: Callable[..., Any], *args: Any) -> Any:
    """Call user code or a recorded rule with grad mode as the pass wants it, and `node` as the current one."""
    former_node, token = switches.current_node, None
    with switched("grad_mode", task.create_graph):
        try:
            switches.current_node = node
            token = error_variable.set(task.errors)
            return function(*args)
        finally:
            switches.current_node = former_node
            if token is not None:
                error_variable.reset(token)


def _restore_shape(task: GraphTask, node: Node, buffer: InputBuffer) -> None:
    """Bring a gradient into the shape and dtype that the node gave out; the error names the node that sent it."""
    grad, wanted = buffer.grads[0], node.input_metadata(0)
    if grad is None or wanted is None:
        return
    dtype = grad._array.dtype if task.moves_tensors else grad.dtype
    if grad.shape == wanted.shape and dtype == wanted.numpy_dtype:
        return
    senders = [(n, i) for n in task.dependencies for i, edge in enumerate(n.next_edges) if edge and edge[0] is node]
    sender, index = senders[0] if senders else (None, 0)
    (tensor,) = _as_tensors(task, [grad])
    fitted = [_in_mode(task, node, fit_gradient, sender, index, tensor, wanted)]
    buffer.grads[:] = fitted if task.moves_tensors else _as_values(fitted)
    buffer.owned[0] = 1 if senders else USERS


def _is_view_of(results: Sequence[Any], grad: Any) -> bool:
    """Whether the one gradient that a node computed is the memory of the one that arrived: one value, if that is filled."""
    return (
        len(results) == 1
        and type(results[0]) is ndarray
        and results[0].base is not None
        and (results[0].base is grad or results[0].base is grad.base)
    )


def _show_as_made(grads: list[Any], owned: Sequence[int]) -> None:
    """Bring arrays that are filled, or repeat an element, into the form that PyTorch has them in: Note [Owned gradients]."""
    for index, own in enumerate(owned):
        if own == FILLED and type(grads[index]) is ndarray:
            grads[index] = expanded_first(grads[index])
        elif own == IN_FULL and type(grads[index]) is ndarray and not grads[index].flags.writeable:
            grads[index] = grads[index].copy()


def _own(results: Sequence[Any], grads: Sequence[Any], held: Sequence[int]) -> tuple[bool, ...]:
    """Which of a node's gradients nobody else has: given to one input, and not handed on from somebody who has it."""
    shared = [g for g, own in zip(grads, held, strict=False) if not own]
    return tuple([not any(r is g for g in shared) and sum([r is o for o in results]) == 1 for r in results])


def _as_tensors(task: GraphTask, values: Sequence[Any]) -> list[Any]:
    if task.moves_tensors:
        return list(values)
    return [None if v is None else as_tensor(v) for v in values]


def _held_here_alone(tensors: Sequence[Any]) -> tuple[bool, ...]:
    """Which of some tensors nothing but this sequence holds, neither them nor their memory: they may be taken over.

    A leaf's `.grad` is then the very memory that the user's backward made, as in PyTorch, and costs no copy.
    """
    return tuple([_is_free(tensors, index) for index in range(len(tensors))])


def _is_free_array(results: Sequence[Any], index: int) -> bool:
    """Whether nothing but `results` and the engine's loop holds an array."""
    return (
        type(results[index]) is ndarray
        and results[index].base is None
        and getrefcount(results[index]) == 3  # with the reference that it is called with
    )


def _is_free(tensors: Sequence[Any], index: int) -> bool:
    # The counts include the reference that `getrefcount` is called with, and would one to a local name.
    return (
        type(tensors[index]) is Tensor
        and tensors[index]._extra is None
        and tensors[index]._array.base is None
        and getrefcount(tensors[index]) == 2
        and getrefcount(tensors[index]._array) == 2
    )


def _as_values(values: Sequence[Any]) -> list[Any]:
    return [None if v is None else as_value(v) for v in values]


def _check_nan(node: Node, edges: Edges, results: Sequence[Any]) -> None:
    for index, result in enumerate(results):
        if result is None or edges[index] is None:
            continue
        if contains_nan((result if isinstance(result, Tensor) else as_tensor(result))._bottom._array):
            report_anomaly(node)
            raise AnomalyError(f"Function '{node.name()}' returned nan values in its {index}th output.")


engine = Engine()
