"""Where gradients end: a bounded, weak record of the operations that cut a result off its history.

# Note [Cuts]
`detach`, `.data`, `.item()`, a comparison, an operation under `no_grad` and their like take a tensor that requires grad
and give something that does not. Each notes its kind, its source line (Note [Source lines]), and weak references to both
ends; `explain_grad` reads the notes. There is one place for each kind and line (and leaf), 4096 in all. A note costs about
a tenth of a microsecond and is made only where a gradient really ends: what is recorded, or needs no record, pays nothing.
The tensor that was cut may be gone when somebody asks, and its graph with it, so the leaves behind it are looked
for at once; but a line that runs again and again does so only at its first 16 times, and its 32nd, 64th ... Where a
mode records nothing, one note in 64 is made after the first 4096: an evaluation that goes on repeats lines that are known.
Where source lines are off, nothing is noted. The forward of a custom Function records nothing, but its node hands the
gradients of its arguments on: they are excused meanwhile.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.errors import ViewModificationError
from pullback.modes.source_lines import SourceLine, notes, source_line, source_lines_wanted
from pullback.modes.switches import switches


class Cut(NamedTuple):
    """One place at which a gradient ends."""

    number: int
    """Later cuts have larger numbers."""
    kind: str
    line: SourceLine | None
    source: Callable[[], Any] | None
    """A weak reference to the tensor that requires grad, where it is a leaf."""
    result: Callable[[], Any] | None
    """A weak reference to what was made of it, where it is a tensor; to the class of a node whose backward gave None."""
    leaves: tuple[Callable[[], Any], ...] | None
    """Weak references to the leaves that the source depends on, where it is not a leaf itself."""

    def concerns(self, tensor: Any) -> bool:
        """Whether it cut off the tensor, or one that was computed from it or from the same leaves."""
        if self.source is not None:
            return self.source() is tensor
        behind = [tensor] if _node_of(tensor) is None else [leaf() for leaf in leaves_of(tensor)]
        return any(leaf() is one for leaf in self.leaves or () for one in behind)

    def may_matter(self) -> bool:
        """Whether something that it cut off still exists: nobody asks about what a program has dropped."""
        known = (self.source,) if self.source is not None else self.leaves or ()
        return any(one() is not None for one in known)


_LIMIT = 4096
_NODES = 4000
_noted: dict[Any, tuple[Any, ...]] = {}
_count = 0


def _reference(value: Any) -> Callable[[], Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _node_of(tensor: Any) -> Any:
    try:
        return tensor.grad_fn
    except ViewModificationError:  # a view that may not be used any more; that it is looked at here is nobody's concern
        return None


def leaves_of(tensor: Any, former: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
    """Weak references to the leaves that a tensor depends on, added to those known before; at most `_NODES` nodes."""
    found = dict.fromkeys(former or ())
    node = _node_of(tensor)
    return _leaves_behind(found, [] if node is None else [node])


def _leaves_behind(found: dict[Any, None], stack: list[Any]) -> tuple[Any, ...]:
    seen = set(stack)
    while stack and len(seen) < _NODES:
        node = stack.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[weakref.ref(variable)] = None
        new = [edge[0] for edge in node.next_edges if edge is not None and edge[0] not in seen]
        seen.update(new)
        stack.extend(new)
    return tuple([reference for reference in found if reference() is not None])


class _State(threading.local):
    excused: tuple[Any, ...] | None = None


_state = _State()


def _excuse(tensors: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    former, _state.excused = _state.excused, tensors
    return former


excuse: Callable[[tuple[Any, ...] | None], tuple[Any, ...] | None] = getattr(notes, "excuse", _excuse)
"""Do not note cuts of these tensors in this thread from now on (None: note all again). Return what was excused before."""


def _note_cut(kind: str | None, result: Any, *inputs: Any) -> bool:
    line = source_line()
    if line is None:
        return False
    for source in inputs:
        if any(source is one for one in _state.excused or ()):
            continue
        if len(inputs) == 1 or getattr(source, "_requires_grad", False):
            _put(kind or ("inference_mode" if switches.inference_mode else "no_grad"), line, result, source)
    return False


def _put(kind: str, line: SourceLine, result: Any, source: Any) -> None:
    global _count
    node = _node_of(source)
    _count += 1
    key = (kind, line.code, line.offset, None if node is not None else id(source))
    leaves = None if node is None else leaves_of(source)
    leaf = _reference(source) if node is None else None
    _noted[key] = (_count, kind, line, leaf, _reference(result), leaves)
    _forget_oldest()


def repeat_cut(kind: str, line: SourceLine, source: Any) -> None:
    """Note that a compiled function cut off an argument, as its Python did when it was recorded."""
    if source_lines_wanted():
        _put(kind, line, None, source)


def note_withheld(node: Any, position: int) -> None:
    """Note that the backward of a custom Function returned None for an input that requires grad."""
    global _count
    line, edge = node.source, node.next_edges[position]
    if line is None or edge is None:
        return
    _count += 1
    leaf = getattr(edge[0], "variable", None)
    key = ("function_returned_none", line.code, line.offset, id(leaf))
    former = _noted.pop(key, None)
    if leaf is not None:
        source, leaves = _reference(leaf), None
    else:  # a walk at the first passes alone, as for other notes
        hits = _withheld[key] = _withheld.get(key, 0) + 1
        source, leaves = None, former[5] if former is not None else None
        if leaves is None or hits <= 16 or not hits & (hits - 1):
            leaves = _leaves_behind(dict.fromkeys(leaves or ()), [edge[0]])
    _noted[key] = (_count, "function_returned_none", line, source, _reference(type(node)), leaves)
    _forget_oldest()


_withheld: dict[Any, int] = {}


def _forget_oldest() -> None:
    if len(_noted) > _LIMIT:
        oldest = next(iter(_noted))
        del _noted[oldest]
        _withheld.pop(oldest, None)


note_cut: Callable[..., bool] = getattr(notes, "note_cut", _note_cut)
"""Note that `result` has no history though an input requires grad; kind None: because recording is off. Always False.

A single input is known to require grad; of several each is asked.
"""

if notes is not None:
    notes.bind_cuts(switches, leaves_of)


def cuts() -> list[Cut]:
    """Return what was noted, newest first."""
    noted = [*(notes.list_cuts() if notes is not None else ()), *_noted.values()]
    return [Cut(*entry) for entry in sorted(noted, key=lambda entry: -entry[0])]


def clear_cuts() -> None:
    """Forget all notes."""
    _noted.clear()
    _withheld.clear()
    if notes is not None:
        notes.clear_cuts()
