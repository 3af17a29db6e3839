"""TracedInputs: while a call is recorded, the tensors in its reach hold traced arrays, and arguments begin a graph there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.backend.array_module import data_address, ndarray
from pullback.backend.device_array import DeviceArray
from pullback.backend.traced_array import is_traced, plain
from pullback.compiling.capture import Capture, Input, hooks_of, version_of
from pullback.compiling.nodes import CompiledFunctionInput
from pullback.compiling.recorder import Recorder
from pullback.errors import ViewModificationError
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.graph.node import new_node, next_sequence_nr
from pullback.tensor.tensor import TensorBase


class TracedInputs:
    """The inputs of a call: tensors among the leaves of its arguments, and those `around` the function."""

    def __init__(
        self, made: Capture, recorder: Recorder, leaves: Iterable[Any], around: dict[int, Any], asks_for_gradients: bool
    ) -> None:
        self.made, self.recorder = made, recorder
        self._asks_for_gradients = asks_for_gradients
        self.edges: list[tuple[Any, Any]] = []
        """Arguments with a history, with the node that they begin at here and their own edge."""
        self._find(leaves, around)
        self.hooks = [hooks for g in made.inputs if (hooks := hooks_of(g.tensor))]

    def _find(self, leaves: Iterable[Any], around: dict[int, Any]) -> None:
        made = self.made
        seen: set[int] = set()
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, TensorBase) and id(leaf) not in seen:
                seen.add(id(leaf))
                made.inputs.append(Input(leaf, place))
                if leaf._grad is not None:
                    around.setdefault(id(leaf._grad), leaf._grad)
        for tensor in around.values():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                made.inputs.append(Input(tensor, None))
        if any(given.tensor.is_sparse for given in made.inputs):
            self.recorder.stop("a sparse tensor is in reach")
            made.inputs = [given for given in made.inputs if not given.tensor.is_sparse]
        grads = {id(given.grad_before): given for given in made.inputs if given.grad_before is not None}
        for given in made.inputs:
            if given.place is None:
                given.grad_of = grads.get(id(given.tensor))

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Let the tensors hold traced arrays, and arguments begin a graph of their own."""
        made, edges = self.made, self.edges
        told = [(hooks, _let_tell(hooks, self.recorder)) for pair in self.hooks for hooks in pair]
        obstacle = self._find_obstacle()
        if obstacle is not None:
            self.recorder.stop(obstacle)
        try:
            for given in made.inputs:
                self._check_input(given.tensor)
                given.tensor._array = self.recorder.add_input(given.before)
                given.value = self.recorder.program.inputs[-1]
                edges.append((given.tensor, _begin_here(given.tensor, self._leave) if obstacle is None else None))
            yield
        finally:
            for given in made.inputs:
                if given.tensor._array is not given.before:
                    if not is_traced(given.tensor._array) or not _is_same(given.tensor._array, given.before):
                        self.recorder.stop("a tensor gets other memory (.data = ..., set_(), resize_())")
                        given.tensor._array = plain(given.tensor._array)
                    else:
                        given.tensor._array = given.before
            for tensor, edge in edges:
                self._end_here(tensor, edge)
            for hooks, former in told:
                _give_back(hooks, former)

    def _find_obstacle(self) -> str | None:
        """Why arguments must keep their places in the graph: something may be asked there."""
        try:
            edges = [gradient_edge(given.tensor) for given in self.made.inputs if given.tensor._requires_grad]
        except ViewModificationError:  # eager execution raises this where it asks for the edge, if it does
            return "an argument is a view that may not be used any more"
        nodes = [edge[0] for edge in edges if edge is not None and not isinstance(edge[0], AccumulateGrad)]
        had_hooks = any(
            given.had_hooks and not given.tensor.is_leaf for given in self.made.inputs if given.tensor._requires_grad
        )
        if had_hooks or any(node.extra is not None and node.extra.has_hooks() for node in nodes):
            return "an argument that was computed has hooks"
        if any(map(_had_another_shape, edges)):
            return "an argument had another shape or dtype when its gradients' place was made"
        if len(nodes) > 1 and self._asks_for_gradients and _are_connected(nodes):
            return "gradients are asked for, and one argument was computed from another"
        return None

    def _leave(self) -> None:
        if self.recorder.is_open():
            self.recorder.stop("a backward goes on before the arguments of the function")

    def _check_input(self, tensor: Any) -> None:
        extra = tensor._extra
        if not _is_recordable(tensor._array) or not type(tensor).__module__.startswith("pullback"):
            self.recorder.stop(f"{type(tensor).__name__} is not a plain tensor")
        elif extra is not None and (extra.tangents or extra.mirror is not None):
            self.recorder.stop("a tensor carries a tangent, or shows another one's memory conjugated")
        elif not tensor._array.flags.writeable and tensor._array.size and 0 not in tensor._array.strides:
            self.recorder.stop("a tensor's memory is read-only")

    def _end_here(self, tensor: Any, edge: Any) -> None:
        """Give a tensor its own place in the graph back."""
        if edge is None:
            return
        node, former = edge
        node.next_edges, node.leave = (former,), None
        extra = tensor._extra
        if extra is not None and extra.view is not None:
            # A write to a view, or through a view of it, gives its base another history and leaves the view's edge to be
            # found again: it is of another version.
            view = extra.view
            if view.edge is None or view.edge[0] is not node or view.attr_version != version_of(tensor):
                self.recorder.stop("an argument that requires grad is modified in place")
            else:
                extra.view.edge = former
        elif tensor._edge is None or tensor._edge[0] is not node:
            self.recorder.stop("an argument that requires grad is modified in place")
        else:
            tensor._edge = former


def _let_tell(hooks: Any, recorder: Recorder) -> dict[Any, Any]:
    """Let hooks stop the recording when they run; gives them as they were. Handles of hooks know their dictionary."""

    def telling(hook: Any) -> Any:
        def run(*args: Any) -> Any:
            recorder.stop("a hook of a tensor from outside of the function runs")
            return hook(*args)

        return run

    former = dict(hooks or {})
    for key, hook in former.items():
        hooks[key] = telling(hook)
    return former


def _give_back(hooks: Any, former: dict[Any, Any]) -> None:
    """Put those hooks back that were not removed meanwhile."""
    for key in former.keys() & (hooks or {}).keys():
        hooks[key] = former[key]


def _had_another_shape(edge: Any) -> bool:
    """Whether a gradient is brought into another form where it arrives: a backward that is recorded would contain that."""
    return edge is not None and edge[0].extra is not None and bool(edge[0].extra.former_shape)


def _begin_here(tensor: Any, leave: Callable[[], None]) -> Any:
    """Give an argument that was computed from others a node of its own; the node and the former edge."""
    if not tensor._requires_grad:
        return None
    extra = tensor._extra
    edge = gradient_edge(tensor)
    if edge is None or isinstance(edge[0], AccumulateGrad):
        return None
    node = new_node(CompiledFunctionInput)
    node.next_edges, node.leave = (edge,), leave
    node.sequence_nr = next_sequence_nr()
    node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
    if extra is not None and extra.view is not None:
        extra.view.edge = (node, 0)
    else:
        tensor._edge = (node, 0)
    return node, edge


def _are_connected(nodes: Sequence[Any]) -> bool:
    """Whether one of some nodes can be reached from another."""
    wanted = set(nodes)
    pending = [edge[0] for node in wanted for edge in node.next_edges if edge is not None]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if node in wanted:
            return True
        for edge in node.next_edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                pending.append(edge[0])
    return len(wanted) < len(nodes)


def _is_same(array: Any, before: Any) -> bool:
    if array.shape != before.shape or array.strides != before.strides:
        return False
    return data_address(array) == data_address(before)


def _is_recordable(array: Any) -> bool:
    """Whether an array is NumPy's own, or one of a device that is the only one of its type."""
    if isinstance(array, DeviceArray):
        return not is_traced(array) and array.library.is_single()
    return type(array) is ndarray
