"""Backward, one node at a time: `Tensor.backward_steps`, and breakpoints on nodes for pdb.

# Note [Stepping]
`backward_steps` runs the nodes of `engine/stepping.py` as somebody asks for the next; nothing else knows of it. A
breakpoint on a node is a `NodeObserver` of this thread, so backward passes are slower while there is one and as fast as
ever afterwards.
"""

from __future__ import annotations

import functools
import os
import pdb
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.autograd.differentiation import make_grads, root_edges, wanted_nodes
from pullback.engine.careful_run import as_tensor
from pullback.engine.stepping import Arrival, Departure, run_in_steps
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.saved_tensor import SavedOutput
from pullback.graph.source_lines import SourceLine, module_path_of, source_line_of
from pullback.inspection.nodes import acting_node, is_released, saved_values
from pullback.modes.node_observer import NodeObserver
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor

__all__ = ["BackwardSteps", "NodePdb", "Step", "backward_steps", "break_at", "clear_breaks", "set_trace"]


class Step:
    """One node of a backward pass: what arrived, what it had saved, and, once it ran, what it sends on."""

    def __init__(self, number: int, node: Node, incoming: tuple[Any, ...]) -> None:
        self.number = number
        self.node = node
        self.name: str = node.name()
        self.line: SourceLine | None = source_line_of(node)
        self.module: str | None = module_path_of(node)
        self.incoming: tuple[Tensor | None, ...] = tuple([_shown(grad) for grad in incoming])
        self.saved: dict[str, Any] = {} if is_released(node) else {name: _as_saved(v) for name, v in saved_values(node)}
        self.outgoing: tuple[Tensor | None, ...] | None = None
        """The gradients for `node.next_functions`, one each; None before the node ran, () of a leaf's accumulator."""

    def is_at(self, place: str | int | Node) -> bool:
        """Whether this is a node, one of a name, or was recorded at a line: 12, "model.py:12", or "MulBackward0"."""
        if isinstance(place, Node):
            return acting_node(place) is acting_node(self.node)
        if isinstance(place, int):
            return self.line is not None and self.line.place[1] == place
        file, colon, number = place.rpartition(":")
        if colon and number.isdigit() and self.line is not None:
            known, line = self.line.place
            return line == int(number) and (known == file or os.path.basename(known) == os.path.basename(file))
        return place in (self.name, self.name.rpartition("::")[2])

    def __repr__(self) -> str:
        place = "" if self.line is None else f" at {self.line.describe()}"
        module = f" in {self.module}" if self.module else ""
        return f"<step {self.number}: {self.name}{module}{place}>"


class BackwardSteps(Iterator[Step]):
    """The steps of a backward pass. Each is handed out after its node ran; `before` says: before it runs."""

    def __init__(self, events: Iterator[Arrival | Departure], before: bool) -> None:
        self._events = events
        self._before = before
        self._wanted: str | int | Node | None = None
        self._open: Step | None = None
        self._number = 0

    def __next__(self) -> Step:
        while True:
            step = self._advance()
            if self._wanted is None or step.is_at(self._wanted):
                self._wanted = None
                return step

    def _advance(self) -> Step:
        for event in self._events:
            if isinstance(event, Arrival):
                self._number += 1
                self._open = Step(self._number, event.node, event.grads)
                if self._before:
                    return self._open
            else:
                step = self._open
                assert step is not None
                step.outgoing = tuple([_shown(grad) for grad in event.grads])
                if not self._before:
                    return step
        raise StopIteration

    def go_to(self, place: str | int | Node) -> None:
        """Let the next step be the next one at a node, its name or a line; the nodes up to it run."""
        self._wanted = place

    def finish(self) -> None:
        """Run the rest without a stop, as backward() does."""
        for _ in self._events:
            pass

    def stop(self) -> None:
        """Leave the pass here: the nodes that have not run yet never do. What leaves received so far stays."""
        close: Callable[[], None] | None = getattr(self._events, "close", None)
        if close is not None:
            close()


def backward_steps(
    loss: Tensor,
    gradient: Any = None,
    retain_graph: bool = False,
    inputs: Any = None,
    *,
    before: bool = False,
) -> BackwardSteps:
    """Run the backward pass of `loss` node by node: each step has the node, its line, what arrives and what goes on.

    The loop may `break`, `steps.stop()`, `steps.finish()`, or `steps.go_to("MulBackward0")` (a line as well: 12 or
    "model.py:12"). Run to its end, the pass leaves the gradients that backward() leaves, to the bit.

    >>> import pullback
    >>> x = pullback.tensor([2.0, 3.0], requires_grad=True)
    >>> for step in (x * x).sum().backward_steps():
    ...     print(step.name, [grad.tolist() for grad in step.incoming])
    SumBackward0 [1.0]
    MulBackward0 [[1.0, 1.0]]
    torch::autograd::AccumulateGrad [[4.0, 6.0]]
    >>> x.grad
    tensor([4., 6.])
    """
    roots = (loss,)
    grads = make_grads(roots, None if gradient is None else (gradient,), is_grads_batched=False)
    wanted = wanted_nodes(inputs)
    return BackwardSteps(run_in_steps(root_edges(roots), grads, keep_graph=retain_graph, wanted=wanted), before)


def _shown(grad: Any) -> Tensor | None:
    if grad is None or isinstance(grad, Tensor):
        return grad
    return as_tensor(grad.whole() if isinstance(grad, PartialGradient) else grad)


def _as_saved(value: Any) -> Any:
    return as_tensor(value._array) if isinstance(value, SavedOutput) else value


class _Breaks(NodeObserver):
    """Calls the debugger before a node that somebody set a breakpoint on."""

    def __init__(self) -> None:
        self.places: dict[str | int | Node, Callable[[], Any]] = {}

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        if not self.places:
            return run()
        step = Step(0, node, tuple(grads))
        enter = next((enter for place, enter in self.places.items() if step.is_at(place)), None)
        return run() if enter is None else _stop_here(step, enter, run)


def _stop_here(step: Step, enter: Callable[[], Any], run: Callable[[], Any]) -> Any:
    """The frame in which a debugger stops: its variables are those of the step."""
    node, line, incoming, saved = step.node, step.line, step.incoming, step.saved  # noqa: F841  # for who looks
    enter()
    outgoing = run()
    return outgoing  # noqa: RET504  # a name for who looks


class _Own(threading.local):
    """The breakpoints of each thread."""

    def __init__(self) -> None:
        self.breaks = _Breaks()


_own = _Own()


def _observe() -> None:
    """Begin or end to observe passes, as there are breakpoints."""
    breaks, known = _own.breaks, switches.node_observer
    while known is not None and known is not breaks:
        known = known._around
    if breaks.places and known is None:
        breaks.start_observing()
    elif not breaks.places and known is not None:
        breaks.stop_observing()


def break_at(place: str | int | Node, enter: Callable[[], Any] | None = None) -> None:
    """Stop backward passes of this thread in the debugger before a node runs: by its name, or by its line.

    There `step` is the Step (also `node`, `line`, `incoming`, `saved`); "next" runs the node, then `outgoing` is known.
    `enter` is called in the place of `breakpoint()`.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> break_at("MulBackward0", lambda: print("before MulBackward0"))
    >>> (x * 2).sum().backward()
    before MulBackward0
    >>> clear_breaks()
    """
    _own.breaks.places[place] = enter or breakpoint
    _observe()


def clear_breaks(place: str | int | Node | None = None) -> None:
    """Remove one breakpoint on a node, or all of them.

    >>> break_at("MulBackward0")
    >>> clear_breaks("MulBackward0")
    """
    places = _own.breaks.places
    for name in list(places) if place is None else [place]:
        places.pop(name, None)
    _observe()


class NodePdb(pdb.Pdb):
    """Python's debugger, whose `break` takes the name of a node too: `break MulBackward0`, `clear MulBackward0`."""

    def do_break(self, arg: str, temporary: Any = 0) -> Any:
        """b(reak) [node name | file:line | function]: as in pdb; the name of a node stops backward passes before it."""
        if _is_node_name(arg):
            break_at(arg, functools.partial(self._stop_once, arg) if temporary else self._stop_in_caller)
            self.message(f"{'Temporary breakpoint' if temporary else 'Breakpoint'} at node {arg}")
            if arg == "CompiledFunctionBackward":
                self.message(
                    "Compiled functions that are called from now on run uncompiled while there is a breakpoint: name one "
                    "of their operations' nodes, as in break MulBackward0"
                )
            return None
        for place in _own.breaks.places if not arg else ():
            self.message(f"Breakpoint at node {place}")
        return super().do_break(arg, temporary)

    do_b = do_break

    def do_clear(self, arg: str) -> Any:
        """cl(ear) [node name | number ...]: as in pdb."""
        if arg in _own.breaks.places:
            clear_breaks(arg)
            self.message(f"Deleted breakpoint at node {arg}")
            return None
        return super().do_clear(arg)

    do_cl = do_clear

    def _stop_in_caller(self) -> None:
        self.set_trace(sys._getframe(1))

    def _stop_once(self, place: str) -> None:
        clear_breaks(place)
        self.set_trace(sys._getframe(1))


def _is_node_name(text: str) -> bool:
    return text.isidentifier() and (
        text.rstrip("0123456789").endswith("Backward") or text in ("AccumulateGrad", "CopySlices")
    )


def set_trace(commands: Any = None, out: Any = None) -> None:
    """Enter pdb here, with a `break` that knows the names of nodes. `commands` and `out` are files, as in pdb.Pdb.

    At the breakpoint `step`, `node`, `line`, `incoming` and `saved` are variables, as `break_at` tells.

    >>> import io, pullback
    >>> commands = io.StringIO("tbreak ExpBackward0\\ncontinue\\np incoming\\ncontinue\\n")
    >>> shown = io.StringIO()
    >>> loss = (pullback.zeros(2, requires_grad=True).exp() * 3).sum()
    >>> set_trace(commands, shown)
    >>> loss.backward()
    >>> "(tensor([3., 3.]),)" in shown.getvalue()
    True
    """
    # Who reads commands from a file presses no Ctrl-C: the program's own handler stays.
    debugger = NodePdb(stdin=commands, stdout=out, nosigint=commands is not None)
    if commands is not None:
        debugger.use_rawinput = False
    debugger.set_trace(sys._getframe(1))
