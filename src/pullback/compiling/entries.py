"""Entry: a function's program for one kind of arguments, ready to run in the place of its Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.backend.array_module import as_array, ndarray, restride
from pullback.compiling.absent_gradients import without
from pullback.compiling.backend import device_of_program, simplify, split
from pullback.compiling.capture import Capture, Input
from pullback.compiling.matching import Matching
from pullback.compiling.memory import laid_out
from pullback.compiling.nodes import CompiledFunctionBackward
from pullback.compiling.numbers import evaluate
from pullback.compiling.optimizer_updates import Update, take_out_updates
from pullback.compiling.program import Program, Runner, Value, replay
from pullback.compiling.random_streams import random_states, set_random_states
from pullback.compiling.structure import unflatten
from pullback.graph.history import bump_version, gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.graph.recording import metadata_of
from pullback.modes.cuts import repeat_cut
from pullback.modes.inside_compiled import call_inside
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import new_tensor

MOST_FAILURES = 3
"""After so many calls in which a program raised and its function did not (it may have caught the error), it is given up."""

MOST_SMALL_CALLS = [4, 12]
"""So many kernels, without and with those of a backward, are called by Python in the time that a program needs to begin."""
_SMALL_ARRAY = 1024
"""Elements that a kernel computes in little more time than it takes to call it."""


class Backward(NamedTuple):
    """A runner of a backward program, and what it is given: places of what was kept, and gradients."""

    run: Runner
    kept: Sequence[int]
    gradients: Sequence[tuple[int, Value]]
    fresh: tuple[bool, ...]
    """Which results are surely new arrays that nobody else holds. See Note [Owned gradients]."""


def _say_nothing(reason: str) -> None:
    pass


class Entry:
    """What was recorded, built. `run` gives what the function gives; `fits` says whether that is still so."""

    recorded_as: Any = None
    """The fingerprint of the recording."""
    failures = 0
    """How many calls ran the function too, which did not raise, after its program had."""

    def __init__(
        self, made: Capture, function: Callable[..., Any], build: Callable[[Program], Runner] = replay, *,
        give_up: Callable[[str], None] = _say_nothing,
    ) -> None:  # fmt: skip
        self.function = function
        self.give_up = give_up
        """Told why the program is not to be run any more."""
        self.build = build
        self.inputs: list[Input] = made.inputs
        self.outputs = made.outputs
        self.structure = made.structure
        self.grads = made.grads
        self.versions = made.versions
        self.is_freed = made.is_freed
        self.differentiable = made.differentiable
        self.gradient_values = made.gradient_values
        self.shown = made.shown
        self.strides = [None if v is None else v.strides for v in made.program.outputs[: made.shown]]
        self.scalars = made.scalars
        self.cut_off = made.cut_off
        self.calls = len(made.program.calls)
        self.values = [given.value for given in made.inputs]
        self._build(made)
        self._describe_result()
        self._matching = Matching(made)
        read = {given.grad_of for given in self.inputs}
        self._dropped = [
            grad.input for grad in self.grads
            if device_of_program(made.program) is not None and self.inputs[grad.input] not in read
        ]  # fmt: skip
        """Inputs whose `.grad` gives way to another: the program may write to its memory. See Note [Replayed graphs]."""

    def _describe_result(self) -> None:
        """Say where the leaves of the result come from, where that is simple: new tensors, in one container."""
        is_plain = all(
            o.index is not None and o.same_as is None and o.expression is None and not o.is_number for o in self.outputs
        )
        self._indices: list[Any] | None = [output.index for output in self.outputs] if is_plain else None
        """Which of the new tensors the leaves of the result are, where they are nothing else."""
        parts = self.structure[1:] if self.structure and self.structure[0] in (list, tuple) else (self.structure,)
        self._container = self.structure[0] if self.structure and parts.count(None) == len(parts) else None
        """The type of a result that is one container of leaves."""

    def _build(self, made: Capture) -> None:
        effects = [  # a call without results is a check, which may be made again
            c for c in made.program.calls if c.is_ordered and c.results and not c.kernel.startswith("random.")
        ]
        self.is_pure = not made.program.writes and not effects and not made.grads
        self.draws = any(call.kernel.startswith("random.") for call in made.program.calls)
        self.backward_program: Program | None = None
        self.updates: list[Update] = []
        if self.gradient_values:
            joint = made.joint()
            joint.program = simplify(joint.program)
            self.forward_program, self.backward_program, self.kept = split(joint)
            everything = range(len(self.gradient_values))
            self._backwards = {(True,) * len(everything): self._backward(self.backward_program, everything)}
            inputs = {value: place for place, value in enumerate(self.values)}
            kept = self.forward_program.outputs[self.shown :]
            shown = self.forward_program.outputs[: self.shown]
            self.kept_inputs = [(n, inputs[value]) for n, value in enumerate(kept) if value in inputs]
            self.kept_outputs = [(n, shown.index(value)) for n, value in enumerate(kept) if value in shown]
            read = _what_leads_to(set(kept), self.forward_program)
            self.read_again = [place for value, place in inputs.items() if value in read and value not in kept]
        else:
            left, self.updates, _ = take_out_updates(made.program, self.shown)
            self.forward_program = simplify(left)
            self.kept = 0
        self.run_forward = self.build(self.forward_program)

    def is_small(self) -> bool:
        """Whether asking for the program takes about as long as its kernels do, one by one."""
        most = MOST_SMALL_CALLS[bool(self.gradient_values)]
        programs = [self.forward_program] + ([self.backward_program] if self.backward_program is not None else [])
        arrays = [value for program in programs for call in program.calls for value in call.results]
        return self.calls <= most and sum(math.prod(value.shape) for value in arrays) <= most * _SMALL_ARRAY

    def backward_of(self, grads: Sequence[Any]) -> Backward:
        """The backward for those gradients that are not None."""
        there = tuple([grad is not None for grad in grads])
        found = self._backwards.get(there)
        if found is None:
            assert self.backward_program is not None
            absent = {value for value, is_there in zip(self.gradient_values, there, strict=True) if not is_there}
            program = without(self.backward_program, absent, set(self.gradient_values))
            found = self._backwards[there] = self._backward(
                program, [n for n, is_there in enumerate(there) if is_there]
            )
        return found

    def _backward(self, program: Program, there: Sequence[int]) -> Backward:
        assert self.backward_program is not None
        places = {value: place for place, value in enumerate(self.backward_program.inputs[: self.kept])}
        kept = [places[value] for value in program.inputs if value in places]
        gradients = [(n, self.gradient_values[n]) for n in there if self.gradient_values[n] in program.inputs]
        program.inputs = [self.backward_program.inputs[place] for place in kept] + [value for _, value in gradients]
        return Backward(self.build(program), kept, gradients, _fresh_outputs(program))

    def match(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """The tensors and arrays of a call that the program may serve; None if it may not."""
        return self._matching.match(leaves)

    def tensors_of(self, leaves: Sequence[Any]) -> list[Any]:
        """The tensors that the program reads and writes."""
        return self._matching.tensors_of(leaves)

    def run(self, leaves: Sequence[Any], args: Any, kwargs: Any, tensors: list[Any], arrays: list[Any]) -> Any:
        """Run the program on what `match` gave."""
        for place in self._dropped:
            tensors[place]._grad = None
        state = random_states() if self.draws else None
        try:
            outputs = self.run_forward(
                [*arrays, *[evaluate(e, leaves) for _, e in self.scalars]] if self.scalars else arrays
            )
        except Exception as error:
            if state is not None:
                set_random_states(state)
            result = call_inside(self.function, args, kwargs)  # which raises what eager execution raises
            self.failures += 1
            if self.failures == MOST_FAILURES:
                self.give_up(f"its program raised {type(error).__name__}: {error}")
            return result
        for update in self.updates:
            update.run(arrays, outputs)
        for place, count in self.versions:
            for _ in range(count):
                bump_version(tensors[place])
        return self._finish(outputs, tensors, leaves, (args, kwargs, state))

    def result_of(self, made: Capture, leaves: Sequence[Any], args: Any, kwargs: Any) -> Any:
        """What the call gives that was recorded: its own result if something that backward needs was written over."""
        values = self.forward_program.outputs
        numbers: dict[Any, Any] = {number: evaluate(e, leaves) for number, e in self.scalars}
        outputs = [numbers[v] if v in numbers else None if v is None else made.array_of(v) for v in values]
        if any(array is None and value is not None for array, value in zip(outputs, values, strict=True)):
            return made.result
        tensors = self.tensors_of(leaves)
        return self._finish(outputs, tensors, leaves, (args, kwargs, made.state))

    def _finish(self, outputs: list[Any], tensors: list[Any], leaves: Sequence[Any], call: tuple[Any, Any, Any]) -> Any:
        """Tensors for what was computed, with their node, in the structure of the result; `call` can be made again."""
        made: list[Any] = [
            new_tensor(array) if type(array) is ndarray and array.strides == strides
            else None if array is None
            else new_tensor(_with_strides(array, strides))
            for array, strides in zip(outputs, self.strides, strict=False)
        ]  # fmt: skip
        if self.gradient_values or self.is_freed:
            self._attach(made, outputs[self.shown :], tensors, _Again(self, *call))
        if process.changed and switches.inference_mode:
            for tensor in made:
                if tensor is not None:
                    tensor._become_inference()
        for place, kind, line in self.cut_off:
            repeat_cut(kind, line, leaves[place])
        for grad in self.grads:
            tensors[grad.input]._grad = None if grad.index is None else made[grad.index]
        if self._indices is not None:
            results = [made[index] for index in self._indices]
        else:
            results = self._results(made, tensors, leaves)
        if self._container is not None:
            return self._container(results)
        return results[0] if self.structure is None else unflatten(self.structure, iter(results))

    def _results(self, made: list[Any], tensors: list[Any], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the result."""
        results: list[Any] = []
        for output in self.outputs:
            if output.same_as is not None:
                results.append(results[output.same_as])
            elif output.expression is not None:
                results.append(evaluate(output.expression, leaves))
            else:
                results.append(self._leaf(output, made, tensors))
        return results

    def _leaf(self, output: Any, made: list[Any], tensors: list[Any]) -> Any:
        if output.index is not None:
            return made[output.index]._array.item() if output.is_number else made[output.index]
        if output.window is not None:
            sizes, strides, offset, alias = output.window
            source = tensors[output.input]
            if alias:
                source = source.data if alias == "data" else source.detach()
                if (sizes, strides, offset) == (source.shape, source.stride(), 0):
                    return source  # no view: what is written to it gets a history of its own
            view = source.as_strided(sizes, strides, source.storage_offset() + offset)
            if output.path:
                _give_path(view, source, output.path)
            return view
        return tensors[output.input] if output.input is not None else output.value

    def _attach(self, made: list[Any], kept: list[Any], tensors: list[Any], again: _Again) -> None:
        """Make the results that require grad outputs of a new node."""
        node: Any = new_node(CompiledFunctionBackward)
        indices = [output.index for output in self.outputs if output.requires_grad and output.index is not None]
        node.next_edges = tuple([gradient_edge(tensors[place]) for place in self.differentiable])
        node.sequence_nr = next_sequence_nr()
        if len(indices) == 1:
            node.shape, node.dtype = made[indices[0]]._array.shape, made[indices[0]]._array.dtype
        else:
            node.output_count = len(indices)
            node.output_metadata = metadata_of([made[i] for i in indices])
        for number, index in enumerate(indices):
            made[index]._requires_grad, made[index]._edge = True, (node, number)
        if self.is_freed:
            node.release_saved_tensors()
            return
        node.kept, node.entry = kept, self
        saved = [(n, tensors[place]) for n, place in self.kept_inputs]
        saved += [(n, _watched(made[place])) for n, place in self.kept_outputs]
        node.versions = [(n, tensor, tensor._version) for n, tensor in saved if not tensor.is_inference()]
        if self.is_pure:
            again.wanted = [tensors[place] for place in self.differentiable]
            read = [tensors[place] for place in self.read_again]
            again.versions = [(tensor, tensor._version) for tensor in read if not tensor.is_inference()]
            node.again = again


def _fresh_outputs(program: Program) -> tuple[bool, ...]:
    """Which outputs a kernel computes, as no other one; a device may keep the memory of all of them."""
    if device_of_program(program) is not None:
        return ()
    new = {result for call in program.calls if not call.is_view for result in call.results}
    return tuple(
        [
            isinstance(value, Value) and value in new and program.outputs.count(value) == 1 and not _is_spread(value)
            for value in program.outputs
        ]
    )


def _is_spread(value: Value) -> bool:
    """Whether a kernel spread it: it may give an array that nobody may write to, of one element along a dimension too."""
    return any(not stride for stride in value.strides)


def _give_path(view: Any, source: Any, path: Sequence[tuple[type[Node], dict[str, Any]]]) -> None:
    """Give a view the nodes that it has in eager execution: they name it, and lay its gradient out."""
    edge = gradient_edge(source)
    for kind, held in path:
        node = new_node(kind)
        for name, value in held.items():
            setattr(node, name, value)
        node.next_edges, node.sequence_nr = (edge,), next_sequence_nr()
        edge = (node, 0)
    view._extra.view.edge = edge


def _what_leads_to(wanted: set[Any], program: Program) -> set[Any]:
    """The values that some values of a program are computed from, and these themselves."""
    found = set(wanted)
    for call in reversed(program.calls):
        if any(result in found for result in call.results):
            found.update(call.reads)
    return found


def _watched(tensor: Any) -> Any:
    """A tensor beside one that a node may not hold, its own result: with the same memory and version."""
    return tensor.detach()


class _Again:
    """Runs a function eagerly, with the graph that its arguments had: for gradients of gradients, and for eager's bits."""

    wanted: Sequence[Any] = ()
    versions: Sequence[tuple[Any, int]] = ()
    """Arguments that the gradients depend on and the node does not keep, with the version that they had."""

    def __init__(self, entry: Entry, args: Any, kwargs: Any, state: Any) -> None:
        self.entry, self.args, self.kwargs, self.state = entry, args, kwargs, state

    def __call__(self, grads: Sequence[Any], create_graph: bool) -> Any:
        from pullback.autograd import grad

        return grad(self.results(), self.wanted, list(grads), create_graph=create_graph, allow_unused=True)

    def results(self) -> list[Any]:
        """The results that require grad, with a graph of the function's own operations."""
        from pullback.autograd import enable_grad
        from pullback.compiling.structure import flatten

        now = random_states()
        if self.entry.draws:
            set_random_states(self.state)
        try:
            with enable_grad():
                result = call_inside(self.entry.function, self.args, self.kwargs)
        finally:
            if self.entry.draws:
                set_random_states(now)
        leaves: list[Any] = []
        flatten(result, leaves)
        return [leaf for leaf, output in zip(leaves, self.entry.outputs, strict=True) if output.requires_grad]


def _with_strides(array: Any, strides: Any) -> Any:
    """A result with the strides of eager execution: along a dimension of one element, a runner may give others.

    A kernel may give a number of NumPy's in the place of an array without dimensions.
    """
    if array.strides == strides:
        return array if type(array) is ndarray else as_array(array)
    differ = [size for size, one, other in zip(array.shape, array.strides, strides, strict=True) if one != other]
    if array.size and max(differ) > 1:
        return laid_out(array, array.shape, strides, array.dtype)
    return restride(array, array.shape, strides)
