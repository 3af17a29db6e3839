"""Where a node was recorded: the user's source line, kept as a code object and an offset, read only when it is shown.

# Note [Source lines]
`autograd.graph.record_source_lines()` is a switch like others (Note [Switches]): off it costs nothing; on, recording a
node walks the frames up to the first one outside of the package. Pictures of the graph show the lines, and an error
that a node raises in backward names the line that recorded it.
"""

from __future__ import annotations

import linecache
import os
import sys
from itertools import islice
from types import CodeType, FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pullback.graph.node import Node

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class SourceLine:
    """A place in a program: the code that ran, and the instruction that it was at."""

    __slots__ = ("code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset

    @property
    def place(self) -> tuple[str, int]:
        """The file and the number of the line."""
        position = next(islice(self.code.co_positions(), self.offset // 2, None), None)
        line = position[0] if position is not None else None
        return self.code.co_filename, self.code.co_firstlineno if line is None else line

    def describe(self) -> str:
        """The place with the line's text where that can be found."""
        file, line = self.place
        text = linecache.getline(file, line).strip()
        return f"{file}:{line}" + (f" ({text})" if text else "")


def calling_line() -> SourceLine | None:
    """The innermost place outside of this package that led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return SourceLine(code, frame.f_lasti)
        frame = frame.f_back
    return None


def place_of(node: Node | None) -> tuple[str, int] | None:
    """The file and line that recorded the node, if its recording was asked to remember it."""
    extra = None if node is None else node.extra
    if extra is None:
        return None
    if extra.source is not None:
        return extra.source.place
    return extra.place


def note_source_line(error: BaseException, node: Node) -> None:
    """Add to an error that the node raised where the node was recorded."""
    extra = node.extra
    if extra is not None and extra.source is not None:
        error.add_note(f"{node.name()} was recorded at {extra.source.describe()}")
