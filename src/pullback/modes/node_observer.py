"""NodeObserver: sees each node that backward passes of this thread run.

Observers form a chain, innermost first; the engine calls the innermost, whose `evaluate` calls the others. While none is
there, a pass pays nothing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from pullback.modes.guards import guarded, undone_by
from pullback.modes.interception import push_interceptor, remove_interceptor
from pullback.modes.switches import set_switch, switches


class NodeObserver:
    """The base of what watches backward passes: the profiler, precision telemetry, recorded runs."""

    _around: NodeObserver | None = None
    is_stopped = False
    """Whether it has stopped: it sees nothing any more."""

    def start_observing(self) -> None:
        """See nodes of this thread from now on."""
        self.is_stopped = False
        self._around = set_switch("node_observer", self)

    def stop_observing(self) -> None:
        """Stop; other observers go on."""
        inner = switches.node_observer
        if inner is self:
            set_switch("node_observer", self._around)
        while inner is not None:
            if inner._around is self:
                inner._around = self._around
            inner = inner._around
        self._around = None
        self.is_stopped = True

    def evaluate(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        """Let the observers see how `run` evaluates a node."""
        around = self._around
        if around is None:
            return self.observe(node, grads, edges, run)
        return self.observe(node, grads, edges, lambda: around.evaluate(node, grads, edges, run))

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        """Return what `run()` returns. `grads` arrived; `edges` has None where no gradient is wanted."""
        return run()

    def tell_arrival(self, node: Any, grad: Any) -> None:
        """Let the observers see what arrives at a leaf."""
        self.see_arrival(node, grad)
        if self._around is not None:
            self._around.tell_arrival(node, grad)

    def see_arrival(self, node: Any, grad: Any) -> None:
        """See the gradient that arrived at the accumulator of a leaf, after the leaf's hooks."""


class RunObserver(NodeObserver):
    """The base of blocks that see all that runs in them: operations by `_operation`, nodes of passes by `observe`."""

    @guarded
    def __exit__(self, *exception: object) -> None:
        self.stop_observing()
        remove_interceptor(self._operation)

    @undone_by(__exit__)
    def __enter__(self) -> Self:
        push_interceptor(self._operation)
        self.start_observing()
        return self

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An interceptor; see Note [Interception]."""
        return NotImplemented


class _Twin(RunObserver):
    """Sees a thread for a block that another one entered."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        return self._observer.observe(node, grads, edges, run)

    def see_arrival(self, node: Any, grad: Any) -> None:
        self._observer.see_arrival(node, grad)

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._observer._operation(function, args, kwargs)


@contextlib.contextmanager
def seen_in_new_threads(observer: RunObserver) -> Iterator[None]:
    """Let a block also see the threads that start while it runs: for tools that look at a whole program."""
    former = threading.getprofile()

    def enter(*event: Any) -> None:  # called as the thread begins
        sys.setprofile(former)
        _Twin(observer).__enter__()

    threading.setprofile(enter)
    try:
        yield
    finally:
        threading.setprofile(former)
