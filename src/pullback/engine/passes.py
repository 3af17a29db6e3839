"""Which backward passes run: the one of each thread, and how many there are in the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.engine.graph_task import GraphTask
from pullback.graph.node import Node
from pullback.modes.guards import guarded
from pullback.modes.switches import (
    SWITCH_DEFAULTS,
    current_switches,
    process,
    set_switch,
    set_switches,
    switches,
)
from pullback.native.locks import process_lock


class _RunningPass(threading.local):
    """The innermost pass that runs in this thread."""

    task: GraphTask | None = None


running = _RunningPass()
_count_lock = process_lock()
_node_locks_lock = process_lock()


def _forget_other_threads() -> None:
    """Forget, in a child process, the passes of threads that it does not have."""
    process.passes = int(running.task is not None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def lock_of(node: Node) -> threading.RLock:  # type: ignore[valid-type, unused-ignore]  # a factory in older typeshed
    """The node's own lock, made when passes of several threads first meet."""
    with _node_locks_lock:
        if node.lock is None:
            node.lock = threading.RLock()
        return node.lock


@guarded
def count_pass(task: GraphTask, runs: bool) -> None:
    """Count an outermost pass while it runs, once."""
    with _count_lock:
        process.passes += runs - task.is_counted
        task.is_counted = runs
        if runs and process.passes > 1:
            note_unpromised(ARRIVAL, "backward passes of several threads, where they share leaves")


def is_running() -> bool:
    """Whether a backward pass runs in any thread."""
    return process.passes > 0


@guarded
def end_pass(task: GraphTask, outer: GraphTask | None, former: dict[str, Any], former_node: Any) -> None:
    """Leave the thread as it was before the pass. See Note [Guards]."""
    if task.moves_tensors:
        switches.current_node = former_node
    running.task = outer
    if process.changed or former is not SWITCH_DEFAULTS:  # what hooks entered and did not leave ends with the pass
        observer, former_observer = switches.node_observer, former["node_observer"]
        set_switches(former)
        if former_observer is not None and former_observer.is_stopped:  # by what ran in the pass: it is not put back
            set_switch("node_observer", observer)
    if task.streams is not None:
        task.streams.leave()
    if outer is None:
        count_pass(task, False)


def run_on_fresh_stack(run: Callable[[], None], task: GraphTask) -> None:
    """Run a deeply nested pass in a new thread with this thread's switches, and raise here what it raises."""
    state = current_switches()
    others = {name: getattr(switches, name) for name in ("anomaly_check_nan", "dual_ids", "current_node")}
    failure: list[BaseException] = []

    def target() -> None:
        running.task = task
        set_switches(state)
        vars(switches).update(others)
        try:
            run()
        except BaseException as error:
            failure.append(error)
        finally:
            set_switches(SWITCH_DEFAULTS)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


class running_pass:
    """Make a pass the one that runs in this thread, while one of its nodes runs."""

    def __init__(self, task: GraphTask) -> None:
        self._task = task
        self._outer = running.task

    def __enter__(self) -> None:
        running.task = self._task

    @guarded
    def __exit__(self, *exception: object) -> None:
        running.task = self._outer


def current_graph_task() -> GraphTask | None:
    """The backward pass that runs in this thread."""
    return running.task
