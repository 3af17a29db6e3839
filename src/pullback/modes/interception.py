"""The one place where an operation can be taken over: vmap, autocast, tracing, overriding subclasses, the profiler.

# Note [Interception]
A generated function calls `intercept` before it computes anything, and only when this thread has interceptors or some
Tensor subclass overrides operations. An interceptor is called with (function, args, kwargs), answers NotImplemented to
let the operation go on, and is itself switched off while it runs, so that what it calls is not intercepted again by it.
Functions that are built of operations are not offered: interceptors see their parts. Only autocast treats some of them as
one (`cross_entropy` is float32 from its softmax on): those are marked `taken_whole`, and offered to interceptors that say
so (`takes_whole`), which are switched off alone while they run.

Dispatch modes and `__torch_dispatch__` come last, below autograd: see Note [Dispatch] in pullback/dispatch. While a mode
is on, `dispatch_entry` stands at the bottom of the thread's interceptors, so that operations look at them at all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

from pullback.modes.switches import close_fast_road, process, set_interceptors, set_switch, switches

Interceptor = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Overrides:
    """Tensor subclasses that override operations, and the function that asks them."""

    def __init__(self) -> None:
        self.types: set[type] = set()
        self.whole: set[type] = set()
        """Classes that are asked about what their users call, not about the operations that it consists of."""
        self.take_over: Callable[[type], None] | None = None
        self.ask: Interceptor | None = None
        self.ask_foreign: Interceptor | None = None
        self.ask_exactly: Interceptor | None = None


overrides = Overrides()


class Dispatch:
    """Tensor subclasses with a `__torch_dispatch__`, and what pullback.dispatch does for them and for dispatch modes."""

    def __init__(self) -> None:
        self.types: set[type] = set()
        self.is_recorded: bool = False
        """Whether some operation on an instance of such a class was recorded: its node is marked."""
        self.ask: Interceptor | None = None
        self.pull_back: Callable[..., Any] | None = None
        self.accumulate: Callable[..., Any] | None = None


dispatch = Dispatch()


def dispatch_entry(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Stands for all dispatch modes among the interceptors; `intercept` knows it and asks them last."""
    return NotImplemented


def register_dispatching_type(cls: type) -> None:
    """Ask `cls.__torch_dispatch__` about every ATen operation on its instances."""
    _load_dispatch()
    dispatch.types.add(cls)
    register_overriding_type(cls)


def push_dispatch_mode(mode: Any) -> None:
    """Show the ATen operations of this thread to `mode` first."""
    _load_dispatch()
    set_dispatch_modes((*switches.dispatch_modes, mode))


def set_dispatch_modes(modes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Set the dispatch modes of this thread and return the former ones."""
    former: tuple[Any, ...] = set_switch("dispatch_modes", modes)
    stack = switches.interceptors
    if bool(modes) != (bool(stack) and stack[0] is dispatch_entry):
        set_switch("interceptors", (dispatch_entry, *stack) if modes else stack[1:])
    return former


def is_dispatching() -> bool:
    """Whether somebody sees the ATen operations of this thread: a mode, or some subclass."""
    return bool(dispatch.types or switches.dispatch_modes)


def is_backward_dispatched(nodes: Iterable[Any]) -> bool:
    """Whether somebody sees what a backward pass over these nodes computes: a mode, or a class that they worked on."""
    if switches.dispatch_modes:
        return True
    return dispatch.is_recorded and any(node.extra is not None and node.extra.is_dispatched for node in nodes)


def dispatch_operation(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Any:
    """Show a call to dispatch modes and dispatching classes alone; NotImplemented if nobody is there to see it."""
    return NotImplemented if dispatch.ask is None else dispatch.ask(function, args, kwargs or {})


def _load_dispatch() -> None:
    if dispatch.ask is None:
        import_module("pullback.dispatch")  # it sets the functions of `dispatch`


def register_overriding_type(cls: type) -> None:
    """Ask `cls` about every operation on its instances."""
    overrides.types.add(cls)
    close_fast_road()
    if overrides.take_over is not None:
        overrides.take_over(cls)


def set_override_handler(
    ask: Interceptor, ask_foreign: Interceptor, ask_exactly: Interceptor, take_over: Callable[[type], None]
) -> None:
    """Set the functions that call `__torch_function__`, which see operations, public functions and exact arguments,

    and the one that prepares a class which overrides operations.
    """
    overrides.take_over = take_over
    overrides.ask = ask
    overrides.ask_foreign = ask_foreign
    overrides.ask_exactly = ask_exactly


def has_overrides() -> bool:
    """Whether some Tensor subclass overrides operations."""
    return bool(overrides.types)


def _ask(
    interceptor: Interceptor,
    others: tuple[Interceptor, ...],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call one interceptor while only `others` are there."""
    stack = set_interceptors(others)
    try:
        return interceptor(function, args, kwargs)
    finally:
        set_interceptors(stack)


def intercept(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Offer the call to the innermost interceptor, then to overriding argument types; NotImplemented if none takes it."""
    kwargs = kwargs or {}
    stack = switches.interceptors
    passed: tuple[Interceptor, ...] = ()
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth] is dispatch_entry:
            break
        result = _ask(stack[depth], stack[:depth] + passed, function, args, kwargs)
        if result is not NotImplemented:
            return result
        if switches.dual_level >= 0 and getattr(stack[depth], "carries_tangents", False):
            passed = (stack[depth], *passed)
    if overrides.types and overrides.ask is not None:
        result = overrides.ask(function, args, kwargs)
        if result is not NotImplemented:
            return result
    if dispatch.ask is not None:
        return dispatch.ask(function, args, kwargs)
    return NotImplemented


def intercept_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer a function that is built of operations to those interceptors that treat it as one."""
    stack = switches.interceptors
    for depth in range(len(stack) - 1, -1, -1):
        if not getattr(stack[depth], "takes_whole", False):
            continue
        result = _ask(stack[depth], (*stack[:depth], *stack[depth + 1 :]), function, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def push_interceptor(interceptor: Interceptor) -> None:
    """Offer operations of this thread to `interceptor` first."""
    set_interceptors((*switches.interceptors, interceptor))


def pop_interceptor() -> None:
    """Drop the innermost interceptor."""
    set_interceptors(switches.interceptors[:-1])


def remove_interceptor(interceptor: Interceptor) -> None:
    """Drop one interceptor, wherever it is; a second call does no harm. See Note [Guards]."""
    set_interceptors(tuple([other for other in switches.interceptors if other != interceptor]))


Function = TypeVar("Function", bound=Callable[..., Any])


def interceptable(function: Function) -> Function:
    """Decorate a function that reads or makes arrays itself, so that interceptors are offered it as an operation is."""
    return _offered(function, intercept)


def structured(structure: str) -> Callable[[Function], Function]:
    """Declare the structure of a function that reads arrays itself, as declarations of operations do."""

    def mark(function: Function) -> Function:
        function.structure = structure  # type: ignore[attr-defined]  # what vmap looks for
        return function

    return mark


def draws(source: str) -> Callable[[Function], Function]:
    """Mark a function that draws random numbers, so that vmap asks how each example gets its own.

    `source` says what decides about the shape of the draw: a "size", a "permutation"'s length, the shape of the "input", the
    elements of "parameters", the "rows" of probabilities, the tensor to "fill", the input of dropout for its "noise" and
    "feature noise"; "parts" stands for a function that is composed of draws, "slopes" for rrelu.
    """

    def mark(function: Function) -> Function:
        function.draws = source  # type: ignore[attr-defined]  # what vmap looks for
        return function

    return mark


def overridable(function: Function) -> Function:
    """As `interceptable`, for a public function of tensors: types that override operations are asked as well."""
    return _offered(function, intercept, asks_types=True)


def taken_whole(function: Function) -> Function:
    """Decorate a function that is built of operations and that some interceptors treat as one."""
    return _offered(function, intercept_whole)


def _offered(function: Function, offer: Callable[..., Any], asks_types: bool = False) -> Function:
    @functools.wraps(function)
    def offered(*args: Any, **kwargs: Any) -> Any:
        if process.changed:
            taken: Any = NotImplemented
            if switches.interceptors or (asks_types and overrides.types):
                taken = offer(offered, args, kwargs)
            elif dispatch.types and dispatch.ask is not None and offer is intercept:
                taken = dispatch.ask(offered, args, kwargs)
            if taken is not NotImplemented:
                return taken
        return function(*args, **kwargs)

    return offered  # type: ignore[return-value]  # the same signature
