"""What a fused node is when somebody looks at it: the nodes that PyTorch records in its place.

# Note [Fused nodes]
A linear layer is one kernel and one rule, so it is recorded as one node. PyTorch records a view, a product and a transpose,
and users see them: in `next_functions`, in pictures, in `_saved_...`, through hooks on nodes. So a fused node expands when
it is first looked at. Its steps (functions/unfused.py) are recorded from its saved tensors; from then on it hands its work
to the outermost of them (`NodeExtra.outer`), and its edges lead to the others. The node itself stays where it is: tensors
and hooks know it. Where the operation has several results (a recurrent layer: outputs and states), the node only hands
their gradients on (`StepsOfResults`), and users see the step of the result that they came from.
A program that does not look pays nothing, since the engine reads `outer` only of nodes that have an `extra`.
A tensor that was not saved, or was released, is replaced by memory of its shape, in row-major order unless it is a leaf: the
layout of others is not known any more.
Under saved-tensor hooks of a program and anomaly mode the steps are recorded at once: hooks get the tensors that PyTorch
saves, and every step its own traceback. Where steps round otherwise than the fused rule does, that is noted
(Note [Unpromised bits]): the last bits of gradients depend on whether somebody looks. A linear layer's are the same.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence, Set
from typing import Any

from pullback.backend.array_module import empty
from pullback.backend.unpromised_bits import LOOKING, note_unpromised
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.edge import Edge, Edges
from pullback.graph.former_data import former_array, is_stale
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node
from pullback.graph.renamed_node import RenamedNode
from pullback.graph.source_lines import source_line_of
from pullback.modes.interception import dispatch, overrides
from pullback.modes.saved_tensor_hooks import are_saved_tensors_seen
from pullback.modes.switches import SWITCH_DEFAULTS, kept_switches, set_switches, switches
from pullback.native.locks import process_lock
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import VersionCounter
from pullback.typing import Shape

_ROUNDS_ALIKE = "linear_node"
"""The steps whose gradients have the bits of the fused rule's."""


def records_steps(*inputs: Any, same_bits: bool = False) -> bool:
    """Whether the steps of a fused operation must be recorded at once. See Note [Fused nodes].

    `same_bits` says that they round as the fused rule does.
    """
    if not (switches.dispatch_modes or any(type(value) in dispatch.types for value in inputs)):
        visible = are_saved_tensors_seen() or switches.anomaly_mode
        if not visible or not switches.records or not switches.plain:
            return False
        if any(type(value) in overrides.types for value in inputs):
            return False
    if not same_bits:
        _note_steps()
    return True


def _note_steps() -> None:
    note_unpromised(LOOKING, "a product, a norm or a recurrent layer that is recorded step by step")


expanding = process_lock(threading.RLock)
"""Held while a node expands: of several threads that look, one records the steps, and the others wait."""


def expand(node: Node) -> None:
    """Record the steps of a fused node in its place, once."""
    with expanding:
        if node.require_extra().outer is None:
            _put_steps(node)


def _put_steps(node: Node) -> None:
    from pullback.engine.passes import is_running  # lazy: above this layer

    edges = _record_steps(node)
    if node.fused != _ROUNDS_ALIKE or node.operation == "linear_bias_added":  # of an input that is not contiguous
        _note_steps()
    assert edges[0] is not None
    outer = edges[0][0]
    assert outer.name() == node.name(), "the outermost step has the name of the fused node"
    known = {edge[0] for edge in node.next_edges if edge is not None}
    steps = steps_behind(edges, known)
    adjust_steps(node, steps)
    put_in_place(node, outer if node.output_count == 1 else StepsOfResults(node, tuple(edges)))
    if recorded_node(node).released:
        for step in steps:
            step.release_saved_tensors()
    elif not is_running():
        node.release_saved_tensors()


def put_in_place(node: Node, outer: Node) -> None:
    """Let a node hand its work to the outermost of its steps.

    # Note [Expansion]
    Passes of other threads may run over the node meanwhile. What they do follows from one read of `outer`: whether the
    node runs, with the edges that were read before, or the step, with its own. So `outer` is set before the edges change
    and after what they were is noted. While any pass runs, the node keeps what it saved, for one that is reading it. What
    the steps of such a node saved is released with the graph.
    """
    extra = node.require_extra()
    extra.fused_edges = node.next_edges
    extra.outer = outer
    node.next_edges = outer.next_edges


def edges_of(node: Node) -> Edges:
    """Return the edges that lead past a node's own steps, if it has any. See Note [Expansion]."""
    edges, extra = node.next_edges, node.extra
    return edges if extra is None or extra.outer is None else tuple(extra.fused_edges)


def _record_steps(node: Node) -> list[Edge | None]:
    """Record what PyTorch records in place of a fused node; return the edges of its results."""
    from pullback.functions import unfused  # lazy: it composes operations, which build on this layer

    with kept_switches(*SWITCH_DEFAULTS):
        set_switches(SWITCH_DEFAULTS)
        results = getattr(unfused, node.fused)(node)
    return [gradient_edge(result) for result in (results if isinstance(results, tuple) else (results,))]


def steps_behind(edges: Sequence[Edge | None], known: Set[Node], first: float = 0) -> list[Node]:
    """The nodes between these edges and others, which are known already or have a sequence number before `first`."""
    stack = [edge[0] for edge in edges if edge is not None]
    steps: dict[Node, None] = {}
    while stack:
        step = stack.pop()
        if step not in known and step not in steps and step.sequence_nr >= first:
            steps[step] = None
            stack.extend(edge[0] for edge in step.next_edges if edge is not None)
    return list(steps)


def saved_by_steps(node: Node, value: Tensor, version: float) -> Tensor:
    """What the steps read of a saved tensor that was given other data: itself, or its former memory if they saved views."""
    former = former_array(value, version)
    if former is None or any(_saves_itself(step, value) for step in _own_steps(node)):
        return value
    alias = new_tensor(former)
    alias._counter, alias._requires_grad, alias._edge = value._counter, value._requires_grad, gradient_edge(value)
    return alias


def _own_steps(node: Node) -> list[Node]:
    """The steps of a fused node, recorded anew."""
    return steps_behind(_record_steps(node), {edge[0] for edge in node.next_edges if edge is not None})


def _saves_itself(step: Node, value: Tensor) -> bool:
    saved = [getattr(step, f"saved_{name}", None) for name in step.saved_names]
    return any(isinstance(s, Tensor) and s._counter is value._counter and not s._is_view() for s in saved)


class StepsOfResults(Node):
    """Runs in place of a fused node with several results: each gradient goes to the step that made the result."""

    def __init__(self, node: Node, edges: Edges) -> None:
        self.next_edges, self.sequence_nr = edges, node.sequence_nr
        self.output_count, self.output_metadata = node.output_count, node.output_metadata
        self.shown_name = node.name()

    def name(self) -> str:
        return self.shown_name

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return tuple(grads[: len(edges)])

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return tuple(grads[: len(edges)])


def stand_in(node: Node, name: str, index: int, shape: Shape, dtype: Any = None) -> Tensor:
    """Return the tensor of edge `index` as the node saved it under `name`, or memory of its shape."""
    edge = node.next_edges[index]
    saved = None if node.released else getattr(node, f"saved_{name}", None)
    if saved is None and edge is not None and isinstance(edge[0], AccumulateGrad) and edge[0].variable.shape == shape:
        tensor = new_tensor(edge[0].variable._array)
    elif saved is None:
        tensor = new_tensor(empty(shape, node.dtype if dtype is None else dtype))
    else:
        known = saved if isinstance(saved, Tensor) else saved.as_tensor(node)
        former = former_array(known, getattr(node, f"saved_{name}_version"))
        tensor = new_tensor(known._array if former is None else former)
        if known._counter is None:
            known._counter = VersionCounter()
        tensor._counter = known._counter
    tensor._requires_grad, tensor._edge = edge is not None, edge
    return tensor


def adjust_steps(node: Node, steps: list[Node]) -> None:
    """Tell the steps what the fused node knew: its place in the order, released or modified values, the source line."""
    source = source_line_of(node)
    recorded = recorded_node(node)
    for step in steps:
        if node.extra is not None and node.extra.stream is not None:
            step.require_extra().stream = node.extra.stream
        if recorded.released:
            step.release_saved_tensors()
        else:
            _keep_versions(recorded, step)
        step.source = source
    fraction = math.ulp(node.sequence_nr)  # see Note [Sequence numbers]
    for place, step in enumerate(sorted(steps, key=lambda step: step.sequence_nr)):
        step.sequence_nr = node.sequence_nr + place * fraction


def recorded_node(node: Node) -> Any:
    """The node that saved what a fused one shows under another name."""
    return node.inner if isinstance(node, RenamedNode) else node


def _keep_versions(node: Node, step: Node) -> None:
    """A value that was modified since it was saved is as stale in the step."""
    for name in node.saved_names:
        saved = getattr(node, f"saved_{name}", None)
        version = getattr(node, f"saved_{name}_version", -1)
        if saved is not None and version >= 0 and former_array(saved, version) is not None:
            for own in step.saved_names:  # where a step saved the tensor itself, it reads the new data
                stand_in = getattr(step, f"saved_{own}", None)
                if isinstance(stand_in, Tensor) and stand_in._counter is saved._counter and not stand_in._is_view():
                    stand_in._array = saved._array
        if saved is None or version < 0 or not is_stale(saved, version):
            continue
        for own in step.saved_names:
            value = getattr(step, f"saved_{own}", None)
            if value is not None and getattr(value, "_counter", None) is saved._counter:
                setattr(step, f"saved_{own}_version", version)
