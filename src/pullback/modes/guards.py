"""Blocks that end as they should, wherever they are interrupted.

# Note [Guards]
Python looks for signals where a function begins, after a call and where a loop goes back, so Ctrl-C may arrive in the
very function that puts a switch back: at the first instruction of an `__exit__`, or between a switch that is set and the
`try` that would put it back. What changes switches for a while therefore keeps to three rules:

- it puts back by absolute values, so that doing it twice, or once more further out, does no harm;
- `__exit__`, or the function that a `finally` calls, is `guarded`: it runs a second time where the first was interrupted;
- `__enter__` is `undone_by` the `__exit__`; a `try` begins before the switch is set.

A guard is an object of the compiled kernels, since every function of Python begins with an instruction that may be
interrupted. Without these kernels the functions are as they are, and such an interrupt may leave a mode on.
`python -m tests.faults` interrupts the entry points everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.native import extension

_Function = TypeVar("_Function", bound=Callable[..., Any])


def guarded(function: _Function) -> _Function:
    """Decorate a function that may run twice: where it is interrupted, it runs again."""
    return function if extension is None else extension.new_guard(function, function)


def undone_by(undo: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Decorate a function that `undo`, called with the same arguments, undoes where it is interrupted."""

    def decorate(function: _Function) -> _Function:
        return function if extension is None else extension.new_guard(function, undo)

    return decorate
