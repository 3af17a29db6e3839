"""What a node remembers under anomaly mode: where it was recorded, and which node's backward recorded it.

Both stand in the node's `metadata`, as in PyTorch: `traceback_`, a list of formatted frames, and `parent_`, the node.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pullback.modes.user_warnings import warn_user

if TYPE_CHECKING:
    import traceback

    from pullback.graph.node import Node

TRACEBACK, PARENT = "traceback_", "parent_"


def remember_recording(node: Node, parent: Node | None) -> None:
    """Note in a new node the stack that records it and, in a differentiable backward, the node that is evaluated."""
    import traceback  # only anomaly mode pays for it

    frames = _user_frames()
    node.metadata[TRACEBACK] = traceback.format_list(frames)
    if frames:
        node.require_extra().place = (frames[-1].filename, frames[-1].lineno or 0)
    if parent is not None:
        node.metadata[PARENT] = parent


def report_anomaly(node: Node) -> None:
    """Warn with the forward traceback of a node that failed, then with those of the nodes that induced it."""
    known = _traceback_of(node)
    if not known:
        _warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
        return
    _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{known}")
    parent: Node | None = node.metadata.get(PARENT)
    while parent is not None:
        known = _traceback_of(parent)
        where = (
            f"Traceback of forward call that induced the previous calculation:\n{known}"
            if known
            else "No forward pass information available. Enable detect anomaly during forward pass for more."
        )
        _warn(f"\n\nPrevious calculation was induced by {parent.name()}. {where}")
        parent = parent.metadata.get(PARENT)


def _traceback_of(node: Node) -> str:
    return "".join(node.metadata.get(TRACEBACK, ()))


def _warn(message: str) -> None:
    """Warn, or write where warnings are errors: the report must not replace the error that it is about."""
    try:
        warn_user(message)
    except UserWarning:
        print(f"UserWarning: {message}", file=sys.stderr)


def _user_frames() -> list[traceback.FrameSummary]:
    """The stack without this package's own frames at its end, and without those of `pullback run` at its start."""
    import traceback

    frames = list(traceback.extract_stack())
    while frames and _is_ours(frames[-1]):
        frames.pop()
    starts = [index for index, frame in enumerate(frames) if _is_ours(frame) and "__main__" in frame.filename]
    return frames[starts[-1] + 1 :] if starts else frames


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return "/pullback/" in frame.filename.replace("\\", "/")
