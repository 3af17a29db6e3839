"""Results: what a recorded call gives back and which `.grad`s it sets, described so that a program can give them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.backend.array_module import data_address, element_strides
from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.backend.traced_array import ReadNumber, is_traced
from pullback.compiling.capture import Capture, Grad, Output, version_of
from pullback.compiling.followed_values import without_followed
from pullback.compiling.numbers import TracedInt, TracedNumber
from pullback.compiling.program import Value
from pullback.compiling.recorder import Recorder
from pullback.compiling.structure import flatten
from pullback.generated.registry import OPERATIONS
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, held_fields
from pullback.modes.grad_mode import is_grad_enabled, is_inference_mode_enabled
from pullback.tensor.autograd_extra import DEFAULT, INFERENCE, NO_GRAD
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase

ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...), slice, range, type)
_FACTS = (device, dtype, Size)


class Results:
    """Describes the result of a call; `is_held` tells what was there before it."""

    def __init__(self, made: Capture, recorder: Recorder, is_held: Callable[[Any], bool]) -> None:
        self.made, self.recorder, self._is_held = made, recorder, is_held
        self._indices: dict[int, int] = {}
        """Which output of the program a new tensor is, by its identity."""
        self._inputs: set[Any] = set()
        self._taken: set[Value | None] = set()
        """The values of results."""

    def describe(self) -> None:
        """Say of each leaf of the result what it is."""
        made = self.made
        leaves: list[Any] = []
        made.structure = self._structure_of_result(leaves)
        by_identity = {id(given.tensor): place for place, given in enumerate(made.inputs)}
        known: dict[int, int] = {}
        origins: set[int] = set()
        for number, leaf in enumerate(leaves):
            output = Output()
            made.outputs.append(output)
            if type(leaf) is ReadNumber and not self.recorder.stops:
                output.index, output.is_number = len(made.program.outputs), True
                made.program.outputs.append(next(value for given, value in self.recorder.numbers if given is leaf))
                self._taken.add(made.program.outputs[-1])
            elif type(leaf) in (TracedNumber, TracedInt) and leaf._numbers is self.recorder.followed:
                output.expression = leaf._expression
            elif not isinstance(leaf, TensorBase):
                leaf = output.value = without_followed(leaf)
                if type(leaf) is str:
                    self.recorder.followed.read()  # a number may stand in it
                if not self._is_lasting(leaf):
                    self.recorder.stop(
                        f"the result holds an object ({type(leaf).__name__}), which a program cannot make"
                    )
                elif is_traced(leaf) or hasattr(leaf, "_array"):
                    self.recorder.stop("the result holds an array")
            elif id(leaf) in by_identity:
                output.input = by_identity[id(leaf)]
            elif id(leaf) in known:
                output.same_as = known[id(leaf)]
            else:
                if vars(leaf):
                    self.recorder.stop("the result is a tensor with attributes of the user's")
                    self.made.has_effects = True
                self._describe_new(leaf, output, origins)
                known[id(leaf)] = number
                if output.index is not None:
                    self._indices[id(leaf)] = output.index

    def _is_lasting(self, value: Any) -> bool:
        """Whether a program may give the object itself, each time: one that never changes, or was there before."""
        return isinstance(value, (*ATOMS, *_FACTS)) or self._is_held(value)

    def _structure_of_result(self, leaves: list[Any]) -> Any:
        found: dict[int, Any] = {}
        structure = flatten(self.made.result, leaves, found)
        if any(map(self._is_held, found.values())):
            self.recorder.stop("the result holds a list, dictionary or object that was there before the call")
        elif len(found) < _count_containers(structure):
            self.recorder.stop("the result holds a list, dictionary or object twice")
        return structure

    def _describe_new(self, leaf: Any, output: Output, origins: set[int]) -> None:
        program = self.made.program
        if self._describe_view(leaf, output):
            return
        output.index = len(program.outputs)
        output.requires_grad = leaf._requires_grad
        program.outputs.append(self._own_value(leaf._array))
        block, base = self.recorder.block_of(leaf._array), leaf._base if leaf._is_view() else leaf
        if leaf.is_inference() is not is_inference_mode_enabled():
            self.recorder.stop("the result was made in inference mode, which the call is not in")
        if type(leaf) is not Tensor:
            self.recorder.stop(f"the result holds a {type(leaf).__name__}")
        if block is not None and block.place is not None:
            self.recorder.stop("the result is a view of an argument, or of a tensor from outside of the function")
        elif (block is not None and id(block) in origins) or id(base) in origins:
            self.recorder.stop("two results share memory, or did before one was given other memory")
        elif leaf._requires_grad and leaf._edge is None and not leaf._has_edge():
            self.recorder.stop("the result is a new leaf that requires grad")
        elif leaf._grad is not None:
            self.recorder.stop("the result has a .grad of its own")
        origins |= {id(block), id(base)}

    def _own_value(self, array: Any) -> Value:
        """The value of a result, which has memory of its own: one that others hold too is copied."""
        value = self.recorder.read(array)
        if value in self._taken or value in self._own_inputs():
            value = self.recorder.copied(value, array)
        self._taken.add(value)
        return value

    def _own_inputs(self) -> set[Any]:
        """The inputs, all of which were found before the first result is asked for."""
        if len(self._inputs) != len(self.recorder.program.inputs):
            self._inputs = set(self.recorder.program.inputs)
        return self._inputs

    def _describe_view(self, leaf: Any, output: Output) -> bool:
        """Whether a result is a view of an input: then it is taken of that again."""
        array = leaf._array
        block = self.recorder.block_of(array)
        if type(leaf) is not Tensor or block is None or block.place is None:
            return False
        source = self.made.inputs[block.place].tensor
        base = source._array
        if base.dtype != array.dtype or any(step < 0 for step in array.strides):
            return False
        if leaf.is_inference() is not source.is_inference():
            return False  # made in inference mode, by an operation that gives no view there
        if leaf._requires_grad != source._requires_grad and leaf._is_view():
            return False  # made while nothing was recorded: what may be done with it differs
        view = None if leaf._extra is None else leaf._extra.view
        if source._requires_grad and view is not None and view.creation != DEFAULT:
            return False  # one of several, or of a custom function: it may not be modified
        base_view = None if source._extra is None else source._extra.view
        if view is not None and view.base is _base_of(source) and view.creation != _creation_now(base_view):
            return False  # made while another grad mode was on: what may be done with it differs
        if view is not None and view.attr_version != version_of(leaf):
            return False  # modified since it was taken, which tells it from one that is taken now
        path = _path_of_views(gradient_edge(leaf), gradient_edge(source)) if leaf._requires_grad else []
        if path is None:
            return False
        offset = (data_address(array) - data_address(base)) // array.itemsize
        output.input = block.place
        is_detached = not leaf._requires_grad and (view is None or view.base is not _base_of(source))
        output.path = path
        shares_version = leaf._counter is not None and leaf._counter is source._counter
        alias = "" if not is_detached else "detach" if shares_version else "data"
        output.window = (array.shape, element_strides(array), offset, alias)
        return True

    def describe_grads(self) -> None:
        """Find the `.grad`s that the function set."""
        made = self.made
        for place, given in enumerate(made.inputs):
            now = given.tensor._grad
            if now is given.grad_before:
                continue
            if now is None:
                made.grads.append(Grad(place, None))
                continue
            block = self.recorder.block_of(now._array)
            if type(now) is not Tensor or now._requires_grad or (block is not None and block.place is not None):
                self.recorder.stop("a .grad is set to a tensor that is more than a gradient")
            if now.is_inference() is not is_inference_mode_enabled():
                self.recorder.stop("a .grad was made in inference mode, which the call is not in")
            if id(now) not in self._indices:
                self._indices[id(now)] = len(made.program.outputs)
                made.program.outputs.append(self._own_value(now._array))
            made.grads.append(Grad(place, self._indices[id(now)]))
        made.shown = len(made.program.outputs)


def _creation_now(source: Any) -> int:
    """How a view is created that is taken now; `source` tells of what it is taken of, if that is a view."""
    if is_inference_mode_enabled():
        return INFERENCE
    if not is_grad_enabled():
        return NO_GRAD
    return DEFAULT if source is None else int(source.creation)


def _base_of(tensor: Any) -> Any:
    return tensor if tensor._base is None else tensor._base


def _count_containers(structure: Any) -> int:
    """How many lists, dictionaries and objects a structure has."""
    if structure is None:
        return 0
    kind, *parts = structure
    has_names = kind is dict or kind is OrderedDict or hasattr(kind, "__dataclass_fields__")
    if has_names:
        del parts[0]
    return (kind is list or has_names) + sum(map(_count_containers, parts))


def _path_of_views(edge: Any, end: Any) -> list[tuple[type[Node], dict[str, Any]]] | None:
    """What makes the nodes between two edges of the graph anew, if they are of views alone: None if not."""
    path = []
    while edge is not None and edge != end:
        node = edge[0]
        record = OPERATIONS.get(node.operation)
        if record is None or not record.view or len(node.next_edges) != 1:
            return None
        path.append(
            (type(node), {name: value for name, value in held_fields(node).items() if name not in _OF_ONE_CALL})
        )
        edge = node.next_edges[0]
    return None if edge is None else path[::-1]


_OF_ONE_CALL = frozenset(["next_edges", "sequence_nr"])
"""What a node of a later call does not share with the recorded one."""
