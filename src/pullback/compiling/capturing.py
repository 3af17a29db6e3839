"""Capture: one call of a function, run eagerly and written down as a program with everything that surrounds it."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pullback.backend.array_module import data_address, element_strides, is_array, ndarray
from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import dtype
from pullback.backend.mirror import is_mirrored, living_mirrors
from pullback.backend.traced_array import ReadNumber, is_traced, plain
from pullback.compiling.collecting import not_collecting
from pullback.compiling.effects import watching_calls
from pullback.compiling.kernel_names import following_sizes, recording_kernels, stopping_at_methods, watching_streams
from pullback.compiling.memory import laid_out, storage_key
from pullback.compiling.nodes import CompiledFunctionInput
from pullback.compiling.number_flow import NumberWatch
from pullback.compiling.numbers import Condition, Sizes, TracedInt, TracedNumber, plain_number
from pullback.compiling.optimizer_updates import recording_updates
from pullback.compiling.program import Call, JointProgram, Number, Program, Value
from pullback.compiling.random_streams import random_states, set_random_states
from pullback.compiling.recorder import Recorder, Stop
from pullback.compiling.structure import flatten, unflatten
from pullback.compiling.surroundings import Surroundings
from pullback.engine.engine import engine
from pullback.errors import GraphFreedError, ViewModificationError
from pullback.generated.registry import OPERATIONS
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.history import gradient_edge
from pullback.graph.living_objects import living
from pullback.graph.node import new_node, next_sequence_nr
from pullback.graph.saved_tensor import SavedOutput
from pullback.modes.cuts import Cut, cuts
from pullback.modes.grad_mode import is_inference_mode_enabled
from pullback.native.locks import process_lock
from pullback.tensor.autograd_extra import DEFAULT
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor

_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...), slice, range, type)
_FACTS = (device, dtype, Size)
_recording_lock = process_lock()
"""One recording at a time: it changes the arrays of tensors that other threads may hold too."""


class Input:
    """A tensor that the program reads or writes: an argument, or one that was found in the surroundings."""

    __slots__ = (
        "before", "grad_before", "grad_form", "grad_of", "had_hooks", "place", "requires_grad", "tensor", "value", "version",
    )  # fmt: skip

    def __init__(self, tensor: Any, place: int | None) -> None:
        self.tensor = tensor
        self.place = place
        """Which leaf of the arguments it is; None for one of the surroundings."""
        self.before = tensor._array
        self.grad_of: Input | None = None
        """The input whose `.grad` it is: another tensor in each call."""
        self.value: Any = None
        self.version = version_of(tensor)
        self.grad_before = tensor._grad
        self.grad_form = form_of_grad(tensor)
        self.requires_grad = tensor._requires_grad
        self.had_hooks = hooks_of(tensor) is not None

    def copied(self, value: Any) -> Input:
        """The same input of another program; without the tensor, where that is another one in each call."""
        new: Input = Input.__new__(Input)
        for name in Input.__slots__:
            setattr(new, name, getattr(self, name))
        new.value, new.before, new.grad_before = value, None, None
        if self.place is not None or self.grad_of is not None:
            new.tensor = None
        return new


class Output:
    """A leaf of the result: a new tensor (`index` among the outputs), an input itself, or a plain value."""

    __slots__ = ("expression", "index", "input", "is_number", "requires_grad", "same_as", "value", "window")

    def __init__(self) -> None:
        self.index: int | None = None
        self.input: int | None = None
        self.is_number = False
        """Whether it is the value of a new tensor, as `.item()` gives it."""
        self.requires_grad = False
        self.expression: Any = None
        """Of a number that is computed from arguments."""
        self.value: Any = None
        self.same_as: int | None = None
        """The earlier leaf that this one is too."""
        self.window: Any = None
        """Of a view of an input: its sizes, strides and offset, in elements, and whether it is detached."""

    def copied(self) -> Output:
        """The same leaf of another result."""
        new = Output()
        for name in Output.__slots__:
            setattr(new, name, getattr(self, name))
        return new


class Grad:
    """What becomes of the `.grad` of an input: None, or a new tensor (`index` among the outputs)."""

    __slots__ = ("index", "input")

    def __init__(self, input: int, index: int | None) -> None:
        self.input = input
        self.index = index


class Capture:
    """A recorded call. `stops` say why it cannot be run as a program, if it cannot."""

    def __init__(self) -> None:
        self.stops: list[Stop] = []
        self.breaks: list[tuple[int, int]] = []
        """Where the function's text stopped it. See Note [Segments]."""
        self.spots: list[tuple[int, int] | None] = []
        """For each kernel that was called, where in that text the function was, if that was wanted."""
        self.has_effects = False
        """Whether something outside of the function was changed."""
        self.result: Any = None
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.structure: Any = None
        self.grads: list[Grad] = []
        self.versions: list[tuple[int, int]] = []
        """Inputs that were written to, and how often."""
        self.program = Program([])
        self.shown = 0
        """How many outputs of the program are leaves of the result or `.grad`s; gradients of inputs follow."""
        self.gradient_values: list[Value] = []
        """The gradients that come in, one for each differentiable output."""
        self.differentiable: list[int] = []
        """Places, among `inputs`, of those that get gradients."""
        self.cut_off: list[tuple[int, str, Any]] = []
        """Arguments that require grad and get none: their places among the leaves, and by what, at which line."""
        self.reads_grads = False
        """Whether some code that ran asks for a `.grad`."""
        self.scalars: list[tuple[Number | Value, Any]] = []
        """Numbers, or arrays without dimensions, that follow the tensors among the inputs, with their expressions."""
        self.conditions: list[Condition] = []
        self.free: frozenset[int] = frozenset()
        """The places of numbers, among the leaves of the arguments, that were followed."""
        self.reads_numbers = False
        """Whether Python may have used the value of a number that was to be an input."""
        self.state: Any = None
        """That of the random stream before the call."""
        self.is_freed = False
        """Whether the graph of the results was used up inside of the function."""
        self.sizes: Sizes | None = None
        """What the user's code learned of sizes, if that was followed."""
        self.surroundings: Surroundings | None = None
        self.recorder: Any = None
        self.new_tensors: NewTensors | None = None
        """The tensors that were made meanwhile, some of which outlive the recording."""

    def array_of(self, value: Value) -> Any:
        """The array that held a value when the call was recorded; None if it was written over."""
        if value.constant is not None:
            return value.constant
        for given in self.inputs:
            if given.value is value:
                return None if any(given.value is v for v in self._written()) else given.before
        return self.recorder.computed(value)

    def _written(self) -> list[Any]:
        return [self.program.inputs[place] for place, _ in self.program.writes]

    def release_traced(self) -> None:
        """Give tensors that outlive the recording plain arrays."""
        if self.new_tensors is not None:
            self.new_tensors.release_traced()

    def release(self) -> None:
        """Forget what was computed."""
        self.recorder = None
        for given in self.inputs:
            if given.place is not None or given.grad_of is not None:
                given.tensor = None
            given.before = given.grad_before = None

    def joint(self) -> JointProgram:
        """Forward and backward in one."""
        return JointProgram(self.program, len(self.gradient_values), len(self.differentiable))


def capture(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], code: Any = None, *,
    with_spots: bool = False, free: frozenset[int] = frozenset(), with_sizes: bool = False,
) -> Capture | None:  # fmt: skip
    """Call a function and record it; None if another recording goes on.

    `code` is the function's, whose breaks are to be known; `with_spots` notes where in it each kernel was called; `free` are
    the places of numbers, among the leaves of the arguments, that are inputs (Note [Changing numbers]); `with_sizes` follows
    sizes (Note [Followed sizes]).
    """
    if not _recording_lock.acquire(blocking=False):
        return None
    try:
        with not_collecting():
            new_tensors = NewTensors()
            capturing = _Capturing(function, args, kwargs, code, new_tensors)
            capturing.follow(free)
            capturing.made.free = free
            capturing.follows_sizes = with_sizes
            capturing.recorder.spots = [] if with_spots else None
            made = capturing.run()
            made.new_tensors = new_tensors
            return made
    finally:
        _recording_lock.release()


class _Capturing:
    follows_sizes = False

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], code: Any,
        new_tensors: NewTensors,
    ) -> None:  # fmt: skip
        self.function, self.args, self.kwargs = function, args, kwargs
        self.made = Capture()
        self._mirrors_before = living_mirrors()
        self._asks_for_gradients = code is not None and not {"grad", "backward"}.isdisjoint(code.co_names)
        self.leaves: list[Any] = []
        self._inputs: set[Any] = set()
        self._taken: set[Value | None] = set()
        """The values of results."""
        self.edges: list[tuple[Any, Any]] = []
        """Arguments with a history, with the node that they begin at here and their own edge."""
        self.containers: dict[int, Any] = {}
        self.structure = flatten((args, kwargs), self.leaves, self.containers)
        objects = [leaf for leaf in self.leaves if not isinstance(leaf, (TensorBase, *_ATOMS))]
        self.roots = (function, *objects)
        self.surroundings = self.made.surroundings = Surroundings(*self.roots)
        self.recorder = Recorder(self.surroundings.storage, new_tensors.storage_of_others, code)
        if self.surroundings.problem is not None:
            self.recorder.stops.append(Stop(self.surroundings.problem, None))

    def follow(self, places: frozenset[int]) -> None:
        """Let numbers among the arguments tell what is computed with them."""
        if places:
            numbers = self.recorder.followed
            leaves = [numbers.trace(v, [p]) if p in places else v for p, v in enumerate(self.leaves)]
            self.args, self.kwargs = unflatten(self.structure, iter(leaves))
            self.leaves = leaves

    def run(self) -> Capture:
        made, recorder = self.made, self.recorder
        made.state = random_states()
        cuts_before = {cut[:3] for cut in cuts()}
        try:
            with self._inputs_traced(), recording_kernels(recorder), watching_streams():
                with ExitStack() as stack:
                    stack.enter_context(stopping_at_methods(recorder))
                    stack.enter_context(recording_updates())
                    if self.follows_sizes:
                        stack.enter_context(following_sizes())
                    stack.enter_context(watching_calls(recorder, self._is_held, self._number_watch()))
                    made.result = self.function(*self.args, **self.kwargs)
                try:
                    self._describe_result()
                    self._describe_grads()
                    self._try_backward()
                except Exception as error:  # the call itself went well: its result is given, eagerly
                    recorder.stop(f"what was recorded cannot be described ({type(error).__name__}: {error})")
        finally:
            recorder.close()
        made.cut_off = self._cut_off([cut for cut in cuts() if cut[:3] not in cuts_before])
        self._finish()
        return made

    def _cut_off(self, noted: list[Cut]) -> list[tuple[int, str, Any]]:
        """What the call noted of arguments without a gradient. See Note [Cuts]."""
        gets = {id(self.made.inputs[place].tensor) for place in self.made.differentiable}
        without = [
            (place, leaf)
            for place, leaf in enumerate(self.leaves)
            if isinstance(leaf, TensorBase) and leaf._requires_grad and id(leaf) not in gets
        ]
        return [(place, cut.kind, cut.line) for place, leaf in without for cut in noted if cut.concerns(leaf)]

    def _number_watch(self) -> NumberWatch | None:
        follows_numbers = any(type(leaf) in (TracedNumber, TracedInt) for leaf in self.leaves)
        if not follows_numbers and not self.follows_sizes:
            return None
        recorder = self.recorder
        return NumberWatch(
            recorder.followed if follows_numbers else None, recorder.sizes if self.follows_sizes else None
        )

    @contextmanager
    def _inputs_traced(self) -> Iterator[None]:
        """Let the tensors in reach hold traced arrays, and arguments begin a graph of their own."""
        made = self.made
        seen: set[int] = set()
        for place, leaf in enumerate(self.leaves):
            if isinstance(leaf, TensorBase) and id(leaf) not in seen:
                seen.add(id(leaf))
                made.inputs.append(Input(leaf, place))
                if leaf._grad is not None:
                    self.surroundings.tensors.setdefault(id(leaf._grad), leaf._grad)
        for tensor in self.surroundings.tensors.values():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                made.inputs.append(Input(tensor, None))
        edges = self.edges
        grads = {id(given.grad_before): given for given in made.inputs if given.grad_before is not None}
        for given in made.inputs:
            if given.place is None:
                given.grad_of = grads.get(id(given.tensor))
        self.hooks = [(g.tensor._extra, hooks) for g in made.inputs if (hooks := hooks_of(g.tensor))]
        for extra, hooks in self.hooks:
            extra.hooks = _telling(hooks[0], self.recorder)
            extra.post_accumulate_hooks = _telling(hooks[1], self.recorder)
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
            for extra, hooks in self.hooks:
                extra.hooks, extra.post_accumulate_hooks = hooks

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
        if len(nodes) > 1 and self._asks_for_gradients and _are_connected(nodes):
            return "gradients are asked for, and one argument was computed from another"
        return None

    def _leave(self) -> None:
        if self.recorder.is_open():
            self.recorder.stop("a backward goes on before the arguments of the function")

    def _is_held(self, value: Any) -> bool:
        """Whether a container was there before the call."""
        return id(value) in self.containers or self.surroundings.holds(value)

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
            # A write to a view gives its base another history and leaves the view's edge to be found again (version -1).
            if extra.view.edge is None or extra.view.edge[0] is not node or extra.view.attr_version < 0:
                self.recorder.stop("an argument that requires grad is modified in place")
            else:
                extra.view.edge = former
        elif tensor._edge is None or tensor._edge[0] is not node:
            self.recorder.stop("an argument that requires grad is modified in place")
        else:
            tensor._edge = former

    def _describe_result(self) -> None:
        made = self.made
        leaves: list[Any] = []
        made.structure = self._structure_of_result(leaves)
        by_identity = {id(given.tensor): place for place, given in enumerate(made.inputs)}
        known: dict[int, int] = {}
        self.indices: dict[int, int] = {}
        blocks: set[int] = set()
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
                leaf = output.value = _without_followed(leaf)
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
                self._describe_new(leaf, output, blocks)
                known[id(leaf)] = number
                if output.index is not None:
                    self.indices[id(leaf)] = output.index

    def _is_lasting(self, value: Any) -> bool:
        """Whether a program may give the object itself, each time: one that never changes, or was there before."""
        return isinstance(value, (*_ATOMS, *_FACTS)) or self.surroundings.holds(value)

    def _structure_of_result(self, leaves: list[Any]) -> Any:
        found: dict[int, Any] = {}
        structure = flatten(self.made.result, leaves, found)
        if any(map(self._is_held, found.values())):
            self.recorder.stop("the result holds a list or dictionary that was there before the call")
        elif len(found) < _count_containers(structure):
            self.recorder.stop("the result holds a list or dictionary twice")
        now: list[Any] = []
        if flatten((self.args, self.kwargs), now) != self.structure or not all(map(operator.is_, now, self.leaves)):
            self.recorder.stops.append(Stop("the function changes a list or dictionary among its arguments", None))
            self.made.has_effects = True
        return structure

    def _describe_new(self, leaf: Any, output: Output, blocks: set[int]) -> None:
        program = self.made.program
        if self._describe_view(leaf, output):
            return
        output.index = len(program.outputs)
        output.requires_grad = leaf._requires_grad
        program.outputs.append(self._own_value(leaf._array))
        block = self.recorder.block_of(leaf._array)
        if leaf.is_inference() is not is_inference_mode_enabled():
            self.recorder.stop("the result was made in inference mode, which the call is not in")
        if type(leaf) is not Tensor:
            self.recorder.stop(f"the result holds a {type(leaf).__name__}")
        if block is not None and block.place is not None:
            self.recorder.stop("the result is a view of an argument, or of a tensor from outside of the function")
        elif block is not None and id(block) in blocks:
            self.recorder.stop("two results share memory")
        elif leaf._requires_grad and leaf._edge is None and not leaf._has_edge():
            self.recorder.stop("the result is a new leaf that requires grad")
        blocks.add(id(block))

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
        if view is not None and view.attr_version != version_of(leaf):
            return False  # modified since it was taken, which tells it from one that is taken now
        if leaf._requires_grad and not _is_path_of_views(gradient_edge(leaf), gradient_edge(source)):
            return False
        offset = (data_address(array) - data_address(base)) // array.itemsize
        output.input = block.place
        is_detached = not leaf._requires_grad and (view is None or view.base is not (source._base or source))
        output.window = (array.shape, element_strides(array), offset, is_detached)
        return True

    def _describe_grads(self) -> None:
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
            if id(now) not in self.indices:
                self.indices[id(now)] = len(made.program.outputs)
                made.program.outputs.append(self._own_value(now._array))
            made.grads.append(Grad(place, self.indices[id(now)]))
        made.shown = len(made.program.outputs)

    def _try_backward(self) -> None:
        """Record the backward, which nobody asked for: what it does to tensors and to the random stream is undone."""
        recorder, state = self.recorder, random_states()
        recorder.undo = []
        try:
            self._record_backward()
        finally:
            for target, before in reversed(recorder.undo):
                plain(target)[...] = before
            if recorder.undo:
                recorder.stop("the backward writes to a tensor, as a checkpoint does that computes again")
            recorder.undo = None
            recorder.aside(set_random_states, state)

    def _record_backward(self) -> None:
        """Run the graph of the results backward, for gradients of any value, and record that too."""
        made, recorder = self.made, self.recorder
        wanted = [output for output in made.outputs if output.requires_grad]
        if not wanted or recorder.stops:
            return
        leaves: list[Any] = []
        flatten(made.result, leaves)
        tensors = [leaf for leaf, output in zip(leaves, made.outputs, strict=True) if output.requires_grad]
        targets = [place for place, given in enumerate(made.inputs) if given.tensor._requires_grad]
        edges: list[Any] = [gradient_edge(made.inputs[place].tensor) for place in targets]
        roots: list[Any] = [gradient_edge(tensor) for tensor in tensors]
        if self._has_hooks(roots):
            recorder.stop("hooks are registered inside of the function")
            return
        grads = []
        for tensor in tensors:
            array = tensor._array
            array = laid_out(1, array.shape, array.strides, array.dtype, getattr(array, "place", None))
            grads.append(new_tensor(recorder.add_input(array)))
            made.gradient_values.append(recorder.program.inputs[-1])  # type: ignore[arg-type]  # no Number is added here
        for extra, _ in self.hooks:
            extra.hooks = None  # they run when the gradient arrives, outside of the program
        for _, edge in self.edges:
            if edge is not None:
                edge[0].next_edges, edge[0].leave = (), None  # what lies before the arguments is none of its gradients
        begin = len(recorder.program.calls)
        try:
            captured = engine.execute(
                roots, grads, keep_graph=True, create_graph=False,
                captures=edges, accumulate=False,
            )  # fmt: skip
        except GraphFreedError:
            if not all(self._is_used_up(root, grad, edges) for root, grad in zip(roots, grads, strict=True)):
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
            if (
                not array.size and len(tensors) > 1
            ):  # empty arrays are constants: they tell of no result that leads to them
                recorder.stop("one of several results leads to a gradient without elements")
                return
            made.differentiable.append(place)
            made.program.outputs.append(recorder.read(array))

    def _is_used_up(self, root: Any, grad: Any, ends: Sequence[Any]) -> bool:
        """Whether a backward from one result meets a node that an earlier one freed."""
        try:
            engine.execute([root], [grad], keep_graph=True, create_graph=False, captures=ends, accumulate=False)
        except GraphFreedError:
            return True
        return False

    def _has_hooks(self, roots: Sequence[Any]) -> bool:
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

    def _finish(self) -> None:
        made, recorder = self.made, self.recorder
        made.recorder = recorder
        program = made.program
        program.calls = recorder.program.calls
        made.scalars = list(recorder.scalars.values())
        made.conditions = recorder.followed.conditions
        made.reads_numbers = recorder.followed.is_read
        made.sizes = recorder.sizes if self.follows_sizes else None
        tensors = recorder.program.inputs[: len(made.inputs)]
        program.inputs = [*tensors, *[number for number, _ in made.scalars], *made.gradient_values]
        program.writes = recorder.written_inputs()
        leaves: list[Any] = []
        flatten(made.result, leaves)
        for leaf in leaves:
            if isinstance(leaf, TensorBase):
                leaf._array = plain(leaf._array)
        if any(type(leaf) in (ReadNumber, TracedNumber, TracedInt, Size) for leaf in leaves):
            leaves = [float(leaf) if type(leaf) is ReadNumber else _without_followed(leaf) for leaf in leaves]
            made.result = unflatten(made.structure, iter(leaves))
        for given in made.inputs:
            if given.tensor._grad is not None:
                given.tensor._grad._array = plain(given.tensor._grad._array)
        for place, given in enumerate(made.inputs):
            if given.tensor._requires_grad is not given.requires_grad:
                recorder.stop("the function changes whether a tensor requires grad")
            if version_of(given.tensor) != given.version:
                made.versions.append((place, version_of(given.tensor) - given.version))
        returns_graph = any(
            (o.requires_grad and not made.is_freed) or (o.window and not o.window[-1]) for o in made.outputs
        )
        if returns_graph and any(made.inputs[place].requires_grad for place, _ in program.writes):
            recorder.stop("a tensor that requires grad is written to, and the result requires grad")
        changed = self.surroundings.changed()
        made.has_effects |= changed is not None
        if changed is not None:
            recorder.stops.append(
                Stop(f"the function changes {changed.describe()}, which skipping it would lose", None)
            )
        if living_mirrors() - self._mirrors_before or any(is_mirrored(given.before) for given in made.inputs):
            recorder.stops.append(Stop("memory is shown conjugated", None))
        made.stops, made.breaks, made.spots = recorder.stops, recorder.breaks, recorder.spots or []
        if made.stops:
            return
        if not recorder.reads_any_name:
            made.surroundings = Surroundings(*self.roots, names=recorder.names | recorder.own_names)
        made.reads_grads = "grad" in recorder.names | recorder.own_names
        if "param_groups" not in recorder.names:
            (made.surroundings or self.surroundings).leave_out_rates()
        self._drop_unused_inputs()

    def _drop_unused_inputs(self) -> None:
        """Keep those inputs that something reads, writes or returns."""
        made, program = self.made, self.made.program
        used: set[Value | Number | None] = {*program.outputs, *[value for _, value in program.writes]}
        for call in program.calls:
            used.update(call.reads)
        keep = {place for place, _ in program.writes} | {grad.input for grad in made.grads}
        keep |= {output.input for output in made.outputs if output.input is not None} | set(made.differentiable)
        keep |= {place for place, _ in made.versions}
        if made.reads_grads:  # whether there is one is compared
            keep |= {place for place, given in enumerate(made.inputs) if given.requires_grad}
        used |= {g.grad_of.value for g in made.inputs if g.grad_of is not None and g.value in used}
        kept = [place for place, given in enumerate(made.inputs) if given.value in used or place in keep]
        new = {place: number for number, place in enumerate(kept)}
        others = program.inputs[len(made.inputs) :]
        made.inputs = [made.inputs[place] for place in kept]
        program.inputs = [*[given.value for given in made.inputs], *others]
        program.writes = [(new[place], value) for place, value in program.writes]
        made.versions = [(new[place], count) for place, count in made.versions]
        made.differentiable = [new[place] for place in made.differentiable]
        for grad in made.grads:
            grad.input = new[grad.input]
        for output in made.outputs:
            if output.input is not None:
                output.input = new[output.input]


def _has_empty_array(call: Call) -> bool:
    """Whether a call reads or makes an array without elements."""
    values = (*call.results, *call.reads)
    return any(isinstance(value, Value) and 0 in value.shape for value in values)


def _without_followed(leaf: Any) -> Any:
    """A leaf of a result with Python's own numbers."""
    if type(leaf) is Size:
        return tuple.__new__(Size, [plain_number(size) for size in leaf])
    return plain_number(leaf)


def _count_containers(structure: Any) -> int:
    """How many lists and dictionaries a structure has."""
    if structure is None:
        return 0
    kind, *parts = structure
    if kind is dict:
        del parts[0]  # its keys
    return (kind is list or kind is dict) + sum(map(_count_containers, parts))


def _is_path_of_views(edge: Any, end: Any) -> bool:
    """Whether nothing but views lies between two edges of the graph: their gradient is that of the view."""
    while edge is not None and edge != end:
        node = edge[0]
        record = OPERATIONS.get(node.operation)
        if record is None or not record.view or len(node.next_edges) != 1:
            return False
        edge = node.next_edges[0]
    return edge is not None


def version_of(tensor: Any) -> int:
    """The version of a tensor; 0 for one made in inference mode, which has none."""
    return 0 if tensor.is_inference() else int(tensor._version)


def hooks_of(tensor: Any) -> Any:
    """The hooks of a tensor, and those that run after accumulation; None if it has neither."""
    extra = tensor._extra
    if extra is None or not (extra.hooks or extra.post_accumulate_hooks):
        return None
    return extra.hooks, extra.post_accumulate_hooks


def form_of_grad(tensor: Any) -> Any:
    """The shape, dtype and strides of a tensor's `.grad`; None if it has none."""
    grad = tensor._grad
    return None if grad is None else (grad._array.shape, grad._array.dtype, grad._array.strides)


def _telling(hooks: Any, recorder: Recorder) -> Any:
    """Hooks that stop the recording when they run."""
    if not hooks:
        return hooks

    def telling(hook: Any) -> Any:
        def run(*args: Any) -> Any:
            recorder.stop("a hook of a tensor from outside of the function runs")
            return hook(*args)

        return run

    return type(hooks)((key, telling(hook)) for key, hook in hooks.items())


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


class NewTensors:
    """Tells tensors, and what nodes saved of them, that are made from now on from those that there are.

    Python's collector keeps new objects apart until it collects, which it does not while something is recorded: so they are
    found without going through all others, of which there may be a million.
    """

    def __init__(self) -> None:
        self._before = gc.get_objects(generation=0)
        self._collections = _count_collections()

    def all(self) -> list[Any]:
        """The new ones; all that there are, if the function called the collector itself."""
        if _count_collections() != self._collections:
            return _tensors(gc.get_objects())
        before = set(map(id, self._before))
        return [tensor for tensor in _tensors(gc.get_objects(generation=0)) if id(tensor) not in before]

    def release_traced(self) -> None:
        """Give those that are still there plain arrays. Let go what was recorded before: there is less to search then."""
        for tensor in self.all():
            if is_traced(tensor._array):
                tensor._array = plain(tensor._array)

    def storage_of_others(self) -> set[int]:
        """The memory of the others."""
        is_told = _count_collections() == self._collections
        new = set(map(id, self.all())) if is_told else set()
        return {_storage(tensor) for tensor in _tensors(gc.get_objects()) if id(tensor) not in new}


def _count_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _tensors(objects: list[Any]) -> list[Any]:
    """The tensors among objects, and what nodes saved of them."""
    found = living(TensorBase, SavedOutput, among=objects)
    return [value for value in found if getattr(value, "_array", None) is not None]


def _storage(tensor: Any) -> Any:
    array = plain(tensor._array)
    return storage_key(array) if is_array(array) else None


def _is_recordable(array: Any) -> bool:
    """Whether an array is NumPy's own, or one of a device that is the only one of its type."""
    if isinstance(array, DeviceArray):
        return not is_traced(array) and array.library.is_single()
    return type(array) is ndarray
