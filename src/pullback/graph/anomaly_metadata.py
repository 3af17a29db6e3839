"""What a node remembers under anomaly mode: where it was recorded, and which node's backward recorded it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import traceback

    from pullback.graph.node import Node


class AnomalyMetadata:
    """The forward traceback of a node and, for a node recorded by a differentiable backward, its parent node."""

    __slots__ = ("parent", "place", "traceback_")

    def __init__(self, parent: Node | None) -> None:
        import traceback  # only anomaly mode pays for it

        frames = _user_frames()
        self.traceback_ = "".join(traceback.format_list(frames))
        self.place: tuple[str, int] | None = (frames[-1].filename, frames[-1].lineno or 0) if frames else None
        """The file and line of the user's that recorded the node."""
        self.parent = parent

    def report(self, node_name: str) -> None:
        """Warn with the forward traceback, then with the chain of parents."""
        warnings.warn(
            f"Error detected in {node_name}. Traceback of forward call that caused the error:\n{self.traceback_}",
            UserWarning,
            stacklevel=2,
        )
        parent = self.parent
        while parent is not None:
            metadata = parent.anomaly_metadata
            known = metadata.traceback_ if metadata is not None else ""
            where = (
                f"Traceback of forward call that induced the previous calculation:\n{known}"
                if known
                else "No forward pass information available. Enable detect anomaly during forward pass for more."
            )
            warnings.warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. {where}", UserWarning, stacklevel=2
            )
            parent = metadata.parent if metadata is not None else None


def _user_frames() -> list[traceback.FrameSummary]:
    """The stack without this package's own frames at its end."""
    import traceback

    frames = traceback.extract_stack()
    while frames and "/pullback/" in frames[-1].filename.replace("\\", "/"):
        frames.pop()
    return list(frames)
