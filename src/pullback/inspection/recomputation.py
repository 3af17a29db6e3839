"""Contents of storages that can be dropped and made again: by the operation that made them, or from a file.

# Note [Recomputation]
Inside of `activation_budget` each operation is seen as it runs. Of each storage that an operation makes, or writes to, a
`Contents` remembers how: the function, its plain arguments, and for each tensor among them the contents and the place in
them. What nodes save is replaced by a `KeptTensor`, which knows the contents and reads them when backward does. So
memory that several saved tensors, views and recipes share is held once, and dropping it is one step.

Contents are held while they are saved, until the budget is reached. Then those go first that are cheapest to make again
for their size, and that were used longest ago: backward reads them last. To rank them takes a look at all that is held, so
the best quarter of the ranks serves the next times too. What is made again is held like the rest, so that the next reader
finds it, and drops others in its turn. Contents die with their last reader: the nodes of backward that release them, and the
recipes of contents further on, which backward has left behind by then.

A storage that was written to has new contents; the recipe of these begins with a copy of the former ones. Versions say
whether the memory at hand still holds what was meant. What came from outside of the block has no recipe: it is held, and
if it was written to since, that is an error when it is needed. Operations that draw random numbers keep the state of the
generator. They run again with the interceptors that were there (autocast), without recording.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from pullback.autograd.profiler import shown_name
from pullback.backend.device_array import DeviceArray
from pullback.backend.storage_pieces import (
    Piece,
    array_at,
    copy_storage,
    from_host,
    is_dense,
    memory_of,
    on_host,
    piece_of,
    read_storage,
    write_storage,
)
from pullback.errors import InPlaceModificationError
from pullback.generated.registry import OPERATIONS
from pullback.graph.saved_tensor import PackedTensor
from pullback.modes.switches import SWITCH_DEFAULTS, current_switches, set_switches
from pullback.report import place_text
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import InferenceVersion, VersionCounter


def draws_of(function: Any) -> str:
    """What decides about the shape of the random numbers that a function draws, "" of one that draws none."""
    operation = OPERATIONS.get(getattr(function, "__name__", ""))
    own: str = getattr(function, "draws", "")
    return own or ("" if operation is None else operation.draws)


class Recipe:
    """How an operation made its results: what to call, with which arguments, under which circumstances."""

    __slots__ = (
        "args",
        "function",
        "generator",
        "inputs",
        "interceptors",
        "kwargs",
        "place",
        "results",
        "seconds",
        "written",
    )

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, interceptors: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.inputs = tuple({argument.contents: None for argument in _arguments(args, kwargs)})
        """The contents that the arguments lie in."""
        self.interceptors = interceptors
        self.generator: tuple[Any, Any] | None = None
        """The generator that the operation draws from, and its state before."""
        self.written: set[int] = set()
        """Identities of the argument contents that the operation writes to: it gets a copy of them."""
        self.results: list[tuple[tuple[int, ...], weakref.ref[Contents]]] = []
        """Which result lies in which contents."""
        self.seconds = 0.0
        self.place: Any = None

    @property
    def name(self) -> str:
        return shown_name(getattr(self.function, "__name__", "operation"))

    def run(self, array_of: Callable[[Contents], Any]) -> Iterator[tuple[Contents, Any]]:
        """Call the operation again; yield the contents that it makes, each with its storage."""
        copies: dict[int, Any] = {}
        args = [self._given(argument, array_of, copies) for argument in self.args]
        kwargs = {name: self._given(argument, array_of, copies) for name, argument in self.kwargs.items()}
        with _circumstances(self.interceptors, self.generator):
            result = self.function(*args, **kwargs)
        for path, reference in self.results:
            contents = reference()
            if contents is not None:
                made = args[path[1]] if path[:1] == (-1,) else _at(result, path)
                yield contents, memory_of(made._array)

    def _given(self, argument: Any, array_of: Callable[[Contents], Any], copies: dict[int, Any]) -> Any:
        """An argument as it was. (No closure that calls itself: it would be a cycle, and hold arrays until collected.)"""
        if isinstance(argument, Argument):
            contents = argument.contents
            storage = array_of(contents)
            if id(contents) in self.written:
                storage = copies.setdefault(id(contents), copy_storage(storage))
            return new_tensor(array_at(storage, argument.piece, contents.kind))
        if isinstance(argument, list | tuple) and any(True for _ in _arguments(argument)):
            items = [self._given(item, array_of, copies) for item in argument]
            return items if isinstance(argument, list) else tuple(items)
        return argument


class Argument:
    """A tensor among the arguments of a recipe."""

    __slots__ = ("contents", "piece")

    def __init__(self, contents: Contents, piece: Piece) -> None:
        self.contents = contents
        self.piece = piece

    @property
    def held_array(self) -> Any:
        """The array where its storage is held; None where that was dropped."""
        contents = self.contents
        return None if contents.array is None else array_at(contents.array, self.piece, contents.kind)

    def held_values(self) -> Iterator[Any]:
        """The storages that are held to compute this one again."""
        waiting, seen = [self.contents], {self.contents}
        while waiting:
            contents = waiting.pop()
            if contents.array is not None:
                yield contents.array
            new = [] if contents.recipe is None else [one for one in contents.recipe.inputs if one not in seen]
            seen.update(new)
            waiting.extend(new)


class Contents:
    """What a storage holds at one version."""

    __slots__ = (
        "__weakref__", "array", "counter", "file", "host", "is_copy", "kind", "last_use", "live", "nbytes", "piece", "place",
        "recipe", "store", "version",
    )  # fmt: skip

    def __init__(self, store: Store, tensor: Any, owner: Any, counter: VersionCounter, recipe: Recipe | None) -> None:
        self.store = store
        self.nbytes = owner.nbytes
        self.kind = type(tensor._array)
        """The class of the arrays that lie in the storage."""
        self.place = tensor._array.place if self.is_elsewhere else None
        self.piece = Piece(owner.dtype, owner.shape, owner.strides, 0)
        self.counter, self.version = counter, counter.value
        self.recipe = recipe
        self.array: Any = None
        """The storage, while it is held here."""
        self.is_copy = False
        """Whether the storage was made again: nobody else writes to it."""
        self.live: Any = None
        """A weak reference to the storage: it may be there though it is not held here."""
        self.file: str | None = None
        self.host: Any = None
        """A copy in the CPU's memory of what lies on another device."""
        self.last_use = 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether the storage lies on another device than the CPU."""
        return issubclass(self.kind, DeviceArray)

    @property
    def is_movable(self) -> bool:
        """Whether the store moves it rather than dropping it."""
        return self.store.offload == "disk" or (self.store.offload == "cpu" and self.is_elsewhere)

    def at_hand(self) -> Any:
        """The storage, if it is there and holds what is meant."""
        if not self.is_copy and self.counter.value != self.version:
            self.let_go()
            return None
        if self.array is not None:
            return self.array
        return self.live() if self.live is not None else None

    def let_go(self) -> None:
        """Hold the storage no longer."""
        if self.array is not None:
            self.array = None
            self.store.held -= self.nbytes

    def __del__(self) -> None:
        self.let_go()
        if self.file is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.file)


class KeptTensor(PackedTensor):
    """A saved tensor whose contents may be dropped meanwhile. The version is checked as that of others."""

    __slots__ = ("_counter",)

    _counter: Any

    def __init__(self, argument: Argument, edge: Any, output_nr: int | None, requires_grad: bool) -> None:
        self._counter = argument.contents.counter
        self.packed = argument
        self.unpack_hook = read_argument
        self.read = None
        self.edge = edge
        self.output_nr = output_nr
        self.requires_grad = requires_grad
        self.tangents = None  # what has some is kept as it is

    @property
    def _array(self) -> Any:
        argument: Argument = self.packed
        return _read_array(argument)

    def unpacked(self) -> Tensor:
        tensor = new_tensor(self._array)
        tensor._counter = self._counter
        return tensor


def read_argument(argument: Argument) -> Tensor:
    """The tensor that an argument stands for."""
    return new_tensor(_read_array(argument))


def _read_array(argument: Argument) -> Any:
    contents = argument.contents
    return array_at(contents.store.read(contents), argument.piece, contents.kind)


class Store:
    """Holds contents up to a limit. See Note [Recomputation]."""

    def __init__(self, limit: int, offload: str | None = None, directory: str | None = None) -> None:
        self.limit = limit
        self.offload = offload
        self.directory = directory
        self.held = 0
        self.peak = 0
        self.clock = 0
        self.recompute_seconds = 0.0
        self.bookkeeping_seconds = 0.0
        """What the forward took longer, to know contents and to drop them."""
        self.last_read = 0.0
        self.dropped: dict[str, dict[str, Any]] = {}
        self._known: dict[int, weakref.ref[Contents]] = {}
        """By the identity of the storage, as long as there is one."""
        self._unheld: dict[int, Contents] = {}
        """Those that are not held here live as long as their storage: later operations are to find them."""
        self._holding: weakref.WeakSet[Contents] = weakref.WeakSet()
        self._next_to_drop: deque[tuple[weakref.ref[Contents], int]] = deque()
        """With the last use when they were ranked: who was used since is not the next."""
        self._lock = threading.RLock()

    # What is known.

    def find(self, tensor: Any) -> Contents | None:
        """The contents that a tensor lies in now, if some operation of the block made them."""
        if isinstance(tensor._counter, InferenceVersion):
            return None  # it has no version
        owner = memory_of(tensor._array)
        reference = self._known.get(id(owner))
        contents = reference() if reference is not None else None
        if contents is None or contents.live is None or contents.live() is not owner:
            return None
        return contents if _version(tensor) == contents.version and contents.counter is tensor._counter else None

    def count_together(self, tensor: Any) -> None:
        """Let a tensor in known memory that has no version counter count writes with it: reshape() makes such copies."""
        reference = self._known.get(id(memory_of(tensor._array))) if tensor._counter is None else None
        contents = reference() if reference is not None else None
        if contents is not None and contents.counter.value == contents.version:
            tensor._counter = contents.counter

    def add(self, tensor: Any, recipe: Recipe | None) -> Contents | None:
        """Know new contents, of the storage that `tensor` lies in."""
        owner = memory_of(tensor._array)
        if not is_dense(owner) or isinstance(tensor._counter, InferenceVersion):
            return None
        if tensor._counter is None:
            tensor._counter = VersionCounter()
        contents = Contents(self, tensor, owner, tensor._counter, recipe)
        key = id(owner)
        contents.live = weakref.ref(owner, lambda _: self._forget(key))
        self._known[key], self._unheld[key] = weakref.ref(contents), contents
        return contents

    def _forget(self, key: int) -> None:
        self._known.pop(key, None)
        self._unheld.pop(key, None)

    def argument(self, tensor: Any) -> Argument | None:
        """A tensor as an argument of a recipe; one from outside is held from now on."""
        contents = self.find(tensor)
        if contents is None:
            contents = self.add(tensor, None)
            if contents is None:
                return None
            contents.nbytes = 0  # somebody else's memory
            self._take(contents, memory_of(tensor._array))
        return Argument(contents, piece_of(tensor._array))

    # What is held.

    def hold(self, contents: Contents) -> None:
        """Hold contents that somebody saved, dropping others beyond the limit."""
        with self._lock:
            self._touch(contents)
            if contents.array is None:
                owner = contents.at_hand()
                if owner is not None:
                    self._take(contents, owner)

    def read(self, contents: Contents) -> Any:
        """The storage, made again if it was dropped."""
        with self._lock:
            self._touch(contents)
            owner = contents.at_hand()
            start = self.last_read = time.perf_counter()
            if owner is None:
                owner = self._make(contents)
                self.last_read = time.perf_counter()
                self.recompute_seconds += self.last_read - start
            return owner

    def _touch(self, contents: Contents) -> None:
        self.clock += 1
        contents.last_use = self.clock

    def _take(self, contents: Contents, owner: Any) -> None:
        if contents.live is None or contents.live() is not owner:
            key = id(owner)
            contents.live, contents.is_copy = weakref.ref(owner, lambda _: self._forget(key)), True
            self._known[key] = weakref.ref(contents)  # a pass that is recorded saves what it reads
        contents.array = owner
        if self._unheld.get(id(owner)) is contents:
            del self._unheld[id(owner)]  # else it would hold itself
        self.held += contents.nbytes
        if contents.nbytes:
            self._holding.add(contents)
        self.peak = max(self.peak, self.held)
        if self.held > self.limit:
            self._drop_others()

    def _drop_others(self) -> None:
        """Drop contents, cheapest first, until the limit is kept or nothing more can go."""
        is_ranked_anew = False
        while self.held > self.limit:
            if not self._next_to_drop:
                if is_ranked_anew:
                    return
                is_ranked_anew = self._rank()
                continue
            reference, last_use = self._next_to_drop.popleft()
            contents = reference()
            if contents is not None and contents.array is not None and contents.last_use == last_use:
                self._drop(contents)
                is_ranked_anew = False

    def _rank(self) -> bool:
        """Find out which contents to drop next; True."""
        costs: dict[Contents, float] = {}
        candidates = [
            contents for contents in list(self._holding)
            if contents.nbytes and contents.array is not None and (contents.is_movable or contents.recipe is not None)
        ]  # fmt: skip
        ranked = sorted(
            candidates,
            key=lambda c: (1.0 if c.is_movable else _cost(c, costs)) / (c.nbytes * (self.clock - c.last_use + 1)),
        )
        best = ranked[: max(8, len(ranked) // 4)]
        self._next_to_drop.extend((weakref.ref(contents), contents.last_use) for contents in best)
        return True

    def _drop(self, contents: Contents) -> None:
        if contents.is_movable and contents.file is None and contents.host is None:
            self._move(contents)
        row = self._row(contents)
        row["dropped"] += 1
        row["dropped_bytes"] += contents.nbytes
        if not contents.is_copy:
            self._unheld[id(contents.array)] = contents
        contents.let_go()
        self._holding.discard(contents)

    def _move(self, contents: Contents) -> None:
        """Keep a copy of contents in the CPU's memory or in a file."""
        if self.offload == "cpu":
            contents.host = contents.kind.library.park(contents.array)
            return
        host = on_host(contents.array, contents.kind)
        descriptor, contents.file = tempfile.mkstemp(".activation", "pullback-", self.directory)
        with os.fdopen(descriptor, "wb") as file:
            write_storage(host, file)

    def _row(self, contents: Contents) -> dict[str, Any]:
        recipe = contents.recipe
        name = "?" if recipe is None else recipe.name
        line = None if recipe is None or recipe.place is None else place_text(recipe.place.place)
        return self.dropped.setdefault(
            f"{name} {line}",
            {
                "operation": name,
                "line": line,
                "dropped": 0,
                "dropped_bytes": 0,
                "recomputed": 0,
                "recompute_seconds": 0.0,
            },
        )

    # Making contents again.

    def _make(self, target: Contents) -> Any:
        """Make contents, and before them whatever they are made of. No recursion: chains may be long."""
        made: dict[Contents, Any] = {}
        needed: Counter[Contents] = Counter([target])
        stack = [target]
        while stack:
            contents = stack[-1]
            if contents in made:
                stack.pop()
                continue
            owner = contents.at_hand()
            if owner is None and (contents.file is not None or contents.host is not None):
                owner = self._load(contents)
            if owner is not None:
                made[contents] = owner
                stack.pop()
                continue
            recipe = self._recipe_of(contents)
            inputs = recipe.inputs
            missing = [given for given in inputs if given not in made]
            if missing:
                needed.update(missing)
                stack.extend(missing)
                continue
            self._run(recipe, contents, made, needed)
            for given in inputs:
                needed[given] -= 1
                if needed[given] <= 0:
                    made.pop(given, None)
            stack.pop()
        return made[target]

    def _run(self, recipe: Recipe, wanted: Contents, made: dict[Contents, Any], needed: Counter[Contents]) -> None:
        start = time.perf_counter()
        results = list(recipe.run(made.__getitem__))
        row = self._row(wanted)
        row["recomputed"] += 1
        row["recompute_seconds"] += time.perf_counter() - start
        for contents, owner in results:
            if contents is wanted or needed[contents] > 0:
                made[contents] = owner
            if contents.at_hand() is None and contents.nbytes == owner.nbytes:
                self._touch(contents)
                self._take(contents, owner)

    def _recipe_of(self, contents: Contents) -> Recipe:
        if contents.recipe is None:
            raise InPlaceModificationError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a "
                f"tensor of {contents.nbytes} bytes that activation_budget needs to compute dropped values again is at "
                f"version {contents.counter.value}; expected version {contents.version} instead. Work on a clone() of "
                "it, or take it out of the block."
            )
        return contents.recipe

    def _load(self, contents: Contents) -> Any:
        if contents.host is not None:
            library = contents.kind.library
            owner = library.on(contents.place, lambda: library.unpark(contents.host))
        else:
            assert contents.file is not None
            with open(contents.file, "rb") as file:
                owner = from_host(read_storage(file, contents.piece), contents.kind, contents.place)
        self._take(contents, owner)
        return owner


def _cost(contents: Contents, costs: dict[Contents, float]) -> float:
    """Seconds that it takes to make contents, and whatever of their inputs is not at hand."""
    stack = [contents]
    while stack:
        current = stack[-1]
        if current in costs:
            stack.pop()
            continue
        recipe = current.recipe
        if recipe is None:
            costs[current] = 0.0
            continue
        inputs = [given for given in recipe.inputs if given.at_hand() is None]
        missing = [given for given in inputs if given not in costs]
        if missing:
            stack.extend(missing)
            continue
        costs[current] = recipe.seconds + sum(costs[given] for given in inputs)
    return costs[contents]


def _version(tensor: Any) -> int:
    return 0 if tensor._counter is None else tensor._counter.value


def _arguments(*values: Any) -> Iterator[Argument]:
    for value in values:
        if isinstance(value, Argument):
            yield value
        elif isinstance(value, list | tuple):
            yield from _arguments(*value)
        elif isinstance(value, dict):
            yield from _arguments(*value.values())


def _at(result: Any, path: tuple[int, ...]) -> Any:
    for index in path:
        result = result[index]
    return result


@contextlib.contextmanager
def _circumstances(interceptors: tuple[Any, ...], generator: tuple[Any, Any] | None) -> Iterator[None]:
    """Default switches without recording, in these blocks of autocast, with this state of a generator; put back after."""
    former = current_switches()
    set_switches({**SWITCH_DEFAULTS, "grad_mode": False})
    state = None if generator is None else generator[0].get_state()
    if generator is not None:
        generator[0].set_state(generator[1])
    try:
        with contextlib.ExitStack() as blocks:
            for caster in interceptors:
                blocks.enter_context(caster.block)
            yield
    finally:
        if generator is not None:
            generator[0].set_state(state)
        set_switches(former)
