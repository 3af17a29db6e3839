"""The sentinel warns of graphs that are held from pass to pass, and of nothing else."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import record_source_lines, release
from pullback.engine.leaks import LEAKED_PASSES, Sentinel
from pullback.native import extension

pytestmark = pytest.mark.skipif(extension is None, reason="numbers of nodes are read in C")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    former, Sentinel.warned = Sentinel.warned, False
    Sentinel.suspicions, Sentinel.next_look = 0, 1
    # What earlier tests left is not of these programs.
    for _ in range(LEAKED_PASSES):
        pullback.ones(1, requires_grad=True).exp().backward()
    with record_source_lines():
        yield
    Sentinel.warned = former


def _add_losses() -> None:
    w = pullback.ones(3, requires_grad=True)
    total: Any = 0.0
    for _ in range(4 * LEAKED_PASSES):
        loss = (w * w).sum()
        loss.backward()
        total = total + loss


def _list_losses() -> None:
    w = pullback.ones(3, requires_grad=True)
    losses = []
    for _ in range(2 * LEAKED_PASSES):
        loss = w.exp().sum()
        loss.backward()
        losses.append(loss)


def test_a_sum_of_losses_is_named_once() -> None:
    with pytest.warns(UserWarning, match=r"held by AddBackward0 at .*total = total \+ loss") as caught:
        _add_losses()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_list_of_losses_is_named_by_what_made_them() -> None:
    with pytest.warns(UserWarning, match=r"held by tensors in the list 'losses' made at .*loss = w.exp"):
        _list_losses()


@pytest.mark.parametrize("keep", [lambda loss: loss.detach(), lambda loss: loss.item()])
def test_values_without_history_are_no_leak(keep: Any) -> None:
    w = pullback.ones(3, requires_grad=True)
    total: Any = 0.0
    for _ in range(4 * LEAKED_PASSES):
        loss = (w * w).sum()
        loss.backward()
        total += keep(loss)
    assert not Sentinel.warned


def test_a_truncated_recurrent_network_does_not_warn() -> None:
    cell = pullback.nn.RNNCell(2, 3)
    state = pullback.zeros(1, 3)
    for _ in range(4 * LEAKED_PASSES):
        state = state.detach()
        for _ in range(3):
            state = cell(pullback.ones(1, 2), state)
        state.sum().backward()
    assert not Sentinel.warned


def test_several_losses_of_one_forward_are_no_leak() -> None:
    w = pullback.ones(3, requires_grad=True)
    losses = [(w * number).exp().sum() for number in range(4 * LEAKED_PASSES)]
    for loss in losses:
        loss.backward()
    assert not Sentinel.warned


def test_graphs_that_wait_for_the_garbage_collector_are_no_leak() -> None:
    w = pullback.ones(3, requires_grad=True)
    gc.disable()
    try:
        for _ in range(20 * LEAKED_PASSES):
            loss = (w * w).sum()
            cycle: list[Any] = [loss]
            cycle.append(cycle)
            loss.backward()
    finally:
        gc.enable()
    assert not Sentinel.warned
    assert Sentinel.next_look > Sentinel.suspicions / 2  # garbage is collected less and less often


def test_graphs_that_are_kept_on_purpose_are_no_leak() -> None:
    w = pullback.ones(3, requires_grad=True)
    loss = w.exp().sum()
    for _ in range(4 * LEAKED_PASSES):
        loss.backward(retain_graph=True)
    assert not Sentinel.warned


def _carry_a_state() -> None:
    w, state = pullback.ones(3, requires_grad=True), pullback.ones(3)
    for _ in range(8 * LEAKED_PASSES):
        state = state * w
        state.sum().backward(retain_graph=True)


def test_a_state_that_is_carried_on_through_kept_graphs_is_named_once() -> None:
    with pytest.warns(
        UserWarning, match=r"MulBackward0 at .*\(state = state \* w\) goes on from .*detach\(\)"
    ) as caught:
        _carry_a_state()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_was_recorded_once_may_be_kept_for_every_pass() -> None:
    w = pullback.ones(3, requires_grad=True)
    shared = w.exp()
    for number in range(8 * LEAKED_PASSES):
        (shared * number).sum().backward(retain_graph=True)
    assert not Sentinel.warned


def test_steps_that_are_differentiated_later_are_no_leak() -> None:
    w = pullback.ones(3, requires_grad=True)
    fast = w
    for _ in range(8 * LEAKED_PASSES):
        (grad,) = pullback.autograd.grad((fast * fast).sum(), fast, create_graph=True)
        fast = fast - 0.01 * grad
    fast.sum().backward()
    assert not Sentinel.warned


def test_a_released_graph_is_gone() -> None:
    w = pullback.ones(3, requires_grad=True)
    total: Any = pullback.zeros(())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4 * LEAKED_PASSES):
            loss = (w * w).sum()
            loss.backward()
            total = total + loss
            release(total)
    assert total.grad_fn is None
    assert total.item() == 3.0 * 4 * LEAKED_PASSES


def test_a_released_node_says_where_it_was_released() -> None:
    y = pullback.ones(3, requires_grad=True).exp()
    loss = y.sum()
    release(loss)
    with pytest.raises(RuntimeError, match=r"freed by the backward at .*release\(loss\)"):
        y.sum().backward()


class _Meter:
    def __init__(self) -> None:
        self.values: list[Any] = []


def _keep_in_an_object() -> None:
    meter = _Meter()
    w = pullback.ones(3, requires_grad=True)
    for _ in range(2 * LEAKED_PASSES):
        loss = w.exp().sum()
        loss.backward()
        meter.values.append(loss)


def _keep_in_a_dictionary() -> None:
    history = {"loss": list[Any]()}
    w = pullback.ones(3, requires_grad=True)
    for _ in range(2 * LEAKED_PASSES):
        loss = w.exp().sum()
        loss.backward()
        history["loss"].append(loss)


@pytest.mark.parametrize(
    ("program", "name"), [(_keep_in_an_object, "meter.values"), (_keep_in_a_dictionary, r"history\['loss'\]")]
)
def test_a_list_in_an_object_is_named_as_a_program_writes_it(program: Any, name: str) -> None:
    with pytest.warns(UserWarning, match=f"held by tensors in the list '{name}' made at"):
        program()


def test_a_list_of_losses_is_released_at_once() -> None:
    w = pullback.ones(3, requires_grad=True)
    losses = [w.exp().sum(), w.sin().sum()]
    release(losses)
    assert [loss.grad_fn for loss in losses] == [None, None]
    with pytest.raises(TypeError, match="release expects a tensor, or a list of them, got int"):
        release(3)  # type: ignore[arg-type]
