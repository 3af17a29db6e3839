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
from typing import TYPE_CHECKING, Any

from pullback.backend.unpromised_bits import COMPILE, note_unpromised
from pullback.compiling.backend import build, build_exactly
from pullback.compiling.call_keys import CallShapes, open_places, without_sizes
from pullback.compiling.capture import Capture
from pullback.compiling.capturing import capture
from pullback.compiling.checking import run_checked
from pullback.compiling.collecting import not_collecting
from pullback.compiling.custom_backend import Backend, BackendEntry, CannotTrace
from pullback.compiling.entries import Entry
from pullback.compiling.fingerprint import fingerprint
from pullback.compiling.function_text import CannotSplit, text_of, told_name
from pullback.compiling.kernel_names import current_recorder
from pullback.compiling.numbers import only_for
from pullback.compiling.program import replay
from pullback.compiling.recorder import Stop
from pullback.compiling.stances import Stance
from pullback.compiling.statistics import count_break, count_program, tell_recompile
from pullback.compiling.structure import flatten
from pullback.compiling.templates import Templates
from pullback.errors import Unsupported
from pullback.modes.determinism import are_deterministic_algorithms_enabled
from pullback.modes.inside_compiled import call_inside, outside
from pullback.modes.source_lines import SourceLine, is_hidden
from pullback.modes.user_warnings import warn_user
from pullback.progress import waiting

if TYPE_CHECKING:
    from pullback.compiling.pieces import Segments

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
        self.programs = 0
        """How many were made."""
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
            key = self._shapes.key(args, kwargs, leaves)
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
        with waiting(f"compiling {told_name(self.function)}"):
            return call_inside(self._record, (kind, leaves, args, kwargs), {})

    def _run_unless_refused(self, args: Any, kwargs: Any) -> Any:
        """Run a call that would have to be compiled as it is, or refuse it, as the stance says."""
        if Stance.other != "fail_on_recompile":
            return call_inside(self.function, args, kwargs)
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        place = "" if code is None else f" filename: {code.co_filename!r}, line number: {code.co_firstlineno},"
        raise RuntimeError(
            f"Detected recompile when torch.compile stance is 'fail_on_recompile'.{place} function name: "
            f"{told_name(self.function)!r}. No program fits these arguments and what the function depends on: call it like "
            "this under the default stance first."
        )

    def _new_kind(self, key: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Kind | None:
        """What is to be known of calls that were not seen before; None where there are too many kinds of them."""
        with self._lock:
            if self._shapes.learn(key, leaves, self._open_places(args, kwargs)):
                self._set_aside |= {known: kind for known, kind in self.kinds.items() if known[0] == key[0]}
                self.kinds = {known: kind for known, kind in self.kinds.items() if known[0] != key[0]}
                key = self._shapes.key(args, kwargs, leaves := [])
            if key in self.kinds:
                return self.kinds[key]
            free = self._shapes.free.get(key[0], frozenset())
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
                    tell_recompile(told_name(self.function), len(self.kinds) + 1)
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
            with waiting(f"compiling {told_name(self.function)}"):
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
        note_unpromised(COMPILE, f"the compiled {told_name(self.function)}", line)
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
                count_break(told_name(self.function), stop)
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
                without_sizes(self._shapes.key(args, kwargs, [])), made, leaves
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
            kind.programs += 1
            if kind.programs >= KINDS and not self.runs:
                kind.run_eagerly("what it depends on is another in each call")
            self._see(entry)
        elif is_template:
            self._make_instance(kind, self._shapes.key(args, kwargs, []), leaves)
        kind.former = [(now, values), *kind.former[: ENTRIES - 1]]
        return result

    def _see(self, entry: Entry) -> None:
        """Look at a program that was made."""

    def cut(self, text: FunctionType, made: Capture) -> None:
        """Run the function in pieces from now on."""
        with self._lock, contextlib.suppress(CannotSplit):
            if self.segments is None and (made.breaks or made.has_effects):
                from pullback.compiling.pieces import Segments  # lazy: pieces are compiled functions

                self.segments = Segments(self, text, made)


def _not_one_program(stops: list[Stop]) -> Unsupported:
    return Unsupported(
        f"torch.compile with fullgraph=True: the function cannot be one graph, because {stops[0].describe()}. Move this "
        "out of the function, use tensor operations instead (torch.where for a branch on values), or leave "
        "fullgraph=False: the function is then cut there, and its pieces are compiled."
    )
