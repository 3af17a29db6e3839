"""Where a node was recorded: the user's source line and the module around.

# Note [Source lines]
Every node, in-place write, detach and freeing can say the line of the user's program that did it: the innermost frame
outside of this package and of Python's own library. What is kept is a `SourceLine`: the frame's code object, the offset
of its instruction and the path of the nn.Module around. The same place gives the same object again, so a loop makes none.
Numbers and texts of lines are looked up when they are shown.

Where the extension module was built, native/source_lines.c finds the frame without making frame objects: 10 to 40 ns for
a node, 1 to 4 % of a small operation. So lines are on by default there, in the versions of Python whose frames it knows how
to read (3.11 to 3.13). Elsewhere the walk takes 10 % and more, and lines are off until somebody asks.
`autograd.graph.set_source_lines` turns them on and off for the process, `record_source_lines` for a block and thread.

A library that stands between its users and pullback asks to be passed over by a name in its modules:

    __pullback_hidden__ = True

For code that shows lines: `source_line_of(node)`, `module_path_of(node)`, `source_line()` for the line that runs now,
`VersionCounter.lines` for the last in-place writes, newest last.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pullback.errors import GraphFreedError, graph_freed
from pullback.modes.source_lines import (
    CHEAP,
    HIDDEN,
    PACKAGE,
    WRITES_KEPT,
    ModulePath,
    SourceLine,
    calling_line,
    source_line,
    source_lines_wanted,
)

if TYPE_CHECKING:
    from pullback.graph.node import Node

__all__ = [
    "CHEAP", "HIDDEN", "PACKAGE", "WRITES_KEPT", "ModulePath", "Pass", "SourceLine", "calling_line", "module_path_of",
    "note_source_line", "place_of", "source_line", "source_line_of", "source_line_of_hook",
    "source_lines_wanted",
]  # fmt: skip


class Pass:
    """A backward pass as the nodes that it freed know it: the line that called it. See Note [Leak sentinel]."""

    __slots__ = ("__weakref__", "line")

    def __init__(self, line: SourceLine) -> None:
        self.line = line


def source_line_of(node: Any) -> SourceLine | None:
    """The line that recorded a node: `.place` is (file, line), `.text` the line itself, `.describe()` both."""
    line: SourceLine | None = getattr(node, "source", None)
    return line


def source_line_of_hook(hook: Any) -> SourceLine | None:
    """Find where the function of a hook is defined."""
    code = getattr(hook, "__code__", None) or getattr(getattr(hook, "__func__", None), "__code__", None)
    return None if code is None else SourceLine(code, -1)


def module_path_of(node: Any) -> str | None:
    """The path of the nn.Module in whose call a node was recorded; "" for the outermost module, None outside of any."""
    line = source_line_of(node)
    return None if line is None or line.module is None else line.module.describe()


def place_of(node: Node | None) -> tuple[str, int] | None:
    """The file and line that recorded the node, where they are known."""
    if node is None:
        return None
    extra = node.extra
    if extra is not None and extra.place is not None:
        return extra.place
    line = source_line_of(node)
    return None if line is None else line.place


def freed(node: Any) -> GraphFreedError:
    """The error of a node whose saved values are gone: where it was recorded, and which backward freed them."""
    line, by = source_line_of(node), getattr(node, "freed_by", None)
    places = "" if line is None else f" It was recorded at {line.describe_fully()}"
    if by is not None:
        places += f"{',' if places else ' It was'} freed by the backward at {by.line.describe()}"
    now = source_line()
    in_loop = by is not None and now is not None and (now.code, now.offset) == (by.line.code, by.line.offset)
    return graph_freed(node.name(), places and f"{places}.", in_loop=in_loop)


def modification_places(counter: Any, since: int, node: Any) -> str:
    """The lines that modified a saved tensor after version `since`, and the line of the operation that had saved it."""
    lines = getattr(counter, "lines", None)
    count = int(counter.value) - int(since)
    if not lines or count < 1:
        return ""
    known = lines[-count:]
    text = f"it was modified after it was saved, at {'; at '.join(_described(known))}"
    if len(known) < count:
        text += f"; and by {count - len(known)} earlier writes"
    line = source_line_of(node)
    if line is not None:
        text += f". {node.name()} had saved it at {line.describe_fully()}"
    return f"{text}. Use the out-of-place form there, or clone() the tensor before it is modified."


def _described(lines: list[SourceLine]) -> list[str]:
    """Describe each line once, in the order of its first write, with the number of its writes."""
    counts = Counter(line.describe_fully() for line in lines)
    return [f"{place}, {count} times" if count > 1 else place for place, count in counts.items()]


def note_source_line(error: BaseException, node: Node) -> None:
    """Add to an error that the node raised where the node was recorded, unless the error says it."""
    line = source_line_of(node)
    if line is not None and line.describe() not in str(error):
        backward = getattr(getattr(node, "_forward_cls", None), "backward", None)
        code = getattr(backward, "__code__", None)
        error.add_note(f"{node.name()} was recorded at {line.describe_fully()}")
        if code is not None:
            error.add_note(f"Its backward() stands at {code.co_filename}:{code.co_firstlineno}")
