"""Engine: runs the recorded graph backward.

`execute` reads as its own summary. CPU work runs in the calling thread. First-order passes move raw arrays from node to
node; `create_graph` passes move Tensors; a node that needs Tensors (a custom Function, a node with hooks) gets them
wrapped and only there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop
from typing import Any

from pullback.backend.array_module import as_array, contains_nan
from pullback.backend.sparse_array import SparseArray
from pullback.engine.graph_task import ExecInfo, GraphTask
from pullback.engine.input_buffer import InputBuffer
from pullback.engine.validation import fit_gradients
from pullback.errors import AnomalyError
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.basic_nodes import GraphRoot
from pullback.graph.edge import Edge
from pullback.graph.hooks import HookDict, call_node_hooks, call_tensor_hooks
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.source_lines import note_source_line
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.switches import SWITCH_DEFAULTS, process, reset_switches, set_switch, switches
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor


class _Running(threading.local):
    """The pass that runs in this thread, innermost last."""

    task: GraphTask | None = None


_running = _Running()
_log = logging.getLogger("pullback.autograd")
_passes = 0
_passes_lock = threading.Lock()
_locks_lock = threading.Lock()


def _lock_of(node: Node) -> threading.RLock:  # type: ignore[valid-type, unused-ignore]  # a factory in older typeshed
    """The node's own lock, made when passes of several threads first meet."""
    with _locks_lock:
        if node.lock is None:
            node.lock = threading.RLock()
        return node.lock


MAX_DEPTH = 30
"""Re-entrant passes deeper than a multiple of this go on in a thread of their own, whose stack is empty."""


def run_on_fresh_stack(run: Callable[[], None], task: GraphTask) -> None:
    """Run a deeply nested pass in a new thread with this thread's switches, and raise here what it raises."""
    state = {name: getattr(switches, name) for name in SWITCH_DEFAULTS}
    others = {name: getattr(switches, name) for name in ("anomaly_check_nan", "dual_ids", "current_node")}
    failure: list[BaseException] = []

    def target() -> None:
        _running.task = task
        for name, value in state.items():
            set_switch(name, value)
        vars(switches).update(others)
        try:
            run()
        except BaseException as error:
            failure.append(error)
        finally:
            reset_switches()

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
    ) -> list[Any]:
        """Send `grads` (Tensors) into `edges` and run what they reach; return the gradients at `captures`.

        Unless `accumulate`, only what leads to `captures` and to the nodes in `wanted` runs, and of the leaves only these
        accumulate.
        """
        outer = _running.task
        task = GraphTask(keep_graph=keep_graph, create_graph=create_graph, depth=outer.depth + 1 if outer else 0)
        root = GraphRoot(edges, grads if create_graph else [g._array for g in grads])
        task.count_dependencies([root])
        if not accumulate:
            task.mark_needed(root, list(captures), wanted)
        _running.task = task
        global _passes
        if outer is None:
            with _passes_lock:
                _passes += 1
        try:
            if task.depth and task.depth % MAX_DEPTH == 0:
                run_on_fresh_stack(lambda: self._run(task, root), task)
            else:
                self._run(task, root)
        finally:
            _running.task = outer
            if outer is None:
                with _passes_lock:
                    _passes -= 1
        for callback in task.final_callbacks:
            callback()
        return task.captured

    def _run(self, task: GraphTask, root: GraphRoot) -> None:
        """Run nodes until none is left that is ready."""
        self._send(task, root, root.grads, ())
        queue = task.ready_queue
        heap = queue.heap
        plain = not process.log_nodes
        leaves = queue.leaves
        while heap or leaves:
            if leaves:
                node, grads, owned = queue.pop_leaf()
            else:
                _, _, node, grads, owned = heappop(heap)
            if plain and node.extra is None and not node.needs_tensors and not process.changed and _passes == 1:
                self._run_chain(task, node, grads, owned)
            else:
                self._run_node(task, node, grads, owned)

    def _run_chain(self, task: GraphTask, node: Node, grads: list[Any], owned: list[bool]) -> None:
        """The common case: a node without hooks, and the nodes that only wait for it.

        The loop goes on with the one node that became ready, unless an earlier one in the queue comes first: a chain of
        operations costs no queue at all.
        """
        info: dict[Node, ExecInfo] | None = task.exec_info
        recorded = task.create_graph
        plain_leaves = info is None and not recorded
        dependencies: dict[Node, int] = task.dependencies
        not_ready: dict[Node, InputBuffer] = task.not_ready
        heap: list[Any] = task.ready_queue.heap
        leaves: list[Any] = task.ready_queue.leaves
        keep_graph = task.keep_graph
        following: Node
        while True:
            if info is not None and (node not in info or info[node].captures):
                self._run_node(task, node, grads, owned)
                return
            if type(node) is AccumulateGrad:
                if recorded or node.variable._extra is not None:
                    self._run_node(task, node, grads, owned)
                elif grads[0] is not None:
                    node.accumulate_array(grads[0], owned[0])
                return
            if grads[0] is None and all(g is None for g in grads):
                results: Sequence[Any] = (None,) * len(node.next_edges)
            elif info is not None:
                results = task.apply_needed(node, grads, owned[0])
            elif recorded:
                results = node.apply_differentiable(grads)
            else:
                results = node.apply(grads, owned[0])
            if not keep_graph:
                node.release_saved_tensors()
            fresh: tuple[bool, ...] = node.fresh
            ready: Node | None = None
            ready_grads: list[Any] = []
            ready_owned: list[bool] = []
            index = -1
            for edge in node.next_edges:
                index += 1
                if edge is None:
                    continue
                following, input_nr = edge
                if info is not None and following not in info:
                    continue
                left = dependencies[following] - 1
                grad = results[index]
                new = bool(fresh) and fresh[index]
                if not new and grad is grads[0] and owned[0]:
                    new = True  # handed on: as much owned as it was here, unless another edge gets it too
                    for other, result in enumerate(results):
                        if result is grad and other != index:
                            new = False
                if left == 0 and following.output_count == 1 and following not in not_ready:
                    arrived = [grad.whole() if isinstance(grad, PartialGradient) else grad]
                    arrived_owned = [new]
                else:
                    buffer = not_ready.get(following)
                    if buffer is None:
                        buffer = not_ready[following] = InputBuffer(following.output_count)
                    if grad is not None and recorded:
                        buffer.add_tensor(input_nr, grad)
                    elif grad is not None:
                        buffer.add(input_nr, grad, new)
                    if left:
                        dependencies[following] = left
                        continue
                    del not_ready[following]
                    arrived, arrived_owned = buffer.grads, buffer.owned
                dependencies[following] = 0
                if type(following) is AccumulateGrad and plain_leaves and following.takes_arrays():
                    if arrived[0] is not None:
                        following.accumulate_array(arrived[0], arrived_owned[0])
                    continue
                if ready is not None:
                    task.ready_queue.push(ready, ready_grads, ready_owned)
                ready, ready_grads, ready_owned = following, arrived, arrived_owned
            if ready is None:
                return
            if (
                leaves
                or (heap and heap[0][0] < -ready.sequence_nr)
                or ready.extra is not None
                or ready.needs_tensors
                or process.changed
                or _passes != 1
            ):
                task.ready_queue.push(ready, ready_grads, ready_owned)
                return
            node, grads, owned = ready, ready_grads, ready_owned

    def _run_node(self, task: GraphTask, node: Node, grads: list[Any], owned: list[bool]) -> None:
        """The general case: hooks, captures, Tensors where they are needed."""
        info = None
        if task.exec_info is not None:
            info = task.exec_info.get(node)
            if info is None:
                if node is task.sole_root:  # its tensor's hooks run as those of every root do
                    self._prepare_unneeded(task, node, grads, owned)
                return
        if process.log_nodes:
            shapes = ", ".join("None" if g is None else str(list(g.shape)) for g in grads)
            _log.debug("Executing: %r with grad_outputs: [%s]", node, shapes)
        buffer = InputBuffer(0)
        buffer.grads, buffer.owned = grads, owned
        extra = node.extra
        special = extra is not None or info is not None or isinstance(node, AccumulateGrad)
        if special and (not self._prepare(task, node, buffer, info) or isinstance(node, AccumulateGrad)):
            return
        self._run_carefully(task, node, buffer.grads)

    def _prepare_unneeded(self, task: GraphTask, node: Node, grads: list[Any], owned: list[bool]) -> None:
        buffer = InputBuffer(0)
        buffer.grads, buffer.owned = grads, owned
        self._tensor_hooks(task, node, buffer)

    def _prepare(self, task: GraphTask, node: Node, buffer: InputBuffer, info: ExecInfo | None) -> bool:
        """Hooks on the arriving gradients, captures, pre-hooks; False if the node itself need not run."""
        grads = buffer.grads
        if info is not None and info.needed:  # as in PyTorch: what hooks replace is seen by the nodes below alone
            task.capture(info, grads)
        self._tensor_hooks(task, node, buffer)
        if info is not None and not info.needed:
            task.capture(info, grads)
            return False
        if isinstance(node, AccumulateGrad):
            self._accumulate(task, node, buffer)
            return True
        extra = node.extra
        if extra is not None and extra.pre_hooks:
            self._pre_hooks(task, extra.pre_hooks, buffer, _shown_outputs(node, grads))
        return True

    def _tensor_hooks(self, task: GraphTask, node: Node, buffer: InputBuffer) -> None:
        """Run tensor hooks, then retain_grad. See Note [Hook order] in graph/hooks.py."""
        extra = node.extra
        if isinstance(node, AccumulateGrad):
            hooks = node.variable._extra.hooks if node.variable._extra is not None else None
            if hooks:
                self._replace(task, node, buffer, 0, partial(call_tensor_hooks, hooks))
        if extra is None:
            return
        for output_nr, tensor_hooks in list(extra.tensor_hooks.items()):
            if tensor_hooks:
                self._replace(task, node, buffer, output_nr, partial(call_tensor_hooks, tensor_hooks))
        for output_nr, keep in list(extra.retain_hooks.items()):
            self._replace(task, node, buffer, output_nr, keep)

    def _replace(self, task: GraphTask, node: Node, buffer: InputBuffer, index: int, run: Callable[[Any], Any]) -> None:
        """Run hooks on one gradient as a Tensor; a replacement takes its place, and it is not owned any more."""
        before = buffer.grads[index]
        wrapped = before if task.create_graph or before is None else as_tensor(before)
        after = _in_mode(task, node, run, wrapped)
        if after is not None:
            buffer.grads[index] = after if task.create_graph else as_value(after)
        buffer.owned[index] = False

    def _pre_hooks(self, task: GraphTask, hooks: HookDict, buffer: InputBuffer, shown: int = 1) -> None:
        replaced = _in_mode(task, None, call_node_hooks, hooks, _as_tensors(task, buffer.grads[:shown]))
        buffer.grads[:shown] = _as_values(task, replaced)
        buffer.owned = [False] * len(buffer.grads)

    def _accumulate(self, task: GraphTask, node: AccumulateGrad, buffer: InputBuffer) -> None:
        """AccumulateGrad with hooks: pre-hooks, accumulation, post-accumulate hooks, post-hooks."""
        extra = node.extra
        if extra is not None and extra.pre_hooks:
            self._pre_hooks(task, extra.pre_hooks, buffer)
        grad = buffer.grads[0]
        if grad is not None:
            if task.create_graph:
                _accumulate_recorded(node, grad)
            else:
                node.accumulate_array(grad, buffer.owned[0])
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

    def _run_carefully(self, task: GraphTask, node: Node, grads: list[Any]) -> None:
        """The general case: Tensors where the node needs them, post-hooks, anomaly checks, concurrent passes."""
        extra = node.extra
        if process.changed and switches.profiler is not None:
            results = switches.profiler.evaluate(node, lambda: self._evaluate(task, node, grads))
            if not task.keep_graph:
                node.release_saved_tensors()
        elif _passes > 1:
            # Two passes may share this graph: one of them must find the other's release whole.
            with _lock_of(node):
                results = self._evaluate(task, node, grads)
                if not task.keep_graph:
                    node.release_saved_tensors()
        else:
            results = self._evaluate(task, node, grads)
            if not task.keep_graph:
                node.release_saved_tensors()
        if extra is not None and extra.post_hooks:
            if task.exec_info is not None:
                results = task.without_unneeded(node, results)
            wrapped = tuple(_as_tensors(task, results))
            outputs = tuple(_as_tensors(task, grads[: _shown_outputs(node, grads)]))
            results = _as_values(task, _in_mode(task, node, call_node_hooks, extra.post_hooks, wrapped, outputs))
            fresh: tuple[bool, ...] = ()
        else:
            fresh = node.fresh
        if process.changed and switches.anomaly_mode and switches.anomaly_check_nan:
            _check_nan(node, results)
        self._send(task, node, results, fresh)

    def _evaluate(self, task: GraphTask, node: Node, grads: list[Any]) -> Sequence[Any]:
        try:
            if not node.needs_tensors and all(g is None for g in grads):
                return (None,) * len(node.next_edges)
            if task.create_graph:
                if node.needs_tensors or task.exec_info is None:
                    return _in_mode(task, node, node.apply_differentiable, grads)
                return _in_mode(task, node, task.apply_needed, node, grads, False)
            if node.needs_tensors:
                results = _in_mode(task, node, node.apply_differentiable, _as_tensors(task, grads))
                return _as_values(task, fit_gradients(node, results))
            results = node.apply(grads) if task.exec_info is None else task.apply_needed(node, grads, False)
            return [result.whole() if isinstance(result, PartialGradient) else result for result in results]
        except Exception as error:
            if node.extra is not None:
                note_source_line(error, node)
            if process.changed and switches.anomaly_mode:
                _report_anomaly(node)
            raise

    def _send(self, task: GraphTask, node: Node, results: Sequence[Any], fresh: Sequence[bool]) -> None:
        """Hand the results to the next nodes; a node whose last gradient arrived becomes ready."""
        dependencies = task.dependencies
        not_ready = task.not_ready
        recorded = task.create_graph
        if recorded and node.needs_tensors:
            results = fit_gradients(node, results)
        for index, edge in enumerate(node.next_edges):
            if edge is None:
                continue
            following, input_nr = edge
            if task.exec_info is not None and following not in task.exec_info and following is not task.sole_root:
                continue
            buffer = not_ready.get(following)
            if buffer is None:
                buffer = not_ready[following] = InputBuffer(following.output_count)
            grad = results[index]
            if grad is not None:
                if recorded:
                    _in_mode(task, following, buffer.add_tensor, input_nr, grad)
                else:
                    buffer.add(input_nr, grad, bool(fresh) and fresh[index])
            left = dependencies[following] - 1
            dependencies[following] = left
            if not left:
                del not_ready[following]
                task.ready_queue.push(following, buffer.grads, buffer.owned)

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the current backward pass ends."""
        task = _running.task
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.final_callbacks.append(callback)


def as_tensor(value: Any) -> Tensor:
    """A gradient of the array path as users see it."""
    return new_sparse_tensor(value) if isinstance(value, SparseArray) else new_tensor(as_array(value))


def as_value(tensor: Tensor) -> Any:
    """A user's gradient as the array path moves it."""
    return tensor._sparse if isinstance(tensor, SparseTensor) else tensor._array


def current_graph_task() -> GraphTask | None:
    """The backward pass that runs in this thread."""
    return _running.task


def _accumulate_recorded(node: AccumulateGrad, grad: Tensor) -> None:
    former = set_grad_mode(True)
    try:
        node.accumulate_tensor(grad)
    finally:
        set_grad_mode(former)


def _in_mode(task: GraphTask, node: Node | None, function: Callable[..., Any], *args: Any) -> Any:
    """Call user code or a recorded rule with grad mode as the pass wants it, and `node` as the current one."""
    former = set_grad_mode(task.create_graph)
    former_node = switches.current_node
    switches.current_node = node
    try:
        return function(*args)
    finally:
        switches.current_node = former_node
        set_grad_mode(former)


def _shown_outputs(node: Node, grads: Sequence[Any]) -> int:
    """How many outputs a node's hooks are shown: the last ones that are whole numbers have no gradient to show."""
    metadata = node.output_metadata
    count = len(grads)
    if metadata is None or node.needs_tensors:
        return count
    while count > 1 and count <= len(metadata) and metadata[count - 1].numpy_dtype.kind in "biu":
        count -= 1
    return count


def _as_tensors(task: GraphTask, values: Sequence[Any]) -> list[Any]:
    if task.create_graph:
        return list(values)
    return [None if v is None else as_tensor(v) for v in values]


def _as_values(task: GraphTask, values: Sequence[Any]) -> list[Any]:
    if task.create_graph:
        return list(values)
    return [None if v is None else as_value(v) for v in values]


def _check_nan(node: Node, results: Sequence[Any]) -> None:
    for index, result in enumerate(results):
        if result is None or node.next_edges[index] is None:
            continue
        if contains_nan(as_tensor(result)._array if not isinstance(result, Tensor) else result._array):
            _report_anomaly(node)
            raise AnomalyError(f"Function '{node.name()}' returned nan values in its {index}th output.")


def _report_anomaly(node: Node) -> None:
    metadata = node.anomaly_metadata
    if metadata is not None:
        metadata.report(node.name())
        return
    import warnings

    warnings.warn(
        f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
        "forward pass for more information.",
        UserWarning,
        stacklevel=2,
    )


engine = Engine()
