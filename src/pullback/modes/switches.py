"""All thread-local switches in one object, and the process-wide count that lets the common case skip it.

# Note [Switches]
Reading a `threading.local` attribute costs as much as a quarter of a small operation. So a generated function first
reads `process.diverted`, a plain attribute: zero means that nothing intercepts in any thread, and the fast path needs to
look no further. At its end it reads `process.finishing`: zero means that no thread has a switch on that asks something of
results (inference mode, hooks, a dual level, a transform). Where it would record, it reads `process.changed`, which counts
every switch. Any thread that leaves the defaults adds one while it is away; one that ends while it is away takes it back
(`_Absence`). Other threads pay in speed, never in correctness: with a count above zero each thread reads its own switches.
"""

from __future__ import annotations

import threading
from typing import Any

from pullback.modes.guards import guarded, undone_by
from pullback.native.locks import process_lock


class Process:
    """Counts, for the whole process, what keeps the fast road closed."""

    changed: int = 0
    """Threads that left the defaults, plus one per Tensor subclass that overrides operations."""
    diverted: int = 0
    """Threads whose operations may be taken over, plus one per such subclass."""
    finishing: int = 0
    """Threads that ask something of each new result: see `finish` in pullback/recording/slow_road.py."""
    modes: int = 0
    """Threads inside of a TorchFunctionMode, which `diverted` counts once more. See Note [Function modes]."""
    passes: int = 0
    """Backward passes that run, each counted once with those inside of it."""
    streams: bool = False
    """Whether some thread chose a stream of a device, ever. See Note [Streams]."""
    log_nodes: bool = False
    """Whether backward logs each node it runs; `_logging.set_logs` sets it."""


process = Process()
# As attributes of the object itself they are found in a third of the time.
process.changed = process.diverted = process.finishing = process.modes = process.passes = 0
_lock = process_lock()


class _Absence:
    """One thread's part in the counts of `process`. It dies with the thread, even if that ends inside of a mode."""

    __slots__ = ("changed", "diverted", "finishing", "modes")

    def __init__(self) -> None:
        self.changed = self.diverted = self.finishing = self.modes = False

    @guarded
    def count(self, changed: bool, diverted: bool, finishing: bool, modes: bool) -> None:
        """Set which of the counts include this thread."""
        with _lock:
            process.changed += changed - self.changed
            process.diverted += diverted - self.diverted + modes - self.modes
            process.finishing += finishing - self.finishing
            process.modes += modes - self.modes
            self.changed, self.diverted, self.finishing, self.modes = changed, diverted, finishing, modes

    def __del__(self) -> None:
        # After a fork, a thread that does not exist any more may hold the lock.
        if self.changed and _lock is not None and _lock.acquire(timeout=1):
            process.changed -= 1
            process.diverted -= self.diverted + self.modes
            process.modes -= self.modes
            process.finishing -= self.finishing
            _lock.release()


class Switches(threading.local):
    """The switches of one thread. Write through `set_switch`, so that `process.changed` stays true."""

    def __init__(self) -> None:
        self.grad_mode: bool = True
        self.inference_mode: bool = False
        self.records: bool = True
        """Whether operations are recorded: grad mode is on, and inference mode is not."""
        self.plain: bool = True
        """Whether at most recording is switched off: there is no interceptor, dual level, transform or function mode."""
        self.forward_grad: bool = True
        self.anomaly_mode: bool = False
        self.dual_level: int = -1
        self.saved_tensor_hooks: tuple[tuple[Any, Any], ...] = ()
        self.interceptors: tuple[Any, ...] = ()
        self.transform: Any = None
        """The innermost differentiating transform of pullback.func that runs. See Note [Captured tensors]."""
        self.dispatch_modes: tuple[Any, ...] = ()
        """The TorchDispatchModes around, innermost last. See Note [Dispatch]."""
        self.function_modes: tuple[Any, ...] = ()
        """The TorchFunctionModes around, innermost last. See Note [Function modes]."""
        self.below_autograd: bool = False
        """Whether a dispatch mode or a `__torch_dispatch__` runs: nothing is recorded, whatever grad mode says."""
        self.node_observer: Any = None
        """The innermost NodeObserver, which sees the nodes that backward runs."""
        self.new_device: Any = None
        """The device on which new tensors are made, where that is not the CPU."""
        self.stream: Any = None
        """The stream that work on a device goes to, where that is not the default one. See Note [Streams]."""
        # Settings that no generated function reads: they may be assigned directly.
        self.anomaly_check_nan: bool = True
        self.dual_ids: tuple[int, ...] = ()
        self.current_node: Any = None
        self.saved_tensor_hooks_disabled: str | None = None
        self.overrides_disabled: bool = False
        self.transforms: int = 0
        """How many transforms of pullback.func run: inside of them no leaf may be made, and backward may not be called."""
        self.saves_inference_tensors: bool = False
        """Whether inference tensors may be saved: inside of a transform nobody else modifies them."""
        self.dual_depths: dict[int, int] = {}
        """The place of each forward-mode level among the running transforms of pullback.func."""
        self.devices: tuple[Any, ...] = ()
        """The devices of the `with` blocks around, innermost last, each with what its end puts back."""
        self.layout_policy: bool = True
        self.multithreading: bool = True
        self.changed_switches: int = 0
        self.finishing_switches: int = 0
        self.absence = _Absence()


switches = Switches()

SWITCH_DEFAULTS = {
    "grad_mode": True,
    "inference_mode": False,
    "forward_grad": True,
    "anomaly_mode": False,
    "dual_level": -1,
    "saved_tensor_hooks": (),
    "interceptors": (),
    "transform": None,
    "dispatch_modes": (),
    "function_modes": (),
    "below_autograd": False,
    "node_observer": None,
    "new_device": None,
    "stream": None,
}

_FINISHING = frozenset(("inference_mode", "anomaly_mode", "dual_level", "saved_tensor_hooks", "stream", "transform"))


def set_switch(name: str, value: Any) -> Any:
    """Set one switch of this thread and return its former value.

    It is set as a whole or not at all, wherever an interrupt arrives: counting comes last. See Note [Guards].
    """
    state = switches.__dict__  # one look-up of the thread's own dictionary instead of one per attribute
    former = state[name]
    if former is value:
        return former
    default = SWITCH_DEFAULTS[name]
    difference = (value != default) - (former != default)  # may be a comparison in Python: before anything is set
    state[name] = value
    if name == "grad_mode" or name == "inference_mode" or name == "below_autograd":
        state["records"] = state["grad_mode"] and not state["inference_mode"] and not state["below_autograd"]
    if name == "dual_level" or name == "interceptors" or name == "transform" or name == "function_modes":
        state["plain"] = (
            not state["interceptors"] and state["dual_level"] < 0 and state["transform"] is None
            and not state["function_modes"]
        )  # fmt: skip
    if difference:
        changed = state["changed_switches"] = state["changed_switches"] + difference
        finishing = state["finishing_switches"]
        first = 1 if difference > 0 else 0  # what a count is when the thread has just left the defaults, or come back
        counts = changed == first or name == "interceptors" or name == "function_modes"
        if name in _FINISHING:
            finishing = state["finishing_switches"] = finishing + difference
            counts = counts or finishing == first
        if counts:
            modes = state["function_modes"] != ()
            state["absence"].count(changed > 0, state["interceptors"] != (), finishing > 0, modes)
    return former


def set_interceptors(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """As `set_switch("interceptors", value)`, in a third of the steps: a vmap does it twice for each operation."""
    state = switches.__dict__
    former: tuple[Any, ...] = state["interceptors"]
    state["interceptors"] = value
    is_on = value != ()
    if is_on == (former != ()):
        return former
    state["plain"] = (
        not is_on and state["dual_level"] < 0 and state["transform"] is None and not state["function_modes"]
    )
    difference = 1 if is_on else -1
    changed = state["changed_switches"] = state["changed_switches"] + difference
    absence = state["absence"]
    absence.diverted = is_on
    with _lock:
        process.diverted += difference
        if changed == is_on:  # the thread has just left the defaults, or come back
            process.changed += difference
            absence.changed = is_on
    return former


def suspend_gradients() -> tuple[bool, bool]:
    """Switch grad mode and forward gradients off, as in a custom Function's forward, and return their former values.

    One step for both, where they are on, costs less than `set_switch` for one.
    """
    state = switches.__dict__
    former = state["grad_mode"], state["forward_grad"]
    if former != (True, True):
        set_switch("grad_mode", False)
        set_switch("forward_grad", False)
        return former
    state["grad_mode"] = state["forward_grad"] = state["records"] = False
    state["changed_switches"] += 2
    if state["changed_switches"] == 2:
        state["absence"].changed = True
        with _lock:
            process.changed += 1
    return former


@guarded
def resume_gradients(former: tuple[bool, bool]) -> None:
    """Undo `suspend_gradients`."""
    state = switches.__dict__
    if former != (True, True) or state["grad_mode"] or state["forward_grad"]:
        set_switch("grad_mode", former[0])
        set_switch("forward_grad", former[1])
        return
    state["grad_mode"] = state["forward_grad"] = True
    state["records"] = not state["inference_mode"]
    state["changed_switches"] -= 2
    if state["changed_switches"] == 0:
        state["absence"].changed = False
        with _lock:
            process.changed -= 1


def current_switches() -> dict[str, Any]:
    """Return all switches of this thread, for `set_switches` to put back."""
    state = switches.__dict__
    return {name: state[name] for name in SWITCH_DEFAULTS}


@guarded
def set_switches(values: dict[str, Any]) -> None:
    """Set all switches of this thread; `SWITCH_DEFAULTS` before a thread ends."""
    for name, value in values.items():
        set_switch(name, value)


class kept_switches:
    """Put some switches back at the end of a block, whatever ends it. See Note [Guards].

    >>> with kept_switches("grad_mode"):
    ...     _ = set_switch("grad_mode", False)
    >>> switches.grad_mode
    True
    """

    __slots__ = ("_former", "_names")

    def __init__(self, *names: str) -> None:
        self._names = names

    def __enter__(self) -> None:
        state = switches.__dict__
        self._former = [state[name] for name in self._names]

    @guarded
    def __exit__(self, *exception: object) -> None:
        state = switches.__dict__
        for name, value in zip(self._names, self._former, strict=True):
            if state[name] is value:
                continue
            if name in SWITCH_DEFAULTS:
                set_switch(name, value)
            else:
                state[name] = value


class switched:
    """Set one switch for a block, whatever ends it: `kept_switches` for one, at less cost. See Note [Guards].

    >>> with switched("grad_mode", False):
    ...     switches.grad_mode
    False
    """

    __slots__ = ("_former", "_name", "_value")

    def __init__(self, name: str, value: Any) -> None:
        self._name = name
        self._value = value

    @guarded
    def __exit__(self, *exception: object) -> None:
        set_switch(self._name, self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        self._former = switches.__dict__[self._name]
        set_switch(self._name, self._value)


class stack_block:
    """The base of blocks that put an entry on a stack of this thread. One object may be entered inside of itself."""

    _depths: tuple[int, ...] = ()
    _stack: str
    """The switch that holds the stack."""

    def _push(self, entry: Any) -> None:
        """Put an entry on the stack; to be called by `__enter__`."""
        depths, stack = self._depths, switches.__dict__[self._stack]
        try:
            self._depths = (*depths, len(stack))
            set_switch(self._stack, (*stack, entry))
        except BaseException:
            set_switch(self._stack, stack)
            self._depths = depths
            raise

    @guarded
    def __exit__(self, *exception: object) -> None:
        depths = self._depths
        set_switch(self._stack, switches.__dict__[self._stack][: depths[-1]])
        self._depths = depths[:-1]  # the last step: interrupted before it, the block is left again


def close_fast_road() -> None:
    """Make every thread look at its switches from now on (a Tensor subclass overrides operations)."""
    with _lock:
        process.changed += 1
        process.diverted += 1
