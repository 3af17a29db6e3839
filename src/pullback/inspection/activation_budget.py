"""activation_budget: a bound on what eager programs keep for backward."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from pullback.autograd.differentiation import grad
from pullback.autograd.function import _FunctionCall
from pullback.backend.array_module import ndarray
from pullback.backend.device_array import DeviceArray
from pullback.backend.storage_pieces import memory_of, piece_of
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, next_sequence_nr
from pullback.graph.saved_tensor import PackedTensor, SavedOutput
from pullback.graph.source_lines import source_line
from pullback.inspection.nodes import acting_node, nodes_since, tensors_in
from pullback.inspection.recomputation import Argument, KeptTensor, Recipe, Store, draws_of
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.modes.switches import switches
from pullback.random import default_generator
from pullback.report import Report
from pullback.tensor.tensor import Tensor
from pullback.tensor.version_counter import InferenceVersion

__all__ = ["activation_budget"]

_COLUMNS = ("operation", "line", "dropped", "dropped_bytes", "recomputed", "recompute_seconds")


class activation_budget(contextlib.ContextDecorator):
    """Keep at most `bytes` of what operations in the block save for backward; compute the rest again when it is read.

    Nothing in the model is changed or marked. Dropped are values that operations in the block made, cheapest to compute
    again for their size first; parameters and inputs stay where they are. Gradients are the same to the bit: operations
    run again on the same arguments, with the same random numbers. A smaller budget costs more time, and `report()` says
    how much. With `offload="disk"` values are written to files in `directory` (default: that for temporary files)
    instead, which also serves values that no single operation made. With `offload="cpu"` the values of other devices are
    copied to the CPU's memory; what lies there already is computed again, so that the budget is kept.

    A tensor from outside of the block that is modified in place before backward raises when a dropped value needs it.

    >>> import pullback
    >>> x = pullback.ones(1000, requires_grad=True)
    >>> with activation_budget(8000) as budget:
    ...     y = x
    ...     for _ in range(10):
    ...         y = y.sin()
    >>> y.sum().backward()
    >>> budget.report().facts["peak_bytes"] <= 8000 + 4000
    True
    """

    def __init__(self, bytes: int, *, offload: str | None = None, directory: str | None = None) -> None:
        if isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 0:
            raise ValueError(f"activation_budget expects a number of bytes that is not negative, got {bytes!r}")
        if offload not in (None, "disk", "cpu"):
            raise ValueError(f"activation_budget can offload to 'disk' or to 'cpu', got {offload!r}")
        self.bytes = bytes
        self._store = Store(bytes, offload, directory)
        self._start = 0.0
        self._forward_seconds = 0.0

    def __enter__(self) -> activation_budget:
        self._start = self._start or time.perf_counter()
        self._entered = time.perf_counter()
        push_interceptor(self._operation)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_interceptor()
        self._forward_seconds += time.perf_counter() - self._entered

    def report(self) -> Report:
        """Say what was dropped and computed again, and the slowdown: the time since the block began, with and without."""
        store = self._store
        elapsed = max(store.last_read, self._start + self._forward_seconds) - self._start
        spent = store.recompute_seconds + store.bookkeeping_seconds
        facts = {
            "budget_bytes": self.bytes, "peak_bytes": store.peak, "held_bytes": store.held,
            "forward_seconds": self._forward_seconds, "recompute_seconds": store.recompute_seconds,
            "bookkeeping_seconds": store.bookkeeping_seconds,
            "slowdown": elapsed / (elapsed - spent) if elapsed > spent else 1.0,
        }  # fmt: skip
        rows = sorted(store.dropped.values(), key=lambda row: -row["dropped_bytes"])
        return Report("Activations dropped and computed again", _COLUMNS, rows, facts)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    # What each operation of the block goes through.

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        draws = draws_of(function)
        if draws == "parts" or function is grad:
            return NotImplemented  # its parts are operations themselves
        if isinstance(function, _FunctionCall):
            return self._function(function, args, kwargs)
        entered, first = time.perf_counter(), next_sequence_nr()
        recipe = self._recipe(function, args, kwargs, bool(draws))
        before = {id(t): _written_state(t) for t in tensors_in([args, kwargs])}
        start = time.perf_counter()
        result = function(*args, **kwargs)
        seconds = time.perf_counter() - start
        if recipe is not None:
            recipe.seconds = seconds
            self._know_results(recipe, args, kwargs, before, result)
        self._keep_saved(first, args, result)
        self._store.bookkeeping_seconds += time.perf_counter() - entered - seconds
        return result

    def _function(self, function: _FunctionCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A custom Function: its forward may do anything, so it runs once; the operations in it may run again."""
        first = next_sequence_nr()
        push_interceptor(self._operation)
        try:
            result = function.run_openly(*args, **kwargs)
        finally:
            pop_interceptor()
        self._keep_saved(first, args, result)
        return result

    def _recipe(self, function: Any, args: Any, kwargs: Any, draws: bool) -> Recipe | None:
        """How to run the operation again; None where it cannot be."""
        if switches.dual_level >= 0 or any(not _is_replayable(i) for i in switches.interceptors):
            return None
        try:
            recipe = Recipe(function, self._packed(args), self._packed(kwargs), switches.interceptors)
        except _Unpackable:
            return None
        recipe.place = source_line()
        if draws:
            generator = kwargs.get("generator") or _generator_of(args)
            recipe.generator = (generator, generator.get_state())
        return recipe

    def _packed(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if not _has_memory(value) or (value._extra is not None and value._extra.mirror is not None):
                raise _Unpackable
            argument = self._store.argument(value)
            if argument is None:
                raise _Unpackable
            return argument
        if isinstance(value, tuple) and type(value) is not tuple:
            return value if not any(True for _ in tensors_in(value)) else tuple(self._packed(item) for item in value)
        if isinstance(value, list | tuple):
            return type(value)(self._packed(item) for item in value)
        if isinstance(value, dict):
            return {name: self._packed(item) for name, item in value.items()}
        return value

    def _know_results(self, recipe: Recipe, args: Any, kwargs: Any, before: dict[int, Any], result: Any) -> None:
        """Remember which contents the operation made: those of new storages, and of storages it wrote to."""
        owners = {entry[0] for entry in before.values()}
        for path, tensor in _paths(result):
            owner = id(memory_of(tensor._array))
            if owner in owners:
                self._store.count_together(tensor)
            if owner in owners or not _has_memory(tensor):
                continue
            contents = self._store.add(tensor, recipe)
            if contents is not None:
                owners.add(owner)
                recipe.results.append((path, ref(contents)))
        for index, value in enumerate(args):
            if isinstance(value, Tensor) and before.get(id(value)) not in (None, _written_state(value)):
                packed = recipe.args[index]
                recipe.written.add(id(packed.contents))
                packed.contents.let_go()
                packed.contents.live = None
                contents = self._store.add(value, recipe)
                if contents is not None:
                    recipe.results.append(((-1, index), ref(contents)))

    # What nodes saved.

    def _keep_saved(self, first: int, args: Any, result: Any) -> None:
        """Put a KeptTensor in the place of what the new nodes of an operation saved."""
        for node in nodes_since([result, list(args)], first):
            self._keep_of(acting_node(node))
            inner = getattr(node, "inner", None)
            if isinstance(inner, Node):
                self._keep_of(inner)

    def _keep_of(self, node: Node) -> None:
        if isinstance(node, BackwardCFunction):
            for index, (value, version) in enumerate(node.stored or ()):
                kept = self._kept(value)
                if kept is not None:
                    node.stored[index] = (kept, version)  # type: ignore[index]
            return
        for name in node.saved_names:
            if getattr(node, f"saved_{name}_version", -1) >= 0:
                kept = self._kept(getattr(node, f"saved_{name}"))
                if kept is not None:
                    setattr(node, f"saved_{name}", kept)

    def _kept(self, value: Any) -> KeptTensor | None:
        """What stands for a saved value whose contents may be dropped; None where they may not."""
        if isinstance(value, PackedTensor) or not isinstance(value, Tensor | SavedOutput):
            return None
        if not _has_memory(value):
            return None
        if isinstance(value, Tensor) and value.is_leaf and value._requires_grad:
            return None  # held anyway, for its gradient
        contents = self._store.find(value)
        if contents is None and self._store.offload:
            contents = self._store.add(value, None)
        if contents is None or (contents.recipe is None and not contents.is_movable) or not contents.nbytes:
            return None
        if isinstance(value, SavedOutput):
            if value.tangents or value.written_slice is not None:
                return None
            edge, output_nr, requires_grad = None, value.output_nr, value.differentiable
        else:
            if value._extra is not None and value._extra.tangents:
                return None
            edge, output_nr, requires_grad = gradient_edge(value), None, value._requires_grad
        kept = KeptTensor(Argument(contents, piece_of(value._array)), edge, output_nr, requires_grad)
        self._store.hold(contents)
        return kept


def _has_memory(value: Any) -> bool:
    """Whether a tensor lies in plain memory, of the CPU or of another device."""
    return type(value._array) is ndarray or isinstance(value._array, DeviceArray)


class _Unpackable(Exception):
    """Raised where an argument is a tensor that cannot be made again."""


def _is_replayable(interceptor: Any) -> bool:
    """Whether an interceptor may be asked again later: autocast may; vmap and others are over by then."""
    return type(interceptor).__module__ == "pullback.amp.autocast_mode"


def _generator_of(args: tuple[Any, ...]) -> Any:
    """Where an operation draws from that was given no generator."""
    for tensor in tensors_in(args):
        if isinstance(tensor._array, DeviceArray):
            return _DeviceGenerators(tensor._array.library)
    return default_generator


class _DeviceGenerators:
    """The generators of a device's library, as one."""

    def __init__(self, library: Any) -> None:
        self.get_state = library.random_states
        self.set_state = library.set_random_states


def _written_state(tensor: Any) -> tuple[int, int]:
    counter = tensor._counter
    version = 0 if counter is None or isinstance(counter, InferenceVersion) else counter.value
    return id(memory_of(tensor._array)), version


def _paths(result: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(result, Tensor):
        yield path, result
    elif isinstance(result, list | tuple):
        for index, item in enumerate(result):
            yield from _paths(item, (*path, index))
