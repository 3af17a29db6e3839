"""How a tensor is attached to the graph: its gradient edge, and the change of history by an in-place operation.

# Note [Captured tensors]
A function that grad, vjp or jvp transforms may not modify a tensor that existed before: the result would be recorded in
a tensor outside, on a graph that ends with the transform. So while one of them runs (`switches.transform`), each
tensor that is made knows it (`_made_in`, by `new_tensor` and by what generated functions do off the fast road), views and
aliases belong where their source does, and an in-place operation on a tensor made elsewhere is refused. Results of a
transform belong to the one around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.mirror import after_write, mirrors
from pullback.errors import LeafModificationError, captured_modification, no_derivative_in
from pullback.graph.accumulate_grad import accumulator_of
from pullback.graph.anomaly_metadata import remember_recording
from pullback.graph.edge import Edge
from pullback.graph.node import Node, begin_recording
from pullback.graph.saved_tensor import pack_saved_tensors
from pullback.graph.views import check_view_modification, rebase_view, view_edge
from pullback.modes.guards import guarded
from pullback.modes.source_lines import note_write, notes
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import Tensor
from pullback.tensor.version_counter import InferenceVersion, VersionCounter, count_write


def gradient_edge(tensor: Tensor) -> Edge | None:
    """The edge along which `tensor` receives its gradient; None if it needs none.

    A leaf's edge leads to its AccumulateGrad. A view's is made anew after its base was modified.
    """
    if not tensor._requires_grad:
        return None
    extra = tensor._extra
    if extra is not None and extra.view is not None:
        edge = view_edge(tensor, extra.view, gradient_edge)
        if edge is not None or not extra.view.own_leaf:
            return edge
    if tensor._edge is not None:
        return tensor._edge
    return (accumulator_of(tensor), 0)


def recorded_edge(tensor: Tensor) -> Edge | None:
    """Return the edge of a tensor as it stands: that of a view is not made anew."""
    extra = tensor._extra
    if tensor._edge is None and extra is not None and extra.view is not None:
        return extra.view.edge
    return tensor._edge


def refuse_history(function: str, **inputs: Any) -> None:
    """Refuse tensors that require grad where the function has no derivative for them; `name` is PyTorch's."""
    for name, tensor in inputs.items():
        if isinstance(tensor, Tensor) and tensor._requires_grad and (not process.changed or switches.records):
            raise no_derivative_in(function, name)


def set_history(tensor: Tensor, node: Node, output_nr: int = 0) -> None:
    """Make `tensor` the output `output_nr` of `node`; a view of an inference tensor stays without history."""
    extra = tensor._extra
    if extra is not None and extra.view is not None:
        info, counter = extra.view, tensor._counter
        info.edge = (node, output_nr)
        info.attr_version = 0 if counter is None else counter.value
    elif extra is not None and extra.inference:
        return
    else:
        tensor._edge = (node, output_nr)
    tensor._requires_grad = True


def adopt_switches(node: Node) -> None:
    """Apply to a new node what this thread has switched on: saved-tensor hooks, anomaly mode, a stream."""
    if switches.saved_tensor_hooks:
        pack_saved_tensors(node, gradient_edge)
    if switches.anomaly_mode:
        remember_recording(node, current_node())
    if switches.stream is not None:
        node.require_extra().stream = switches.stream


def current_node() -> Node | None:
    """Return the node that this thread evaluates, if any."""
    return switches.current_node


def check_captured(tensor: Tensor, name: str) -> None:
    """Refuse the in-place operation `name` on a tensor from outside of a transform. See Note [Captured tensors]."""
    if process.finishing and switches.transform is not None and tensor._made_in is not switches.transform:
        raise captured_modification(name)


def check_in_place(tensor: Tensor, name: str, *, records: bool, inference_later: bool = False) -> None:
    """Refuse the in-place operation `name` where autograd could not follow.

    `records`: whether it is recorded. `inference_later`: the caller asks `check_inference` itself, once the operation has
    looked at its arguments.
    """
    if process.finishing:
        check_captured(tensor, name)
    extra = tensor._extra
    if extra is not None:
        if extra.inference and not inference_later:
            check_inference(tensor)
        if extra.view is not None:
            check_view_modification(tensor, extra.view, records=records)
            return
    if records and tensor._requires_grad and tensor._edge is None:
        raise LeafModificationError(
            "a leaf Variable that requires grad is being used in an in-place operation. Modify it under "
            "pullback.no_grad(), or work on a clone()."
        )


def check_inference(tensor: Tensor) -> None:
    """Refuse to write to an inference tensor outside of inference mode."""
    if type(tensor._counter) is InferenceVersion and not switches.inference_mode:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. "
            f"Make a normal tensor of it with .clone() first.{tensor._counter.origin()}"
        )


@guarded
def _bump_version(tensor: Tensor) -> None:
    counter = tensor._counter
    if counter is None:
        counter = tensor._counter = VersionCounter(1)
        counter.lines = note_write(None)
    elif isinstance(counter, InferenceVersion):
        counter.count_write()
    else:
        count_write(counter)
    if mirrors:
        after_write(tensor._array, tensor._extra.mirror if tensor._extra is not None else None)


def _bound_bump_version() -> Any:
    is_built = hasattr(notes, "bump_version") and notes.bind_bump(_bump_version, mirrors)
    return notes.bump_version if is_built else None


bump_version: Callable[[Tensor], None] = _bound_bump_version() or _bump_version
"""Count one in-place modification of the tensor's memory."""


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Make the in-place operation `node` the new history of `tensor`, and of its base where it is a view."""
    extra = tensor._extra
    if extra is not None and extra.view is not None:
        rebase_view(tensor, extra.view, node, gradient_edge)
        return
    former = tensor._edge
    tensor._edge = (node, 0)
    if not tensor._requires_grad:
        tensor._requires_grad = True
        tensor._tell_views()
    if extra is not None and extra.retains_grad and former is not None:
        move_retain_hook(former, (node, 0))


def move_retain_hook(former: Edge, current: Edge) -> None:
    """Let `retain_grad` follow the tensor; its other hooks stay with the value that they were registered on."""
    old = former[0].extra
    if old is not None and former[1] in old.retain_hooks:
        current[0].require_extra().retain_hooks[current[1]] = old.retain_hooks.pop(former[1])


def link(node: Node, inputs: Sequence[Any]) -> None:
    """Number a hand-made node and connect it to the tensors it came from (others than Tensors get no edge)."""
    begin_recording(node)
    node.next_edges = tuple([gradient_edge(t) if isinstance(t, Tensor) else None for t in inputs])
