"""All thread-local switches in one object, and the process-wide count that lets the common case skip it.

# Note [Switches]
Reading a `threading.local` attribute costs as much as a quarter of a small operation. So a generated function first
reads `process.changed`, a plain attribute: zero means that every thread has every switch at its default (recording on,
no hooks, no dual level, nothing intercepting), and the fast road needs to look no further. Any thread that leaves the
defaults adds one while it is away. The price is only paid by others' speed, never by correctness: with
`process.changed` non-zero each thread reads its own switches.
"""

from __future__ import annotations

import threading
from typing import Any


class Process:
    """Counts, for the whole process, what keeps the fast road closed."""

    changed: int = 0
    """Threads that left the defaults, plus one per Tensor subclass that overrides operations."""


process = Process()
_lock = threading.Lock()


class Switches(threading.local):
    """The switches of one thread. Write through `set_switch`, so that `process.changed` stays true."""

    records: bool = True
    """Whether operations are recorded: grad mode is on, and inference mode is not."""
    grad_mode: bool = True
    inference_mode: bool = False
    forward_grad: bool = True
    anomaly_mode: bool = False
    anomaly_check_nan: bool = True
    dual_level: int = -1
    dual_ids: tuple[int, ...] = ()
    current_node: Any = None
    saved_tensor_hooks: tuple[tuple[Any, Any], ...] = ()
    saved_tensor_hooks_disabled: str | None = None
    interceptors: tuple[Any, ...] = ()
    layout_policy: bool = True
    multithreading: bool = True
    away: bool = False


switches = Switches()

_DEFAULTS = {
    "grad_mode": True,
    "inference_mode": False,
    "forward_grad": True,
    "anomaly_mode": False,
    "dual_level": -1,
    "saved_tensor_hooks": (),
    "interceptors": (),
}


def set_switch(name: str, value: Any) -> Any:
    """Set one switch of this thread and return its former value."""
    former = getattr(switches, name)
    setattr(switches, name, value)
    switches.records = switches.grad_mode and not switches.inference_mode
    away = any(getattr(switches, key) != default for key, default in _DEFAULTS.items())
    if away is not switches.away:
        switches.away = away
        with _lock:
            process.changed += 1 if away else -1
    return former


def reset_switches() -> None:
    """Put every switch of this thread back to its default, as before a thread ends."""
    for name, default in _DEFAULTS.items():
        set_switch(name, default)


def close_fast_road() -> None:
    """Make every thread look at its switches from now on (a Tensor subclass overrides operations)."""
    with _lock:
        process.changed += 1
