"""CompiledFunction: what `compile` returns. It records calls, and skips Python where a program stands for it.

# Note [Skipping Python]
A call runs eagerly and is recorded until two recordings for the same kind of arguments were the same program and nothing
stopped them. From then on, calls of that kind run the program, as long as everything the function could reach is as it
was (surroundings.py). Any doubt means eager: what stops a recording is remembered for `explain`. Where it stopped at a
statement, the function is cut there (Note [Segments]); after a few recordings in vain it runs as it is for arguments of
that kind.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from pullback.backend.array_module import ndarray
from pullback.backend.dtype import default_float
from pullback.backend.unpromised_bits import COMPILE, note_unpromised
from pullback.compiling.backend import build, build_exactly
from pullback.compiling.capture import Capture
from pullback.compiling.capturing import capture
from pullback.compiling.checking import run_checked
from pullback.compiling.collecting import not_collecting
from pullback.compiling.custom_backend import Backend, BackendEntry, CannotTrace
from pullback.compiling.entries import Entry
from pullback.compiling.fingerprint import fingerprint
from pullback.compiling.function_text import CannotSplit, Spot, mentions_create_graph
from pullback.compiling.kernel_names import current_recorder
from pullback.compiling.numbers import only_for
from pullback.compiling.program import replay
from pullback.compiling.recorder import Stop
from pullback.compiling.segments import Segmented
from pullback.compiling.stances import Stance
from pullback.compiling.statistics import count_break, count_program, tell_recompile
from pullback.compiling.structure import flatten
from pullback.compiling.surroundings import LIBRARY
from pullback.compiling.templates import Templates, layout_of
from pullback.errors import Unsupported
from pullback.modes.determinism import are_deterministic_algorithms_enabled
from pullback.modes.inside_compiled import call_inside, outside
from pullback.modes.source_lines import PACKAGE, SourceLine, enter_module, is_hidden, leave_module
from pullback.modes.switches import SWITCH_DEFAULTS, process, switches
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.module import Module
from pullback.nn.modules.module_hooks import GlobalHooks
from pullback.progress import waiting
from pullback.tensor.tensor import TensorBase

ATTEMPTS = 6
"""How often one kind of arguments is recorded before the function runs eagerly for it."""
ENTRIES = 4
"""How many programs one kind of arguments has, for different surroundings and conditions on numbers."""
KINDS = 16
"""How many kinds of arguments are recorded; others run eagerly."""


class Limits:
    """What the process asks for."""

    wanted = 0
    """At least so many kinds of arguments are recorded."""


INSTANCES = 64
"""How many kinds of arguments have programs that a template wrote down; the oldest go. See Note [Templates]."""


_all: weakref.WeakSet[Any] = weakref.WeakSet()


def reset_all() -> None:
    """Forget the programs of all functions."""
    for function in list(_all):
        function.reset()


def disabled(function: Callable[..., Any], reason: str | None = None) -> Callable[..., Any]:
    """A function that no program contains."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = current_recorder()
        if recorder is not None:
            recorder.stop(
                reason or f"{getattr(function, '__name__', 'a function')} is kept out of programs by disable()"
            )
        with outside():
            return function(*args, **kwargs)

    run.is_disabled = True  # type: ignore[attr-defined]  # compile leaves it as it is
    return run


class BreakErrors:
    """Whether functions that cannot be one program raise, whatever `fullgraph` says."""

    wanted: bool | None = None


def _bind(function: Callable[..., Any], instance: Any) -> MethodType:
    """A method, which pickle cannot name."""
    return MethodType(function, instance)


class Kind:
    """What is known of calls with arguments of one kind."""

    def __init__(self, free: frozenset[int]) -> None:
        self.free = free
        """Where numbers stand, among the leaves of the arguments, that are inputs."""
        self.entries: list[Any] = []
        self.former: list[tuple[Any, dict[int, str]]] = []
        """The fingerprints of the last recordings, with the values that numbers had in them."""
        self.attempts = 0
        self.stops: list[Stop] = []
        self.is_eager = False
        self.is_instance = False
        """Whether a template wrote its program down."""

    def run_eagerly(self, reason: str) -> None:
        """Record no more calls of this kind, and run no program."""
        self.is_eager, self.stops = True, [Stop(reason, None)]


class CompiledFunction:
    """Calls `function`, or the program that stands for it. See Note [Skipping Python]."""

    is_differentiated_twice = False
    """Whether the gradients of what it gives are surely differentiated again."""

    def __init__(
        self, function: Callable[..., Any], *, fullgraph: bool = False, check: bool = False,
        dynamic: bool | None = None, backend: Backend | None = None,
    ) -> None:  # fmt: skip
        self.function = function
        self.fullgraph = fullgraph
        self.check = check
        self.dynamic = False if check or backend is not None else dynamic
        self.backend = backend
        self._shapes = CallShapes(self.dynamic)
        self.templates = Templates()
        self.kinds: dict[Any, Kind] = {}
        self._set_aside: dict[Any, Kind] = {}
        """Kinds of calls with other numbers, until it is known whether these are inputs."""
        self.runs = 0
        self.segments: Segments | None = None
        """What runs instead where the function was cut."""
        self._told = False
        self._stopped = 0
        """How many recordings were stopped."""
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())
        _all.add(self)

    def reset(self) -> None:
        """Forget the programs: the next calls are recorded anew."""
        self.kinds, self._set_aside = {}, {}
        self.segments = None
        self._shapes = CallShapes(self.dynamic)
        self.templates = Templates()

    def followed_by_compile(self) -> tuple[Any, ...]:
        """What a function that calls this one can reach through it."""
        return (self.function,)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        function = copy.deepcopy(self.function, memo)
        return CompiledFunction(
            function, fullgraph=self.fullgraph, check=self.check, dynamic=self.dynamic, backend=self.backend
        )

    def __reduce__(self) -> Any:
        function = self.function
        if isinstance(function, MethodType):  # its name would lead to this object again
            return _bind, (function.__func__, function.__self__)
        return CompiledFunction, (function,)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def _torchdynamo_orig_callable(self) -> Callable[..., Any]:
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_recorder() is not None:  # it is part of what is recorded
            return self.function(*args, **kwargs)
        stance = Stance.other
        if stance == "force_eager":
            return self.function(*args, **kwargs)
        segments = self.segments
        if segments is not None:
            return call_inside(segments.run, args, kwargs)
        leaves: list[Any] = []
        try:
            key = self._key(args, kwargs, leaves)
            kind = self.kinds.get(key)
            if kind is None and key is not None:
                if stance is not None:
                    return self._run_unless_refused(args, kwargs)
                kind = self._new_kind(key, args, kwargs, leaves)
        except TypeError:  # an argument that is not hashable
            return call_inside(self.function, args, kwargs)
        if kind is None or kind.is_eager:
            return call_inside(self.function, args, kwargs)
        for entry in kind.entries:
            ready = entry.match(leaves)
            if ready is not None:
                self.runs += 1
                if self.backend is not None:
                    return self._run_custom(kind, entry, leaves, args, kwargs, *ready)
                if self.check:
                    return call_inside(run_checked, (entry, leaves, args, kwargs), {})
                return entry.run(leaves, args, kwargs, *ready)
        if stance is not None:
            return self._run_unless_refused(args, kwargs)
        with waiting(f"compiling {_told_name(self.function)}"):
            return call_inside(self._record, (kind, leaves, args, kwargs), {})

    def _run_unless_refused(self, args: Any, kwargs: Any) -> Any:
        """Run a call that would have to be compiled as it is, or refuse it, as the stance says."""
        if Stance.other != "fail_on_recompile":
            return call_inside(self.function, args, kwargs)
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        place = "" if code is None else f" filename: {code.co_filename!r}, line number: {code.co_firstlineno},"
        raise RuntimeError(
            f"Detected recompile when torch.compile stance is 'fail_on_recompile'.{place} function name: "
            f"{_told_name(self.function)!r}. No program fits these arguments and what the function depends on: call it like "
            "this under the default stance first."
        )

    def _key(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What tells kinds of calls apart; None for a call that is never compiled."""
        structure = flatten((args, kwargs), leaves) if args or kwargs else _NO_ARGUMENTS
        modes: Any = True
        if process.changed:
            modes = _modes()
            if modes is None:
                return None
        parts: list[Any] = [structure, modes, default_float(), are_deterministic_algorithms_enabled()]
        free = self._shapes.free.get(structure, _NONE)
        seen: dict[int, int] = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, TensorBase):
                array = leaf._array
                first = seen.setdefault(id(leaf), place)
                extra = leaf._extra
                is_inference = extra is not None and extra.inference
                device = None if type(array) is ndarray else getattr(array, "place", None)
                form = (
                    array.shape, array.strides, array.dtype, leaf._requires_grad, first, type(leaf), is_inference, device,
                )  # fmt: skip
                parts.append(form)
            elif place in free and type(leaf) in (float, int):
                parts.append(type(leaf))
            elif isinstance(leaf, (int, float, complex, str, bytes, type(None))):
                parts.append((type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf))
            else:
                parts.append((type(leaf), id(leaf)))
        return tuple(parts)

    def _new_kind(self, key: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Kind | None:
        """What is to be known of calls that were not seen before; None where there are too many kinds of them."""
        with self._lock:
            if self._shapes.learn(key, leaves, self._open_places(args, kwargs)):
                self._set_aside |= {known: kind for known, kind in self.kinds.items() if known[0] == key[0]}
                self.kinds = {known: kind for known, kind in self.kinds.items() if known[0] != key[0]}
                key = self._key(args, kwargs, leaves := [])
            if key in self.kinds:
                return self.kinds[key]
            free = self._shapes.free.get(key[0], _NONE)
            made = Kind(frozenset([place for place in free if type(leaves[place]) in (float, int)]))
            instances = [known for known, kind in self.kinds.items() if kind.is_instance]
            if self._make_instance(made, key, leaves):
                for oldest in instances[: max(len(instances) - INSTANCES + 1, 0)]:
                    del self.kinds[oldest]
            elif self.templates.is_just_beyond(without_sizes(key), leaves):
                return None
            limit = max(KINDS, Limits.wanted)
            if made.is_instance or len(self.kinds) - len(instances) < limit:
                if self.kinds:
                    tell_recompile(_told_name(self.function), len(self.kinds) + 1)
                self.kinds[key] = made
                return made
        if not self._told:
            self._told = True
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            warn_user(
                f"torch.compile hit recompile_limit ({limit}): {name} was called with more kinds of arguments than that "
                "(shapes, strides, dtypes, whole numbers, texts, objects), and runs eagerly for further ones. Pad to a few "
                "sizes, or keep what changes out of the arguments."
            )
        return None

    def _make_instance(self, kind: Kind, key: Any, leaves: list[Any]) -> bool:
        """Give a kind the program that a template has for it, if there is one. See Note [Templates]."""
        if self.dynamic is False or current_recorder() is not None:
            return False
        found = self.templates.instance(without_sizes(key), leaves)
        if found is None:
            return False
        try:
            with waiting(f"compiling {_told_name(self.function)}"):
                entry = Entry(found, self.function, self._builder(), give_up=kind.run_eagerly)
        except Exception as error:  # the call is recorded as any other is
            self.templates.tell(f"{type(error).__name__}: {error}")
            return False
        kind.is_instance = entry.match(leaves) is not None
        if kind.is_instance:
            kind.entries = [entry]
        return kind.is_instance

    def _builder(self) -> Callable[..., Any]:
        if are_deterministic_algorithms_enabled():
            return build_exactly
        own = inspect.unwrap(getattr(getattr(self.function, "__self__", None), "forward", self.function))
        code = getattr(own, "__code__", None)
        line = None if code is None or is_hidden(code, own.__globals__) else SourceLine(code, -1)
        note_unpromised(COMPILE, f"the compiled {_told_name(self.function)}", line)
        return build

    def _open_places(self, args: Any, kwargs: Any) -> list[int]:
        """Where, among the leaves, arguments stand that are numbers themselves and not parts of a container."""
        return open_places((*args, *kwargs.values()), with_whole=text_of(self.function) is not None)

    def _record(self, kind: Kind, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Call the function and record it. The collector is still until most of what was recorded is let go again."""
        with not_collecting():
            text = text_of(self.function)
            made = capture(
                self.function, args, kwargs, None if text is None else text.__code__, free=kind.free,
                with_sizes=self.dynamic is not False,
            )  # fmt: skip
            if made is None:
                return self.function(*args, **kwargs)
            result, recorded, new_tensors = made.result, made.result, made.new_tensors
            kind.attempts += 1
            try:
                result = self._use(kind, made, text, leaves, args, kwargs)
            finally:
                made.release()
                del made
                if result is recorded and new_tensors is not None:
                    new_tensors.release_traced()
        if kind.attempts >= ATTEMPTS:
            kind.is_eager = True
            if not kind.stops:
                kind.stops = [Stop("what the function computes differs from call to call", None)]
        return result

    def _use(self, kind: Kind, made: Capture, text: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Learn from a recording what it tells; gives the call's result."""
        if kind.free and (made.reads_numbers or (made.stops and self.fullgraph)):
            self._fix(flatten((args, kwargs), []), kind.free, leaves)
        elif made.stops:
            kind.stops = made.stops
            for stop in made.stops:
                count_break(_told_name(self.function), stop)
            if self.fullgraph if BreakErrors.wanted is None else BreakErrors.wanted:
                raise _not_one_program(made.stops)
            self._stopped += 1
            if text is not None and (
                self._stopped > 1 or self.backend is not None
            ):  # the first may differ from all others
                self.cut(text, made)
        elif self.backend is not None:
            return self._hand_over(kind, made, leaves, args, kwargs)
        else:
            return self._learn(kind, made, leaves, args, kwargs)
        return made.result

    def _fix(self, structure: Any, free: frozenset[int], leaves: Sequence[Any]) -> None:
        """Tell calls apart by numbers again: by whole ones, if there are some, since they may have been the cause."""
        with self._lock:
            self._shapes.fix(structure, frozenset([p for p in free if type(leaves[p]) is int]) or free)
            self.kinds = {known: kind for known, kind in self.kinds.items() if known[0] != structure}
            self.kinds |= {known: kind for known, kind in self._set_aside.items() if known[0] == structure}

    def _hand_over(self, kind: Kind, made: Capture, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Give what was recorded to the user's backend; gives the call's result."""
        assert self.backend is not None
        try:
            made.release_traced()
            entry = BackendEntry(made, self.function, self.backend)
            ready = entry.match(leaves)
            if ready is not None and not entry.writes():
                entry.make(args, kwargs, ready[0])
        except CannotTrace as error:
            kind.run_eagerly(str(error))
            return made.result
        kind.entries = [entry, *kind.entries[: ENTRIES - 1]]
        count_program(len(made.program.calls))
        return made.result

    def _run_custom(
        self, kind: Kind, entry: Any, leaves: Any, args: Any, kwargs: Any, tensors: Any, arrays: Any
    ) -> Any:
        try:
            return call_inside(entry.run, (leaves, args, kwargs, tensors, arrays), {})
        except CannotTrace as error:
            kind.run_eagerly(str(error))
            return call_inside(self.function, args, kwargs)

    def _learn(self, kind: Kind, made: Capture, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Make a program of a recording that nothing stopped, if it is the second like it; gives the call's result."""
        try:
            now = fingerprint(made)
            values = {place: repr(leaves[place]) for place in kind.free}
            like = [former for known, former in kind.former if known == now]
            is_known = bool(like)
            is_template = self.dynamic is not False and self.templates.add(
                without_sizes(self._key(args, kwargs, [])), made, leaves
            )
            if is_known:  # it holds for other values of those numbers alone that had another one
                same = [p for p, value in values.items() if all(former[p] == value for former in like)]
                made.conditions = [*made.conditions, *[only_for(place, leaves[place]) for place in same]]
            entry: Entry | None = None
            if is_known or made.gradient_values or made.is_freed:  # else the result is eager's own
                entry = Entry(made, self.function, self._builder() if is_known else replay, give_up=kind.run_eagerly)
        except Exception as error:  # the call itself went well
            kind.run_eagerly(f"no program can be made of it ({type(error).__name__}: {error})")
            return made.result
        result = made.result
        if entry is not None and self.is_differentiated_twice and entry.gradient_values and not entry.is_pure:
            kind.run_eagerly("the function differentiates it twice, and its effects cannot be repeated")
        elif entry is not None:
            result = entry.result_of(made, leaves, args, kwargs)
        if is_known and entry is not None:
            entry.recorded_as = now
            count_program(entry.calls)
            kind.entries = [entry, *kind.entries[: ENTRIES - 1]]
            kind.attempts = 0
            self._see(entry)
        elif is_template:
            self._make_instance(kind, self._key(args, kwargs, []), leaves)
        kind.former = [(now, values), *kind.former[: ENTRIES - 1]]
        return result

    def _see(self, entry: Entry) -> None:
        """Look at a program that was made."""

    def cut(self, text: FunctionType, made: Capture) -> None:
        """Run the function in pieces from now on."""
        with self._lock, contextlib.suppress(CannotSplit):
            if self.segments is None and (made.breaks or made.has_effects):
                self.segments = Segments(self, text, made)


class CallShapes:
    """Which numbers among the arguments of a function change. See Note [Changing numbers]."""

    def __init__(self, dynamic: bool | None) -> None:
        self._dynamic = dynamic
        self.free: dict[Any, frozenset[int]] = {}
        """By the structure of the arguments: the places of numbers that are inputs."""
        self._fixed: dict[Any, frozenset[int]] = {}
        self._first: dict[Any, list[Any]] = {}
        """By what else tells calls apart: the leaves of the first such call."""

    def learn(self, key: Any, leaves: list[Any], places: Sequence[int]) -> bool:
        """See a call of a new kind; whether a number became an input by it."""
        structure = key[0]
        closed = self._fixed.get(structure, _NONE) | self.free.get(structure, _NONE)
        places = [place for place in places if place not in closed]
        if self._dynamic is False or not places:
            return False
        rest = tuple([part for number, part in enumerate(key) if number - _HEAD not in places])
        first = self._first.setdefault(rest, leaves)
        if self._dynamic is None:
            places = [place for place in places if repr(first[place]) != repr(leaves[place])]
        if places:
            self.free[structure] = self.free.get(structure, _NONE) | frozenset(places)
        return bool(places)

    def fix(self, structure: Any, places: frozenset[int]) -> None:
        """Tell calls apart by the values of these numbers again, for good."""
        self.free[structure] = self.free.get(structure, _NONE) - places
        self._fixed[structure] = self._fixed.get(structure, _NONE) | places


_NONE: frozenset[int] = frozenset()
_NO_ARGUMENTS = flatten(((), {}), [])
_HEAD = 4
"""How many parts of a key stand before those of the leaves."""


def open_places(values: Sequence[Any], *, with_whole: bool) -> list[int]:
    """The places, among the leaves of the values, of those that are numbers themselves."""
    found, count = [], 0
    for value in values:
        if type(value) is float or (with_whole and type(value) is int):
            found.append(count)
        leaves: list[Any] = []
        flatten(value, leaves)
        count += len(leaves)
    return found


class Inner(CompiledFunction):
    """A part of a function that breaks: Python runs it where its programs are small."""

    is_small = False
    """Whether calls of its function take no longer than its programs."""

    def _see(self, entry: Entry) -> None:
        programs = [entry for kind in self.kinds.values() for entry in kind.entries]
        self.is_small = self.backend is None and not self.check and all(entry.is_small() for entry in programs)


class Piece(Inner):
    """What lies between two breaks of a function."""

    def __init__(self, function: Any, lines: tuple[int, int], whole: Segments) -> None:
        owner = whole.owner
        super().__init__(function, check=owner.check, dynamic=owner.dynamic, backend=owner.backend)
        self.lines = lines
        self.is_differentiated_twice = whole.differentiates_twice
        self._whole = whole

    def _open_places(self, args: Any, kwargs: Any) -> list[int]:
        return open_places(list(args[0].values()), with_whole=True)

    def _see(self, entry: Entry) -> None:
        super()._see(entry)
        if self.is_small:
            self._whole.build()

    def cut(self, text: FunctionType, made: Capture) -> None:
        """Cut the whole function anew."""
        self._whole.add(made)


CALLEES = 64
"""How many functions that break are compiled for one that calls them."""


class Segments:
    """A function in pieces. See Note [Segments]."""

    def __init__(self, owner: CompiledFunction, text: FunctionType, made: Capture) -> None:
        self.owner = owner
        self._known: dict[str, Piece] = {}
        self._text = text
        self._breaks: dict[Spot, int] = dict.fromkeys(made.breaks, 1)
        self._effects = int(made.has_effects)
        self.differentiates_twice = mentions_create_graph(text)
        self._callees: dict[Any, Any] = {}
        self.build()

    def build(self) -> None:
        """Write the function anew, with what is known of its pieces."""
        made = Segmented(self._text, self._breaks, self._effects, lambda function, lines: Piece(function, lines, self))
        function = made.build(self.callee, self._known)
        self._known = made.pieces
        owner: Any = self.owner.function
        self.run: Callable[..., Any] = function
        if isinstance(owner, MethodType):
            self.run = MethodType(function, owner.__self__)
            if owner.__func__ is Module.__call__:
                self.run = _ModuleCall(owner.__self__, self.run)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces, in the order of the text."""
        return sorted(self._known.values(), key=lambda piece: piece.lines)

    def add(self, made: Capture) -> None:
        """Cut at more places; one that breaks although its tensors were computed before stays as it is."""
        with self.owner._lock:
            effects = min(self._effects + made.has_effects, 2)
            if not made.breaks and effects == self._effects:
                return
            self._effects = effects
            for spot in set(made.breaks):
                self._breaks[spot] = 2 if spot in self._breaks else 1
            with contextlib.suppress(CannotSplit):
                self.build()

    def callee(self, function: Any) -> Any:
        """What to call in the place of a function that is called at a break."""
        text = text_of(function)
        if text is None or getattr(function, "is_disabled", False):
            return function
        key = (
            (id(function),) if not isinstance(function, MethodType) else (id(function.__func__), id(function.__self__))
        )
        known = self._callees.get(key)
        if known is None:
            if len(self._callees) >= CALLEES:
                return function
            called = function.__call__ if isinstance(function, Module) else function
            owner = self.owner
            compiled = Inner(called, check=owner.check, dynamic=owner.dynamic, backend=owner.backend)
            compiled.is_differentiated_twice = self.differentiates_twice
            known = self._callees[key] = (compiled, function)
        return known[known[0].is_small]


class _ModuleCall:
    """What Module.__call__ does, around a forward in pieces."""

    def __init__(self, module: Any, forward: Callable[..., Any]) -> None:
        self.module, self.forward = module, forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if text_of(self.module) is None:  # hooks came
            return self.module(*args, **kwargs)
        former = enter_module(self.module)
        try:
            return self.forward(*args, **kwargs)
        finally:
            leave_module(former)


def text_of(function: Any) -> FunctionType | None:
    """The function whose text may be cut: the user's, or the forward of a module; None if there is none."""
    if isinstance(function, MethodType) and function.__func__ is Module.__call__:
        function = function.__self__
    if isinstance(function, Module):
        if type(function).__call__ is not Module.__call__ or _has_hooks(function):
            return None
        function = function.forward
        if isinstance(function, MethodType):
            return function.__func__ if isinstance(function.__func__, FunctionType) else None
        return None
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        return None
    file = function.__code__.co_filename
    if file.startswith(PACKAGE):  # one that stands around the user's, as no_grad() makes it
        inner = inspect.unwrap(function).__code__.co_filename
        return None if inner.startswith((PACKAGE, *LIBRARY)) else function
    return None if file.startswith(LIBRARY) else function


def _has_hooks(module: Module) -> bool:
    own = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    everywhere = (GlobalHooks.forward, GlobalHooks.forward_pre, GlobalHooks.backward, GlobalHooks.backward_pre)
    return any(own) or any(everywhere)


def _told_name(function: Any) -> str:
    """A function's name, or the class of the module that it calls."""
    if getattr(function, "__name__", "__call__") in ("__call__", "forward"):
        return type(getattr(function, "__self__", function)).__name__
    return str(function.__name__)


def without_sizes(key: Any) -> Any:
    """What tells kinds of calls apart beside the sizes and strides of tensors: of these, how they are laid out."""
    if key is None:
        return None
    head, leaves = key[:_HEAD], key[_HEAD:]
    return (*head, *[_form_without_sizes(*part) if type(part) is tuple and len(part) > 2 else part for part in leaves])


def _form_without_sizes(shape: Any, strides: Any, dtype: Any, *rest: Any) -> tuple[Any, ...]:
    return (len(shape), layout_of(shape, strides, dtype.itemsize), dtype, *rest)


_FOLLOWED = ("grad_mode", "inference_mode", "forward_grad")
"""Switches that programs are told apart by, or that mean nothing to them."""


def _modes() -> Any:
    """The switches of this thread that a program may depend on; None where calls are not compiled."""
    state = switches.__dict__
    for name, default in SWITCH_DEFAULTS.items():
        if state[name] is not default and state[name] != default and name not in _FOLLOWED:
            return None
    return (state["grad_mode"], state["inference_mode"])


def _not_one_program(stops: list[Stop]) -> Unsupported:
    return Unsupported(
        f"torch.compile with fullgraph=True: the function cannot be one graph, because {stops[0].describe()}. Move this "
        "out of the function, use tensor operations instead (torch.where for a branch on values), or leave "
        "fullgraph=False: the function is then cut there, and its pieces are compiled."
    )
