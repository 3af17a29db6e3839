"""The leak sentinel: notices when the graphs of many past passes are still held, as `total += loss` does.

# Note [Leak sentinel]
Every pass that frees its graph leaves in each node it freed the same small object, a `Pass`; the object dies with the last
of these nodes. So a weak reference to it tells whether anything of that pass is still held. When the last `LEAKED_PASSES`
passes of a thread all are, and each was recorded after the pass before it had run, a warning names the line that holds them,
once per process: only then the graph is searched, after garbage was collected (a caught exception may hold a graph in a
cycle for a while; that is looked at less and less often). A pass pays half a microsecond. A loop over losses that were all
recorded before is not a leak, nor is a truncated recurrent network, which detaches its state. Passes are noted in C
(native/backward_passes.c): without the extension module nothing is noticed.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pullback.graph.edge import Edge
from pullback.graph.living_objects import living
from pullback.graph.node import Node
from pullback.graph.source_lines import Pass, SourceLine, source_line_of
from pullback.modes.source_lines import notes, source_line
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

LEAKED_PASSES = 16


class Sentinel:
    """Whether the warning was given, and how often it was about to be without a reason."""

    warned = False
    suspicions = 0
    next_look = 1


def _begin_pass(edges: Sequence[Edge], counts: bool) -> Pass | None:
    line = source_line()
    return None if line is None else Pass(line)


def _leaked(marks: tuple[weakref.ref[Pass], ...]) -> None:
    """All of these passes are still held, perhaps by garbage alone."""
    Sentinel.suspicions += 1
    if Sentinel.warned or Sentinel.suspicions < Sentinel.next_look:
        return
    gc.collect()
    held = {mark() for mark in marks}
    if None in held:
        Sentinel.next_look = 2 * Sentinel.suspicions
        return
    Sentinel.warned = True
    _warn(held)


def _bound_begin_pass() -> Any:
    """The function of native/backward_passes.c; None where it was not built."""
    if not hasattr(notes, "bind_pass"):
        return None
    kept = notes.bind_pass(Pass, _leaked)
    assert kept == LEAKED_PASSES
    return notes.begin_pass


begin_pass: Callable[[Sequence[Edge], bool], Pass | None] = _bound_begin_pass() or _begin_pass
"""The mark for the nodes that a pass frees; warns where the marks of many passes are alive.

A pass that does not count keeps its graph, or runs inside of another.
"""


def _warn(passes: set[Any]) -> None:
    line, holder = _holding_line(passes)
    where = "" if line is None else f", held by {holder} at {line.describe()}"
    warn_user(
        f"The graphs of the last {len(passes)} backward passes are still in memory{where}: it grows with every pass. Keep "
        "numbers, with loss.item(), or values without history, with loss.detach(); "
        "autograd.graph.release(tensor) frees a graph that is held already."
    )


def _holding_line(passes: set[Any]) -> tuple[SourceLine | None, str]:
    """The newest operation that leads from outside into the freed graphs; else a tensor that does."""
    nodes = [node for node in living(Node) if _freed_by(node) is None]
    chain = [node for node in nodes if any(e is not None and _freed_by(e[0]) in passes for e in node.next_edges)]
    if chain:
        newest = max(chain, key=lambda node: node.sequence_nr)
        return source_line_of(newest), newest.name()
    held = [tensor._edge[0] for tensor in living(Tensor) if tensor._edge is not None]
    held = [node for node in held if _freed_by(node) in passes]
    if not held:
        return None, ""
    newest = max(held, key=lambda node: node.sequence_nr)
    return source_line_of(newest), "tensors made"


def _freed_by(node: Node) -> Pass | None:
    return getattr(node, "freed_by", None)
