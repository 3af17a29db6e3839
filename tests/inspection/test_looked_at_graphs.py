"""What is asked of a graph is answered alike after somebody looked at its fused nodes, whose steps do the work since then."""

from __future__ import annotations

import io
from typing import Any

import pytest

import pullback
from pullback.inspection.diagnosis import diagnose
from pullback.inspection.explanation import Explanations, explain_grad
from pullback.inspection.saved_graphs import load_graph, save_graph
from pullback.inspection.saved_memory import saved_report


class Network(pullback.nn.Module):
    """Layers whose nodes are fused: linear, attention, recurrent."""

    def __init__(self, recurrent: bool) -> None:
        super().__init__()
        self.first = pullback.nn.Linear(4, 4)
        self.attention = pullback.nn.MultiheadAttention(4, 2, batch_first=True)
        self.recurrent = pullback.nn.GRU(4, 4, batch_first=True) if recurrent else None
        self.last = pullback.nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        hidden = self.first(x).relu()
        hidden = self.attention(hidden, hidden, hidden)[0]
        if self.recurrent is not None:
            hidden = self.recurrent(hidden)[0]
        return self.last(hidden[:, -1])


def look(loss: Any) -> None:
    """Walk along `next_functions`, as pictures and debuggers do."""
    waiting, seen = [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions)


@pytest.fixture(params=["first order", "second order"])
def recorded(request: pytest.FixtureRequest) -> tuple[Network, Any]:
    pullback.manual_seed(0)
    network = Network(recurrent=request.param == "first order")
    x = pullback.randn(2, 3, 4, requires_grad=request.param == "second order")
    loss = network(x).square().mean()
    if x.requires_grad:
        (slope,) = pullback.autograd.grad(loss, x, create_graph=True)
        loss = loss + slope.square().sum()
    look(loss)
    return network, loss


def test_a_graph_that_was_looked_at_is_not_taken_for_a_freed_one(recorded: tuple[Network, Any]) -> None:
    network, loss = recorded
    explained = explain_grad(network, loss)
    assert isinstance(explained, Explanations)
    assert {entry.code for entry in explained.values()} == {"backward_not_called"}
    assert diagnose(loss) is None


def test_a_graph_that_was_looked_at_can_be_saved(recorded: tuple[Network, Any]) -> None:
    network, loss = recorded
    file = io.BytesIO()
    save_graph(loss, file, network)
    loss.backward()
    file.seek(0)
    loaded = load_graph(file).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        assert loaded[name].tolist() == parameter.grad.tolist()


def test_steps_show_what_the_steps_of_a_layer_saved() -> None:
    loss = pullback.nn.Linear(3, 4)(pullback.ones(2, 3)).exp().sum()
    look(loss)
    (step,) = [step for step in loss.backward_steps() if step.name == "AddmmBackward0"]
    assert step.saved["mat1"].tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


def test_the_ledger_of_a_layer_is_the_same_after_a_look() -> None:
    loss = pullback.nn.Linear(3, 4)(pullback.ones(2, 3)).exp().sum()
    before = saved_report(loss).facts["total_bytes"]
    look(loss)
    assert saved_report(loss).facts["total_bytes"] == before == 2 * 3 * 4 + 2 * 4 * 4
