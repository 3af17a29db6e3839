"""The open forward-mode level of this thread, and what must be undone when it closes."""

from __future__ import annotations

import weakref
from typing import Any

from pullback.modes.switches import process, set_switch, switches


class _Duals:
    """Tensors that carry a tangent at the open level; weak, so that a dual can die before its level."""

    tensors: weakref.WeakSet[Any] = weakref.WeakSet()


def current_dual_level() -> int:
    """The number of the open level, -1 without one."""
    return switches.dual_level if process.changed else -1


def open_dual_level(*, nested: bool = False) -> int:
    """Open a level and return its number."""
    if switches.dual_level >= 0 and not nested:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: a dual level is already open. "
            "Use pullback.func.jvp, which nests."
        )
    level = switches.dual_level + 1
    set_switch("dual_level", level)
    return level


def close_dual_level(level: int) -> None:
    """Close the level that was opened last."""
    if level != switches.dual_level or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. "
            "This is not supported."
        )
    set_switch("dual_level", level - 1)


def tangents_flow() -> bool:
    """Whether operations of this thread carry tangents along."""
    return switches.dual_level >= 0 and switches.forward_grad
