"""Capture: one call of a function, run eagerly and written down as a program with everything that surrounds it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from pullback.backend.dtype import default_float
from pullback.backend.mirror import is_mirrored, living_mirrors
from pullback.backend.traced_array import ReadNumber, is_traced, plain
from pullback.compiling.backward_recording import record_backward
from pullback.compiling.capture import Capture, version_of
from pullback.compiling.collecting import not_collecting
from pullback.compiling.effects import watching_calls
from pullback.compiling.followed_values import release_followed, without_followed
from pullback.compiling.kernel_names import following_sizes, recording_kernels, stopping_at_methods, watching_streams
from pullback.compiling.new_tensors import NewTensors
from pullback.compiling.number_flow import NumberWatch
from pullback.compiling.numbers import TracedInt, TracedNumber
from pullback.compiling.optimizer_updates import recording_updates
from pullback.compiling.program import Number, Value
from pullback.compiling.random_streams import random_states
from pullback.compiling.recorder import Recorder, Stop
from pullback.compiling.results import ATOMS, Results
from pullback.compiling.structure import flatten, unflatten, with_leaves
from pullback.compiling.surroundings import Surroundings
from pullback.compiling.traced_inputs import TracedInputs
from pullback.modes.cuts import Cut, cuts
from pullback.modes.determinism import are_deterministic_algorithms_enabled, get_num_threads
from pullback.modes.switches import current_switches
from pullback.native.locks import process_lock
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase

_recording_lock = process_lock()
"""One recording at a time: it changes the arrays of tensors that other threads may hold too."""


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
        self.containers: dict[int, Any] = {}
        self.structure = flatten((args, kwargs), self.leaves, self.containers)
        objects = [leaf for leaf in self.leaves if not isinstance(leaf, (TensorBase, *ATOMS))]
        self.roots = (function, *objects, *{type(value): None for value in self.containers.values()})
        self.surroundings = self.made.surroundings = Surroundings(*self.roots)
        self._attributes = _user_attributes_of(self.leaves)
        self._given = len(self._attributes)
        """How many tensors are among the arguments."""
        self._attributes += _user_attributes_of(self.surroundings.tensors.values())
        self._settings_before = _settings()
        self.recorder = Recorder(self.surroundings.storage, new_tensors.storage_of_others, code)
        if self.surroundings.problem is not None:
            self.recorder.stops.append(Stop(self.surroundings.problem, None))

    def follow(self, places: frozenset[int]) -> None:
        """Let numbers among the arguments tell what is computed with them."""
        if places:
            numbers = self.recorder.followed
            leaves = [numbers.trace(v, [p]) if p in places else v for p, v in enumerate(self.leaves)]
            self.args, self.kwargs = with_leaves((self.args, self.kwargs), iter(leaves))
            self.leaves = leaves

    def run(self) -> Capture:
        made, recorder = self.made, self.recorder
        inputs = TracedInputs(made, recorder, self.leaves, self.surroundings.tensors, self._asks_for_gradients)
        made.state = random_states()
        cuts_before = {cut[:3] for cut in cuts()}
        try:
            with inputs.traced(), recording_kernels(recorder), watching_streams():
                with ExitStack() as stack:
                    stack.enter_context(stopping_at_methods(recorder))
                    stack.enter_context(recording_updates())
                    if self.follows_sizes:
                        stack.enter_context(following_sizes())
                    stack.enter_context(watching_calls(recorder, self._is_held, self._number_watch()))
                    made.result = self.function(*self.args, **self.kwargs)
                try:
                    self._check_arguments()
                    results = Results(made, recorder, self._is_held)
                    results.describe()
                    results.describe_grads()
                    drawn = len(recorder.drawn)
                    record_backward(made, recorder, inputs)
                    if len(recorder.drawn) > drawn:
                        recorder.stop("the backward of the function draws random numbers")
                    if recorder.drawn.is_behind:
                        recorder.move_stream()
                except Exception as error:  # the call itself went well: its result is given, eagerly
                    recorder.stop(f"what was recorded cannot be described ({type(error).__name__}: {error})")
        except BaseException:
            recorder.close()
            self._release_followed()
            raise
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

    def _is_held(self, value: Any) -> bool:
        """Whether a container was there before the call."""
        return id(value) in self.containers or self.surroundings.holds(value)

    def _check_arguments(self) -> None:
        now: list[Any] = []
        if flatten((self.args, self.kwargs), now) != self.structure or not all(map(operator.is_, now, self.leaves)):
            self.recorder.stops.append(
                Stop("the function changes a list, dictionary or object among its arguments", None)
            )
            self.made.has_effects = True

    def _check_effects(self) -> None:
        """Find what skipping the function would lose that no place in its surroundings shows."""
        stops = []
        if _settings() != self._settings_before:
            stops.append("the function leaves grad mode, the default dtype or another setting changed")
        for tensor, before in self._attributes:
            now = vars(tensor)
            if not _is_same(now, before):
                stops.append("the function sets an attribute of a tensor, which skipping it would lose")
                break
        self.made.has_effects |= bool(stops)
        stops += [f"the function may call {name}()" for name in _SETTERS if name in self.recorder.names]
        self.recorder.stops += [Stop(reason, None) for reason in stops]

    def _check_attributes_read(self) -> None:
        """Stop where the function may read what users set on an argument: it is another tensor in each call."""
        recorder = self.recorder
        names = recorder.names | recorder.own_names
        given = [attributes for _, attributes in self._attributes[: self._given] if attributes]
        if any(recorder.reads_any_name or names & attributes.keys() for attributes in given):
            recorder.stops.append(Stop("the function may read an attribute that was set on an argument", None))

    def _finish(self) -> None:
        made, recorder = self.made, self.recorder
        made.recorder = recorder
        self._give_back()
        try:
            self._describe()
        except Exception as error:  # the call itself went well: its result is given, eagerly
            recorder.stop(f"what was recorded cannot be described ({type(error).__name__}: {error})")
            made.stops, made.breaks = recorder.stops, recorder.breaks
        if made.stops:
            self._release_followed(made.result)

    def _release_followed(self, *results: Any) -> None:
        """Let what outlives the call hold Python's own numbers."""
        recorder = self.recorder
        if recorder.numbers or recorder.sizes.seen or recorder.followed.is_used:
            release_followed(self.surroundings.places, [*self.args, *self.kwargs.values(), *results])

    def _give_back(self) -> None:
        """Let the result, and the `.grad`s of inputs, hold plain arrays and Python's own numbers."""
        made = self.made
        leaves: list[Any] = []
        flatten(made.result, leaves)
        for leaf in leaves:
            if isinstance(leaf, TensorBase):
                leaf._array = plain(leaf._array)
        if any(type(leaf) in (ReadNumber, TracedNumber, TracedInt, Size) for leaf in leaves):
            leaves = [without_followed(leaf) for leaf in leaves]
            made.result = unflatten(made.structure, iter(leaves))
        for given in made.inputs:
            if given.tensor._grad is not None and is_traced(given.tensor._grad._array):
                given.tensor._grad._array = plain(given.tensor._grad._array)

    def _describe(self) -> None:
        made, recorder = self.made, self.recorder
        program = made.program
        program.calls = recorder.program.calls
        made.scalars = list(recorder.scalars.values())
        made.conditions = recorder.followed.conditions
        made.reads_numbers = recorder.followed.is_read
        made.sizes = recorder.sizes if self.follows_sizes else None
        tensors = recorder.program.inputs[: len(made.inputs)]
        program.inputs = [*tensors, *[number for number, _ in made.scalars], *made.gradient_values]
        program.writes = recorder.written_inputs()
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
        self._check_effects()
        changed = self.surroundings.changed()
        made.has_effects |= changed is not None
        if changed is not None:
            recorder.stops.append(
                Stop(f"the function changes {changed.describe()}, which skipping it would lose", None)
            )
        if living_mirrors() - self._mirrors_before or any(is_mirrored(given.before) for given in made.inputs):
            recorder.stops.append(Stop("memory is shown conjugated", None))
        self._check_attributes_read()
        made.stops, made.breaks, made.spots = recorder.stops, recorder.breaks, recorder.spots or []
        if made.stops:
            return
        if not recorder.reads_any_name:
            made.surroundings = Surroundings(*self.roots, names=recorder.names | recorder.own_names)
        else:
            self.surroundings.look_up(recorder.names)
        if (problem := (made.surroundings or self.surroundings).problem) is not None:
            recorder.stops.append(Stop(problem, None))
            return
        made.reads_grads = "grad" in recorder.names | recorder.own_names
        if "param_groups" not in recorder.names:
            (made.surroundings or self.surroundings).leave_out_rates()
        self._drop_unused_inputs()
        self._find_spots()

    def _find_spots(self) -> None:
        """Note which inputs stand in the surroundings, and where. See Note [Replaced tensors]."""
        surroundings = self.made.surroundings
        assert surroundings is not None
        tensors = {id(leaf): (place, leaf) for place, leaf in enumerate(self.leaves) if isinstance(leaf, TensorBase)}
        self.made.identities = [(place, surroundings.tensors.get(key)) for key, (place, _) in tensors.items()]
        have_grads = {id(given.grad_of) for given in self.made.inputs}
        for given in self.made.inputs:
            if id(given.tensor) in surroundings.tensors and given.grad_of is None:
                given.around = given.tensor if given.place is not None else None
                if type(given.tensor) is Tensor and id(given) not in have_grads:
                    given.spot = surroundings.spots.get(id(given.tensor))

    def _drop_unused_inputs(self) -> None:
        """Keep those inputs that something reads, writes or returns."""
        made, program = self.made, self.made.program
        used: set[Value | Number | None] = {*program.outputs, *[value for _, value in program.writes]}
        for call in program.calls:
            used.update(call.reads)
        keep = {place for place, _ in program.writes} | {grad.input for grad in made.grads}
        keep |= {output.input for output in made.outputs if output.input is not None} | set(made.differentiable)
        keep |= {place for place, _ in made.versions}
        if (
            made.surroundings is not None and self.recorder.names & _FACTS
        ):  # asked of tensors that nothing computes with
            held = made.surroundings.tensors
            keep |= {
                place
                for place, given in enumerate(made.inputs)
                if given.place is None and given.grad_of is None and id(given.tensor) in held
            }
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


_FACTS = frozenset(["requires_grad", "shape", "size", "dtype", "numel", "ndim", "dim", "stride"])
"""What code asks of a tensor without computing with it."""


_SETTERS = ("set_printoptions", "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads")
"""Functions that change what is not among the settings."""


def _settings() -> tuple[Any, ...]:
    """What functions of this package set for all that follows."""
    return current_switches(), default_float(), are_deterministic_algorithms_enabled(), get_num_threads()


def _user_attributes_of(values: Iterable[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """What users have set on tensors, beside these."""
    return [(value, dict(vars(value))) for value in values if isinstance(value, TensorBase)]


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two dictionaries hold the same objects."""
    return one.keys() == other.keys() and all(one[key] is other[key] for key in one)
