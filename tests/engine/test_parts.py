"""The engine's parts on their own: the ready queue, the input buffer, the graph task."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.engine.graph_task import GraphTask
from pullback.engine.input_buffer import InputBuffer
from pullback.engine.ready_queue import ReadyQueue
from pullback.graph.basic_nodes import Identity
from pullback.graph.node import FIRST, Node


def node(sequence_nr: int) -> Node:
    made = Identity()
    made.sequence_nr = sequence_nr
    return made


def test_the_queue_gives_the_latest_recorded_node_first() -> None:
    queue = ReadyQueue()
    for number in (3, FIRST, 7, 1):
        queue.push(node(number), [None], [False])
    assert [queue.pop()[0].sequence_nr for _ in range(4)] == [FIRST, 7, 3, 1]


def test_of_equal_numbers_the_last_to_be_ready_leaves_first() -> None:
    queue = ReadyQueue()
    first, second = node(5), node(5)
    queue.push(first, [None], [False])
    queue.push(second, [None], [False])
    assert queue.pop()[0] is second
    assert queue.pop()[0] is first


def _note(seen: list[int], number: int, grad: Any) -> None:
    seen.append(number)


@pytest.mark.parametrize(("count", "order"), [(2, [0, 1]), (3, [0, 1, 2]), (4, [0, 2, 1, 3]), (5, [0, 2, 4, 1, 3])])
def test_leaves_that_are_ready_together_run_in_the_order_of_pytorch(count: int, order: list[int]) -> None:
    leaves = [pullback.ones(1, requires_grad=True) for _ in range(count)]
    seen: list[int] = []
    for number, leaf in enumerate(leaves):
        leaf.register_hook(partial(_note, seen, number))
    pullback.cat(leaves).sum().backward()
    assert seen == order


def test_a_borrowed_gradient_is_not_added_to_in_place() -> None:
    buffer = InputBuffer(1)
    borrowed = np.ones(2)
    buffer.add(0, borrowed, False)
    buffer.add(0, np.ones(2), False)
    assert borrowed.tolist() == [1.0, 1.0]
    assert buffer.grads[0].tolist() == [2.0, 2.0]


def test_an_owned_gradient_is_added_to_in_place() -> None:
    buffer = InputBuffer(1)
    owned = np.ones(2)
    buffer.add(0, owned, True)
    buffer.add(0, np.ones(2), False)
    assert buffer.grads[0] is owned
    assert owned.tolist() == [2.0, 2.0]


def test_dependencies_count_every_edge() -> None:
    x: Any = pullback.ones(1, requires_grad=True)
    y: Any = x * 2
    z: Any = y * y + y
    task = GraphTask(keep_graph=False, create_graph=False, depth=0)
    task.count_dependencies([z.grad_fn])
    assert task.dependencies[y.grad_fn] == 3


def test_only_what_leads_to_a_capture_is_needed() -> None:
    x, w = pullback.ones(1, requires_grad=True), pullback.ones(1, requires_grad=True)
    left: Any = x * 2
    right: Any = w * 3
    total: Any = left + right
    task = GraphTask(keep_graph=False, create_graph=False, depth=0)
    task.mark_needed(total.grad_fn, [(left.grad_fn, 0)], ())
    assert task.exec_info is not None
    assert task.exec_info[total.grad_fn].needed
    assert not task.exec_info[left.grad_fn].needed
    assert right.grad_fn not in task.exec_info


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_nobody_asks_for_is_not_computed(create_graph: bool) -> None:
    order = pullback.tensor([1.5, 2.0], requires_grad=True)  # whose derivative does not exist
    x = pullback.tensor([0.5, 1.0], requires_grad=True)
    result = pullback.special.gammainc(order * 1, x * 1).sum()
    edges = result.grad_fn.next_functions
    (grad,) = pullback.autograd.grad(result, x, create_graph=create_graph, retain_graph=True)
    assert grad.tolist() == pytest.approx([0.4839414, 0.3678794])
    assert result.grad_fn.next_functions == edges
    with pytest.raises(RuntimeError, match="not implemented"):
        pullback.autograd.grad(result, order)


def test_topological_number_is_the_longest_path() -> None:
    x = pullback.ones(1, requires_grad=True)
    y: Any = (x * 2).exp() + x
    assert y.grad_fn.topological_nr == 3


@pytest.mark.parametrize(("wanted", "expected"), [("xy", [9.0, 3.0]), ("yx", [3.0, 9.0]), ("y", [4.5])])
def test_a_gradient_asked_for_on_the_way_is_the_one_before_hooks(wanted: str, expected: list[float]) -> None:
    x = pullback.ones((), requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad * 1.5)
    tensors = {"x": x, "y": y}
    grads = pullback.autograd.grad(y * 3, [tensors[name] for name in wanted])
    assert [grad.item() for grad in grads] == expected
