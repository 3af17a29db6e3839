"""Running one node in the general case: hooks, captures, leaves, observers, and Tensors where they are needed.

The engine's loop takes this road for the nodes that need it; passes that stop at each node (stepping.py) take it for all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from sys import getrefcount
from typing import Any

from pullback.backend.array_module import as_array, contains_nan, expanded_first, ndarray
from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.silent_arithmetic import error_variable
from pullback.backend.sparse_array import SparseArray
from pullback.engine.graph_task import GraphTask
from pullback.engine.input_buffer import FILLED, IN_FULL, InputBuffer
from pullback.engine.passes import lock_of
from pullback.engine.validation import fit_gradient, fit_gradients
from pullback.errors import AnomalyError
from pullback.graph.accumulate_grad import USERS, AccumulateGrad
from pullback.graph.anomaly_metadata import report_anomaly
from pullback.graph.edge import Edges
from pullback.graph.hooks import HookDict, call_node_hooks, call_tensor_hooks
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.saved_tensor import PackedTensor, begin_reading
from pullback.modes.interception import dispatch
from pullback.modes.switches import process, switched, switches
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor

_log = logging.getLogger("pullback.autograd")


def run_carefully(
    task: GraphTask, node: Node, edges: Edges, grads: list[Any], owned: list[int]
) -> tuple[Sequence[Any], tuple[int, ...], Edges] | None:
    """Run a node with hooks, captures and accumulation, on Tensors where they are needed.

    Return the gradients, which of them are owned (Note [Owned gradients]) and where they go; None where nothing goes on.
    """
    if process.log_nodes:
        shapes = ", ".join("None" if g is None else str(list(g.shape)) for g in grads)
        _log.debug("Executing: %r with grad_outputs: [%s]", node, shapes)
    buffer = InputBuffer(0)
    buffer.grads, buffer.owned = grads, owned
    if not task.moves_tensors:
        _show_as_made(grads, owned)
    if not _prepare(task, node, buffer):
        return None
    if isinstance(node, AccumulateGrad):
        _accumulate(task, node, buffer)
        return None
    acting, edges = task.acting_for(node, edges)
    extra = node.extra
    results = _evaluate_and_release(task, acting, edges, grads)
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
        results, tensors = _run_post_hooks(task, node, extra.post_hooks, edges, grads, results), True
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


def _prepare(task: GraphTask, node: Node, buffer: InputBuffer) -> bool:
    """Run hooks on the arriving gradients, captures and pre-hooks; return whether the node itself must run."""
    if node.extra is not None and node.extra.former_shape:
        _restore_shape(task, node, buffer)
    info = None
    if task.exec_info is not None:
        info = task.exec_info.get(node)
        if info is None:
            _run_tensor_hooks(task, node, buffer)
            return False
        if info.needed:  # as in PyTorch: what hooks replace is seen by the nodes below alone
            task.capture(info, buffer.grads, buffer.owned)
    _run_tensor_hooks(task, node, buffer)
    if info is not None and not info.needed:
        task.capture(info, buffer.grads, buffer.owned)
        return False
    extra = node.extra
    if extra is not None and extra.pre_hooks:
        shown = node.shown_outputs()
        tensors = _as_tensors(task, buffer.grads[:shown])
        replaced = list(_in_mode(task, None, call_node_hooks, extra.pre_hooks, tensors))
        del tensors
        _take_over(task, buffer, range(shown), replaced)
    return True


def _run_tensor_hooks(task: GraphTask, node: Node, buffer: InputBuffer) -> None:
    """Run tensor hooks, then retain_grad. See Note [Hook order] in graph/hooks.py."""
    extra = node.extra
    if isinstance(node, AccumulateGrad):
        _cast_for_leaf(task, node, buffer)
        hooks = node.variable._extra.hooks if node.variable._extra is not None else None
        if hooks:
            _run_hooks(task, node, buffer, 0, partial(call_tensor_hooks, hooks))
        if process.changed and switches.node_observer is not None:
            switches.node_observer.tell_arrival(node, buffer.grads[0])
    if extra is None:
        return
    for output_nr, tensor_hooks in list(extra.tensor_hooks.items()):
        if tensor_hooks and (buffer.grads[output_nr] is not None or node.tells_absent_gradients):
            _run_hooks(task, node, buffer, output_nr, partial(call_tensor_hooks, tensor_hooks))
    for output_nr, keep in list(extra.retain_hooks.items()):
        _run_hooks(task, node, buffer, output_nr, keep)


def _cast_for_leaf(task: GraphTask, node: AccumulateGrad, buffer: InputBuffer) -> None:
    """Bring the gradient of a leaf whose `grad_dtype` the user chose to that dtype, before hooks see it."""
    grad, wanted = buffer.grads[0], node.chosen_dtype()
    if grad is None or wanted is None or isinstance(grad, SparseArray):
        return
    array = grad._array if task.moves_tensors else as_array(grad)
    if array.dtype != wanted:
        cast = _in_mode(task, node, (grad if task.moves_tensors else as_tensor(grad)).to, from_numpy_dtype(wanted))
        _take_over(task, buffer, (0,), [cast])


def _run_hooks(task: GraphTask, node: Node, buffer: InputBuffer, index: int, run: Callable[[Any], Any]) -> None:
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
        _take_over(task, buffer, (index,), after)
        return
    after.clear()
    if task.moves_tensors or shown[0] is None or not _is_free(shown, 0):
        buffer.owned[index] = min(buffer.owned[index], 0)
    if not task.moves_tensors and shown[0] is not None:
        if buffer.owned[index] > 0 and shown[0]._counter is not None:
            buffer.owned[index] += shown[0]._counter.value  # the hook wrote to it
        buffer.grads[index] = as_value(shown[0])


def _take_over(task: GraphTask, buffer: InputBuffer, indices: Sequence[int], tensors: list[Any]) -> None:
    """Put what hooks returned in the place of gradients; those that nobody else holds are owned."""
    if task.moves_tensors:
        owned: Sequence[int] = [0] * len(tensors)
    else:
        owned = _held_here_alone(tensors)
        tensors = _as_values(tensors)
    for index, grad, own in zip(indices, tensors, owned, strict=True):
        buffer.grads[index], buffer.owned[index] = grad, own


def _accumulate(task: GraphTask, node: AccumulateGrad, buffer: InputBuffer) -> None:
    """Run an AccumulateGrad with its hooks: accumulate, then post-accumulate hooks, then post-hooks."""
    extra = node.extra
    grad = buffer.grads[0]
    if grad is not None:
        if task.create_graph:
            node.accumulate_tensor(grad)
        elif task.carries_tangents and type(node.variable._grad) is Tensor and grad.dtype is node.variable._grad.dtype:
            _in_mode(task, node, node.variable._grad.add_, grad)  # the sum gets the tangent of what is added
        elif task.moves_tensors and not task.carries_tangents and type(grad) is not SparseTensor:
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


def _evaluate_and_release(task: GraphTask, node: Node, edges: Edges, grads: list[Any]) -> Sequence[Any]:
    """Evaluate a node while observers watch, and release what it saved."""
    # Two passes may share this graph: one of them must find the other's release whole.
    with lock_of(node) if process.passes > 1 else nullcontext():
        reading = begin_reading(node) if node.extra is not None and node.extra.packed else ()
        if process.changed and switches.node_observer is not None:
            run = partial(evaluate, task, node, edges, grads, reading)
            results = switches.node_observer.evaluate(node, tuple(grads), edges, run)
        else:
            results = evaluate(task, node, edges, grads, reading)
        for value in reading:
            value.read = None
        if not task.keep_graph:
            node.release_saved_tensors()
            node.freed_by = task.called_at
    return results


def evaluate(
    task: GraphTask, node: Node, edges: Edges, grads: list[Any], reading: Sequence[PackedTensor] = ()
) -> Sequence[Any]:
    """Compute the node's gradients: Tensors where the pass is recorded or the node needs them, else arrays.

    What went through hooks is unpacked first, all of it, as in PyTorch.
    """
    try:
        if not node.needs_tensors and all(g is None for g in grads):
            return (None,) * len(edges)
        for value in reading:
            value.unpacked()
        records = task.create_graph or task.carries_tangents
        if task.moves_tensors and not records and not node.needs_tensors:
            assert dispatch.pull_back is not None
            return list(_in_mode(task, node, dispatch.pull_back, node, grads, edges))
        if records or node.needs_tensors:
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


def _run_post_hooks(
    task: GraphTask, node: Node, hooks: HookDict, edges: Edges, grads: list[Any], results: Sequence[Any]
) -> Sequence[Any]:
    """Run the hooks of a node on the gradients it computed; they see None for those that the pass does not want."""
    tensors = task.moves_tensors or node.needs_tensors
    known = [None if edge is None else result for edge, result in zip(edges, results, strict=False)]
    shown = tuple(known if tensors else _as_tensors(task, known))
    outputs = tuple(_as_tensors(task, grads[: node.shown_outputs()]))
    return _in_mode(task, node, call_node_hooks, hooks, shown, outputs)


def as_tensor(value: Any) -> Tensor:
    """Make the Tensor that users see of a gradient of the array path."""
    return new_sparse_tensor(value) if isinstance(value, SparseArray) else new_tensor(as_array(value))


def as_value(tensor: Tensor) -> Any:
    """Return a user's gradient as the array path moves it."""
    return tensor._sparse if isinstance(tensor, SparseTensor) else tensor._array


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


def _show_as_made(grads: list[Any], owned: Sequence[int]) -> None:
    """Bring arrays that are filled, or repeat an element, into PyTorch's form. See Note [Owned gradients]."""
    for index, own in enumerate(owned):
        if own == FILLED and type(grads[index]) is ndarray:
            grads[index] = expanded_first(grads[index])
        elif own == IN_FULL and type(grads[index]) is ndarray and not grads[index].flags.writeable:
            grads[index] = grads[index].copy()


def _own(results: Sequence[Any], grads: Sequence[Any], held: Sequence[int]) -> tuple[bool, ...]:
    """Tell which of a node's gradients nobody else holds: those given to one input, and not merely handed on."""
    shared = [g for g, own in zip(grads, held, strict=False) if not own]
    return tuple([not any(r is g for g in shared) and sum([r is o for o in results]) == 1 for r in results])


def _as_tensors(task: GraphTask, values: Sequence[Any]) -> list[Any]:
    if task.moves_tensors:
        return list(values)
    return [None if v is None else as_tensor(v) for v in values]


def _held_here_alone(tensors: Sequence[Any]) -> tuple[bool, ...]:
    """Tell which tensors only this sequence holds, they and their memory: these may be taken over.

    A leaf's `.grad` is then the very memory that the user's backward made, as in PyTorch, and costs no copy.
    """
    return tuple([_is_free(tensors, index) for index in range(len(tensors))])


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
