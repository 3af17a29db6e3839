"""Activation checkpointing: save the inputs of a region, and compute its saved tensors again when backward needs them.

The non-reentrant variant works by saved-tensor hooks: each tensor the region saves is replaced by a `_Holder`; the first
holder that backward unpacks runs the region again, and the tensors it saves then fill the holders in the same order.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from pullback.autograd.differentiation import backward
from pullback.autograd.function import Function
from pullback.autograd.grad_mode import enable_grad, no_grad
from pullback.autograd.graph import saved_tensors_hooks
from pullback.backend.device import known_libraries
from pullback.engine.passes import current_graph_task
from pullback.modes.saved_tensor_hooks import unseen
from pullback.modes.source_lines import SourceLine, source_line
from pullback.modes.switches import switches
from pullback.modes.user_warnings import warn_user
from pullback.random import get_rng_state, set_rng_state
from pullback.tensor.tensor import Tensor
from pullback.utils.selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup",
    "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """The recomputation of a checkpointed region did not repeat what the original did."""


class DefaultDeviceType:
    """The accelerator whose random state would be kept; there is none on the CPU."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Remember the name of a device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The remembered device type."""
        return DefaultDeviceType._default_device_type


class _Settings:
    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether recomputation stops once every needed tensor is there."""
    former, _Settings.early_stop = _Settings.early_stop, enable
    try:
        yield
    finally:
        _Settings.early_stop = former


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether errors of checkpoints inside of the block show the operations of both runs."""
    former, _Settings.debug = _Settings.debug, enabled
    try:
        yield
    finally:
        _Settings.debug = former


class GraphExecGroup:
    """Several backward calls over one checkpointed graph that count as one execution."""

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *exception: object) -> None:
        GraphExecGroup._current = None


def noop_context_fn() -> tuple[Any, Any]:
    """No contexts around the original run and the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs cut off their history, requiring grad as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warn if no input requires grad: the reentrant variant gives no gradients then."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn_user("None of the inputs have requires_grad=True. Gradients will be None")


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The random states of the accelerators among the arguments: none on the CPU."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Put back what `get_device_states` returned."""


def _random_states() -> Any:
    """The states of the generators of the CPU and of all devices in use."""
    return get_rng_state(), [(library, library.random_states()) for library in known_libraries()]


def _set_random_states(states: Any) -> None:
    set_rng_state(states[0])
    for library, state in states[1]:
        library.set_random_states(state)


@contextlib.contextmanager
def _random_state(state: Any) -> Iterator[None]:
    """Run a block from a given state of the generator, and put the present one back afterwards."""
    if state is None:
        yield
        return
    present = _random_states()
    _set_random_states(state)
    try:
        yield
    finally:
        _set_random_states(present)


_CastState = tuple[str, bool, Any, bool]


def _autocast_states() -> list[_CastState]:
    """How operations are cast here: by type of device, whether they are at all, to what dtype, and by a cache."""
    from pullback.amp import autocast_mode as amp  # lazy: a folder beside this one

    cache = amp.is_autocast_cache_enabled()
    return [(kind, amp.is_autocast_enabled(kind), amp.get_autocast_dtype(kind), cache) for kind in ("cpu", "cuda")]


@contextlib.contextmanager
def _autocast_as(states: list[_CastState]) -> Iterator[None]:
    """Cast operations of a block as where `states` was taken; nothing is entered where they are cast so already."""
    from pullback.amp.autocast_mode import autocast  # lazy: a folder beside this one

    pairs = zip(states, _autocast_states(), strict=True)
    differing = [then for then, now in pairs if then != now and (then[1] or now[1])]
    with contextlib.ExitStack() as stack:
        for kind, enabled, dtype, cache in sorted(differing, key=lambda then: then[1]):  # the innermost block holds
            stack.enter_context(autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=cache))
        yield


class CheckpointFunction(Function):
    """The reentrant variant: forward without a graph, backward runs forward again and a backward inside of it."""

    records_backward = False

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = _random_states() if preserve_rng_state else None
        ctx.casts = _autocast_states()
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        task = current_graph_task()
        if task is not None and task.exec_info is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        with _random_state(ctx.state):
            detached = detach_variable(tuple(inputs))
            with enable_grad(), _autocast_as(ctx.casts):
                outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[x._grad if isinstance(x, Tensor) else None for x in detached])


class _StopRecomputation(Exception):
    """Every holder that is alive has been filled."""


class _Holder:
    """Stands in the graph for one tensor that the region saved.

    `values` has what a recomputation filled in, by the pass that it ran for; None once that pass has read it.
    """

    __slots__ = ("__weakref__", "metadata", "values")

    def __init__(self, tensor: Any, describe: bool) -> None:
        self.values: dict[Any, Any] = {}
        self.metadata = _describe(tensor) if describe else None


def _describe(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _SaveInputs(Function):
    """Saves the region's inputs through whatever hooks are active around it, as any operation would."""

    @staticmethod
    def forward(*tensors: Any) -> Any:
        from pullback.creation import empty

        return empty(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[1:])  # the first one only lets the node be recorded

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return None

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("nothing is computed from this output")


class _Frame:
    """One checkpointed region: how to run it again, and the holders of what it saved."""

    def __init__(
        self, function: Callable[..., Any], early_stop: bool, check: bool, recompute_context: Any, debug: bool
    ) -> None:
        self.function = function
        self.early_stop = early_stop
        self.check = check
        self.recompute_context = recompute_context
        self.debug = debug
        self.caller = source_line()
        self.holders: list[weakref.ref[_Holder]] = []
        self.lines: list[SourceLine | None] = []
        self.lines_again: list[SourceLine | None] = []
        """The user's lines at which the original run and the latest one saved their tensors."""
        self.input_node: Any = None
        self.arguments: list[Any] = []
        self.counts: dict[Any, int] = {}
        self.original_log: list[str] = []
        self.recompute_log: list[str] = []
        self.state: Any = None
        self.casts = _autocast_states()
        self.ended = False
        """Whether the original run has ended: a backward inside of it sees only what was saved until then."""

    def held_values(self) -> Iterator[Any]:
        """What is kept to run the region again: its inputs, and the state of the generators."""
        if self.input_node is not None:
            yield self.input_node
        if self.state is not None:
            yield self.state[0]

    @unseen
    def pack(self, tensor: Any) -> _Holder:
        holder = _Holder(tensor, self.check)
        self.holders.append(weakref.ref(holder))
        self.lines.append(source_line())
        return holder

    def unpack(self, holder: _Holder) -> Any:
        """The tensor for a holder; the first call of a backward pass runs the region again."""
        try:
            return self._unpack(holder)
        except CheckpointError as error:
            if not self.debug:
                raise
            raise CheckpointError(
                f"An error happened while unpacking tensors: {error}\nOriginal:\n  "
                + "\n  ".join(self.original_log)
                + "\nRecomputed:\n  "
                + "\n  ".join(self.recompute_log)
                + "\nYou are seeing this error because you passed `debug=True` to checkpoint: these are the operations of "
                "both runs."
            ) from error

    def _unpack(self, holder: _Holder) -> Any:
        group, task = GraphExecGroup._current, current_graph_task()
        key: Any = group if group is not None else _OutsideOfBackward() if task is None else task.id
        if key not in self.counts:
            self._recompute(key)
        if key not in holder.values:
            raise self._different_number(key)
        value = holder.values[key]
        if value is None:
            overlap = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
                "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{overlap if group is not None else ''}If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once: keep what it returns in a variable."
            )
        holder.values[key] = None
        if isinstance(key, _OutsideOfBackward):
            self._forget(key)
        return value

    def _forget(self, key: Any) -> None:
        """Drop what was computed again for one reading outside of backward."""
        del self.counts[key]
        for reference in self.holders:
            holder = reference()
            if holder is not None:
                holder.values.pop(key, None)

    def _recompute(self, key: Any) -> None:
        saved = iter(self.input_node.saved_tensors if self.input_node is not None else ())
        arguments = [next(saved) if marker is _TENSOR else marker for marker in self.arguments]
        self.counts[key] = 0
        self.lines_again.clear()
        hooks = saved_tensors_hooks(unseen(lambda t: self._fill(key, t)), _same)
        log = _operation_log(self.recompute_log) if self.debug else contextlib.nullcontext()
        try:
            with _random_state(self.state), _autocast_as(self.casts), self.recompute_context, hooks, log, enable_grad():
                self.function(*arguments)
        except _StopRecomputation:
            pass
        self._compare(key)

    def _fill(self, key: Any, tensor: Any) -> Any:
        """Put what the recomputation saves into the next holder; it is kept for a backward inside of the region too."""
        value = tensor.detach() if tensor._requires_grad else tensor
        index = self.counts[key]
        self.counts[key] = index + 1
        self.lines_again.append(source_line())
        if index < len(self.holders):
            holder = self.holders[index]()
            if holder is not None:
                holder.values[key] = value
            if self.early_stop and index + 1 == len(self.holders):
                raise _StopRecomputation
        elif self.ended:
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                f"forward pass.{self._tip()}"
            )
        return value

    def _compare(self, key: Any) -> None:
        """Refuse a recomputation that saved other tensors than the original run."""
        if self.counts[key] < len(self.holders):
            raise self._different_number(key)
        different = []
        for index, reference in enumerate(self.holders if self.check else ()):
            holder = reference()
            if holder is None or holder.values.get(key) is None:
                continue
            again = _describe(holder.values[key])
            if again != holder.metadata:
                different.append(
                    f"tensor at position {index}:\nsaved metadata: {holder.metadata}\nrecomputed metadata: {again}"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                "the forward pass.\n" + "\n".join(different) + self._tip()
            )

    def _different_number(self, key: Any) -> CheckpointError:
        return CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
            f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved during "
            f"recomputation: {self.counts[key]}.{self._tip()}"
        )

    def _tip(self) -> str:
        tip = "" if self.debug else "\nPass debug=True to checkpoint to see the operations of both runs."
        return f"{self._told_parting()}{tip}"

    def _parting(self) -> tuple[int, SourceLine | None, SourceLine | None] | None:
        """The first tensor that the runs saved at different places, and these; None in place of what was not saved."""
        if None in self.lines or None in self.lines_again:
            return None  # source lines are off
        for position, (before, again) in enumerate(zip_longest(self.lines, self.lines_again)):
            if before is not None and self.caller is not None and before.code is self.caller.code:
                continue  # no line of the user's inside of the region: only who called it is known
            # The modules around are others: the second run is called by backward.
            if before is None or again is None or (before.code, before.offset) != (again.code, again.offset):
                return position, before, again
        return None

    def _told_parting(self) -> str:
        parting = self._parting()
        if parting is None:
            return ""
        before, again = ("nothing more" if line is None else f"at {line.describe()}" for line in parting[1:])
        return (
            f"\nThe runs part at the tensor at position {parting[0]}: the forward saved {before}, the recomputation "
            f"{again}. The function must do the same each time it is called."
        )


class _OutsideOfBackward:
    """The key of one reading of a saved tensor while no backward runs."""


def _same(value: Any) -> Any:
    return value


_TENSOR = object()


@contextlib.contextmanager
def _operation_log(log: list[str]) -> Iterator[None]:
    """Write down the operations of a block."""
    from pullback.modes.interception import pop_interceptor, push_interceptor

    def note(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        shapes = ", ".join(f"{type(a).__name__}{list(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in args)
        log.append(f"{getattr(function, '__name__', function)}({shapes})")
        return NotImplemented

    push_interceptor(note)
    try:
        yield
    finally:
        pop_interceptor()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function` without keeping what it saves for backward; backward computes that again.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([5.4366, 5.4366])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warn_user(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. The default is the reentrant "
            "variant for now; use_reentrant=False is recommended."
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if switches.interceptors and _runs_under_vmap():
        return function(*args, **kwargs)  # backward comes after vmap, when no example can be computed again
    early = early_stop if _Settings.early_stop is None else _Settings.early_stop
    debugging = debug if _Settings.debug is None else _Settings.debug
    return _checkpoint_by_hooks(
        function, args, kwargs, context_fn, preserve, determinism_check == "default", early, debugging
    )


def _runs_under_vmap() -> bool:
    from pullback.func.vmap_level import VmapLevel  # lazy: above this layer

    return any(isinstance(interceptor, VmapLevel) for interceptor in switches.interceptors)


def _checkpoint_by_hooks(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context_fn: Any, preserve: bool,
    check: bool,
    early_stop: bool, debug: bool,
) -> Any:  # fmt: skip
    names = list(kwargs)
    flat = [*args, *kwargs.values()]

    def run(*values: Any) -> Any:
        return function(*values[: len(args)], **dict(zip(names, values[len(args) :], strict=True)))

    forward_context, recompute_context = context_fn()
    frame = _Frame(run, early_stop, check, recompute_context, debug)
    frame.state = _random_states() if preserve else None
    frame.arguments = [_TENSOR if isinstance(a, Tensor) else a for a in flat]
    tensors = [a for a in flat if isinstance(a, Tensor)]
    from pullback.creation import empty

    frame.input_node = _SaveInputs.apply(empty(0, requires_grad=True), *tensors).grad_fn if tensors else None
    log = _operation_log(frame.original_log) if debug else contextlib.nullcontext()
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context, log:
        result = run(*flat)
    frame.ended = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a sequence of modules in `segments` checkpointed pieces, the last one without a checkpoint."""
    if use_reentrant is None:
        warn_user(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def piece(start: int, end: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for module in modules[start : end + 1]:
                value = module(value)
            return value

        return forward

    size = len(modules) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(piece(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return piece(end + 1, len(modules) - 1)(input)
