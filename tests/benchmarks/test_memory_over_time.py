"""Small steps leave nothing behind, and a node that was released keeps its size."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import Any

import pytest

import pullback
from benchmarks.memory_over_time import STEPS, Step
from pullback.backend.configuration import compiled_modules
from pullback.recording.operation_node import OperationNode

WARM_UP = 300
# Python's cache of attributes keeps up to 4,096 names that were made at run time.
clear_cached_names: Any = getattr(sys, "_clear_internal_caches", None) or getattr(sys, "_clear_type_cache", int)


def growth(step: Step, count: int) -> tuple[int, int]:
    """By how many allocated blocks, and objects that the collector knows, so many steps grow."""
    for _ in range(WARM_UP):
        step()
    gc.collect()
    clear_cached_names()
    blocks, objects = sys.getallocatedblocks(), len(gc.get_objects())
    for _ in range(count):
        step()
    gc.collect()
    clear_cached_names()
    return sys.getallocatedblocks() - blocks, len(gc.get_objects()) - objects


@pytest.mark.parametrize("name", STEPS)
def test_steps_leave_nothing_behind(name: str) -> None:
    make, share = STEPS[name]
    count = 20_000 if share == 1 else 600
    blocks, objects = growth(make(pullback), count)
    assert blocks < count // 2
    assert objects < 20


def test_a_step_that_keeps_an_object_is_found() -> None:
    kept: list[Any] = []
    _, objects = growth(lambda: kept.append([]), 100)
    assert objects >= 100


@pytest.mark.skipif("pullback.graph.node" in compiled_modules(), reason="compiled nodes have no dictionary of fields")
def test_a_released_node_takes_no_more_memory_than_before() -> None:
    class Released(OperationNode):
        __slots__ = ("__dict__",)
        tensor_names = ("input", "other", "weight")

    nodes: list[Any] = []
    for _ in range(100):
        nodes.append(Released.__new__(Released))
        nodes[-1].next_edges, nodes[-1].shape = (), (1,)
    tracemalloc.start()
    for node in nodes:
        node.release_saved_tensors()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 30 * len(nodes)
