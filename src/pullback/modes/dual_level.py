"""The open forward-mode levels of this thread.

Each level has a process-wide id of its own, under which tensors keep their tangents: when a level is closed its tangents
are unreachable, without anybody having to find the tensors.
"""

from __future__ import annotations

import itertools

from pullback.modes.switches import process, set_switch, switches

_next_id = itertools.count(1).__next__


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
    try:
        switches.dual_ids = (*switches.dual_ids, _next_id())
        set_switch("dual_level", level)
    except BaseException:
        set_switch("dual_level", level - 1)
        switches.dual_ids = switches.dual_ids[:level]
        raise
    return level


def close_dual_level(level: int) -> None:
    """Close the level that was opened last."""
    if level != switches.dual_level or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    switches.dual_ids = switches.dual_ids[:level]
    set_switch("dual_level", level - 1)
