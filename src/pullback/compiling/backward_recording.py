"""Records the backward of what a call gave, for gradients of any value, so that a program can run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.traced_array import plain
from pullback.compiling.capture import Capture
from pullback.compiling.memory import laid_out
from pullback.compiling.nodes import CompiledFunctionInput
from pullback.compiling.program import Call, Value
from pullback.compiling.random_streams import random_states, set_random_states
from pullback.compiling.recorder import Recorder
from pullback.compiling.structure import flatten
from pullback.compiling.traced_inputs import TracedInputs
from pullback.engine.engine import engine
from pullback.errors import GraphFreedError
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.tensor.tensor import TensorBase, new_tensor


def record_backward(made: Capture, recorder: Recorder, inputs: TracedInputs) -> None:
    """Record the backward, which nobody asked for: what it does to tensors and to the random stream is undone."""
    state = random_states()
    recorder.undo = []
    try:
        _record(made, recorder, inputs)
    finally:
        for target, before in reversed(recorder.undo):
            plain(target)[...] = before
        if recorder.undo:
            recorder.stop("the backward writes to a tensor, as a checkpoint does that computes again")
        recorder.undo = None
        recorder.aside(set_random_states, state)


def _record(made: Capture, recorder: Recorder, inputs: TracedInputs) -> None:
    """Run the graph of the results backward, for gradients of any value, and record that too."""
    wanted = [output for output in made.outputs if output.requires_grad]
    if not wanted or recorder.stops:
        return
    leaves: list[Any] = []
    flatten(made.result, leaves)
    tensors = [leaf for leaf, output in zip(leaves, made.outputs, strict=True) if output.requires_grad]
    targets = [place for place, given in enumerate(made.inputs) if given.tensor._requires_grad]
    edges: list[Any] = [gradient_edge(made.inputs[place].tensor) for place in targets]
    roots: list[Any] = [gradient_edge(tensor) for tensor in tensors]
    if _has_hooks(roots):
        recorder.stop("hooks are registered inside of the function")
        return
    grads = []
    for tensor in tensors:
        array = tensor._array
        array = laid_out(1, array.shape, array.strides, array.dtype, getattr(array, "place", None))
        grads.append(new_tensor(recorder.add_input(array)))
        made.gradient_values.append(recorder.program.inputs[-1])  # type: ignore[arg-type]  # no Number is added here
    for extra, _ in inputs.hooks:
        extra.hooks = None  # they run when the gradient arrives, outside of the program
    for _, edge in inputs.edges:
        if edge is not None:
            edge[0].next_edges, edge[0].leave = (), None  # what lies before the arguments is none of its gradients
    begin = len(recorder.program.calls)
    try:
        captured = engine.execute(
            roots, grads, keep_graph=True, create_graph=False,
            captures=edges, accumulate=False,
        )  # fmt: skip
    except GraphFreedError:
        if not all(_is_used_up(root, grad, edges) for root, grad in zip(roots, grads, strict=True)):
            recorder.stop("the graph of one of several results was used up inside of the function")
            return
        made.is_freed = True
        made.gradient_values.clear()
        del recorder.program.inputs[len(made.inputs) :], recorder.program.calls[begin:]
        if recorder.spots is not None:
            del recorder.spots[begin:]
        return
    except Exception as error:
        recorder.stop(f"the backward of what was recorded raises {type(error).__name__}")
        return
    if any(map(_has_empty_array, recorder.program.calls[begin:])):
        # Empty arrays are constants: they do not tell which result leads to a gradient, and what is computed of them
        # would be kept, so that a second backward finds it freed.
        recorder.stop("the backward computes with an array without elements")
        return
    for place, grad in zip(targets, captured, strict=True):
        if grad is None:
            continue
        array = grad._array if isinstance(grad, TensorBase) else grad
        if not hasattr(array, "strides"):
            recorder.stop("a gradient is sparse")
            return
        if not array.size and len(tensors) > 1:  # empty arrays are constants: they tell of no result that leads to them
            recorder.stop("one of several results leads to a gradient without elements")
            return
        made.differentiable.append(place)
        made.program.outputs.append(recorder.read(array))


def _is_used_up(root: Any, grad: Any, ends: Sequence[Any]) -> bool:
    """Whether a backward from one result meets a node that an earlier one freed."""
    try:
        engine.execute([root], [grad], keep_graph=True, create_graph=False, captures=ends, accumulate=False)
    except GraphFreedError:
        return True
    return False


def _has_hooks(roots: Sequence[Any]) -> bool:
    pending = [node for node, _ in roots]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if isinstance(node, (AccumulateGrad, CompiledFunctionInput)):
            continue
        if node.extra is not None and node.extra.has_hooks():
            return True
        for edge in node.next_edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                pending.append(edge[0])
    return False


def _has_empty_array(call: Call) -> bool:
    """Whether a call reads or makes an array without elements."""
    values = (*call.results, *call.reads)
    return any(isinstance(value, Value) and 0 in value.shape for value in values)
