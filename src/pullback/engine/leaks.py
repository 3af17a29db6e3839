"""The leak sentinel: notices when the graphs of many past passes are still held, as `total += loss` does.

# Note [Leak sentinel]
Every pass that frees its graph leaves in each node it freed the same small object, a `Pass`; the object dies with the last
of these nodes. So a weak reference to it tells whether anything of that pass is still held. When the last `LEAKED_PASSES`
passes of a thread all are, and each was recorded after the pass before it had run, a warning names the line that holds them,
once per process: only then the graph is searched, after garbage was collected (a caught exception may hold a graph in a
cycle for a while; that is looked at less and less often). A pass pays half a microsecond. A loop over losses that were all
recorded before is not a leak, nor is a truncated recurrent network, which detaches its state. A pass that keeps its graph
leaves no mark. Of these it is noted how many nodes had been recorded, and the graph of every 64th is searched for nodes of
each of the passes before: a state that is carried on without `detach()`. Passes are noted in C
(native/backward_passes.c): without the extension module nothing is noticed.
"""

from __future__ import annotations

import gc
import sys
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from pullback.graph.edge import Edge
from pullback.graph.living_objects import living
from pullback.graph.node import FIRST, Node
from pullback.graph.source_lines import Pass, SourceLine, source_line_of
from pullback.modes.source_lines import is_hidden, notes, source_line
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

LEAKED_PASSES = 16


class Sentinel:
    """Whether the warning was given, and how often it was about to be without a reason."""

    warned = False
    suspicions = 0
    next_look = 1


def _begin_pass(edges: Sequence[Edge], counts: bool, keeps_graph: bool) -> Pass | None:
    line = source_line()
    return None if line is None else Pass(line)


def _leaked(marks: tuple[weakref.ref[Pass], ...]) -> None:
    """Look closer: all of these passes are still held, perhaps only by garbage."""
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


def _grown(edges: Sequence[Edge], marks: tuple[int, ...]) -> None:
    """Many passes kept their graphs; `marks` are the numbers of nodes recorded before each of the last, this one last."""
    if Sentinel.warned:
        return
    met, joints = set[int](), list[Node]()
    waiting = [edge[0] for edge in edges]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        span = bisect_right(marks, node.sequence_nr)
        met.add(span)
        for edge in node.next_edges:
            if edge is None or edge[0].sequence_nr == FIRST:
                continue
            if span == len(marks) - 1 and edge[0].sequence_nr < marks[-2]:
                joints.append(node)
            if edge[0] not in seen:
                seen.add(edge[0])
                waiting.append(edge[0])
    if not joints or not met.issuperset(range(1, len(marks))):
        return
    Sentinel.warned = True
    joint = min(joints, key=lambda node: node.sequence_nr)
    line = source_line_of(joint)
    warn_user(
        "Backward passes with retain_graph=True run through one graph that grows with every pass: "
        f"{joint.name()}{'' if line is None else f' at {line.describe()}'} goes on from what was recorded before the last "
        "pass. Cut off what is carried from pass to pass, with state = state.detach(); then retain_graph=True is not needed."
    )


def _bound_begin_pass() -> Any:
    """The function of native/backward_passes.c; None where it was not built."""
    if not hasattr(notes, "bind_passes"):
        return None
    kept = notes.bind_passes(Pass, _leaked, _grown)
    assert kept == LEAKED_PASSES
    return notes.begin_pass


begin_pass: Callable[[Sequence[Edge], bool, bool], Pass | None] = _bound_begin_pass() or _begin_pass
"""The mark for the nodes that a pass frees; warns where the graphs of many passes are held.

A pass that does not count runs inside of another, or records its gradients.
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
    return source_line_of(newest), f"tensors{_container_of(newest)} made"


def _container_of(node: Node) -> str:
    """Where the program keeps the results of a node: " in the list 'losses'"; "" where that is not seen."""
    containers = [
        container for tensor in living(Tensor) if tensor._edge is not None and tensor._edge[0] is node
        for container in gc.get_referrers(tensor) if type(container) in (list, dict, set, deque)
    ]  # fmt: skip
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code, frame.f_globals):
            for name, value in frame.f_locals.items():
                for path, inner in ((name, value), *_within(name, value)):
                    if any(inner is container for container in containers):
                        return f" in the {type(inner).__name__} '{path}'"
        frame = frame.f_back
    return ""


def _within(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a variable holds one step further in, by what the program writes for it."""
    if type(value) is dict:
        yield from ((f"{name}[{key!r}]", inner) for key, inner in list(value.items()))
    elif isinstance(getattr(value, "__dict__", None), dict):
        yield from ((f"{name}.{key}", inner) for key, inner in list(vars(value).items()))


def _freed_by(node: Node) -> Pass | None:
    return getattr(node, "freed_by", None)
