"""The leak sentinel: notices when the graphs of many past passes are still held, as `total += loss` does.

# Note [Leak sentinel]
Every pass that frees its graph leaves in each node it freed the same small object, a `Pass`; the object dies with the last
of these nodes. So a weak reference to it tells whether anything of that pass is still held. When the last `LEAKED_PASSES`
passes of a thread all are, and each was recorded after the pass before it had run, a warning names the line that holds them,
once per process: only then the graph is searched. A pass pays less than a microsecond. A loop over losses that were all
recorded before is no leak, nor is a truncated recurrent network, which detaches its state. Numbers of nodes are read in C:
without the extension module nothing is noticed.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from pullback.graph.edge import Edge
from pullback.graph.living_objects import living
from pullback.graph.node import FIRST, Node
from pullback.graph.source_lines import Pass, SourceLine, source_line_of
from pullback.modes.source_lines import notes, recorded_nodes, source_line
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

LEAKED_PASSES = 16


class _Recent(threading.local):
    """The last passes of a thread that freed their graphs, oldest first."""

    def __init__(self) -> None:
        self.passes: deque[weakref.ref[Pass]] = deque(maxlen=LEAKED_PASSES)
        self.recorded = -1


class Sentinel:
    """Whether the warning was given."""

    warned = False


_recent = _Recent()


def begin_pass(edges: Sequence[Edge], *, counts: bool) -> Pass | None:
    """The mark for the nodes that a pass frees; warns where the marks of many passes are alive.

    A pass that keeps its graph, or runs inside of another, does not count.
    """
    line = source_line()
    if line is None or not counts or not edges or notes is None:
        return None if line is None else Pass(line)
    begun = Pass(line)
    if Sentinel.warned:
        return begun
    state = _recent.__dict__  # one look-up of the thread's own dictionary instead of one per attribute
    passes, root = state["passes"], edges[0][0].sequence_nr
    if root == FIRST or root < state["recorded"]:
        return begun  # recorded before the last pass ran: one of several losses of one forward
    if len(passes) == LEAKED_PASSES and passes[0]() is not None and all(mark() is not None for mark in passes):
        Sentinel.warned = True
        _warn({mark() for mark in passes})
    passes.append(weakref.ref(begun))
    state["recorded"] = recorded_nodes()
    return begun


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
