"""Backends of the user's: functions that get the operations as an fx.GraphModule."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn, optim


class Collector:
    """A backend that keeps the graphs that it is given, and runs them."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.examples: list[Any] = []
        self.calls = 0

    def __call__(self, graph: Any, examples: Any) -> Any:
        self.graphs.append(graph)
        self.examples.append(examples)

        def run(*tensors: Any) -> Any:
            self.calls += 1
            return graph(*tensors)

        return run

    def targets(self, number: int = 0) -> list[str]:
        return [str(node.target) for node in self.graphs[number].graph.nodes if node.op == "call_function"]


def test_backend_gets_the_operations_in_the_first_call_and_runs_the_others() -> None:
    collector = Collector()
    compiled = pullback.compile(lambda x, y: x.sin() * y, backend=collector)
    for call in range(3):
        x = pullback.full((2,), float(call), requires_grad=True)
        result = compiled(x, pullback.ones(2) * 3)
        result.sum().backward()
        pullback.testing.assert_close(x.grad, 3 * x.detach().cos())
        pullback.testing.assert_close(result, 3 * x.sin())
    assert collector.targets() == ["aten.sin.default", "aten.mul.Tensor"]
    assert [tuple(e.shape) for e in collector.examples[0]] == [(2,), (2,)]
    assert collector.calls == 2


def test_backend_gets_each_piece_of_a_function_and_each_shape() -> None:
    collector = Collector()

    def branch(x: Any) -> Any:
        y = x.exp()
        if y.sum() > 0:
            y = y * 2
        return y.log()

    compiled = pullback.compile(branch, backend=collector)
    for size in (2, 2, 2, 3, 3, 3):
        x = pullback.ones(size)
        pullback.testing.assert_close(compiled(x), branch(x))
    assert len(collector.graphs) == 6
    assert collector.targets(0) == ["aten.exp.default", "aten.sum.default", "aten.gt.Scalar"]


def test_parameters_and_buffers_are_inputs_and_are_written_to_once_a_call() -> None:
    collector = Collector()
    pullback.manual_seed(0)
    model, same = (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5)) for _ in range(2))
    same.load_state_dict(model.state_dict())
    compiled = pullback.compile(model, backend=collector)
    optimizers = [optim.SGD(m.parameters(), 0.1) for m in (model, same)]
    for call in range(4):
        x = pullback.full((3, 2), float(call)).cumsum(0)
        losses = []
        for run, optimizer in zip((compiled, same), optimizers, strict=True):
            pullback.manual_seed(call)
            loss = run(x).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(model.state_dict().values(), same.state_dict().values(), strict=True):
        pullback.testing.assert_close(one, other)
    assert collector.calls >= 2
    assert len(collector.examples[0]) > 4


class Doubled(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 100


def without_recording(x: Any) -> Any:
    with pullback.no_grad():
        y = x * 3
    return x * 2 + y


@pytest.mark.parametrize("function", [without_recording, Doubled.apply, lambda x: x.sum().item() * x])
def test_function_whose_graph_does_something_else_stays_as_it_is(function: Any) -> None:
    collector = Collector()
    compiled = pullback.compile(lambda x: function(x), backend=collector)
    for _ in range(4):
        grads = []
        for run in (function, compiled):
            x = pullback.ones(2, requires_grad=True)
            run(x).sum().backward()
            grads.append(x.grad)
        pullback.testing.assert_close(*grads)


def test_what_a_backend_raises_names_it_and_options_are_given_to_it() -> None:
    def refuse(graph: Any, examples: Any, **options: Any) -> Any:
        raise ValueError(f"no: {options}")

    compiled = pullback.compile(lambda x: x + 1, backend=refuse, options={"level": 3})
    with pytest.raises(RuntimeError, match=r"backend='refuse' raised:\nValueError: no: \{'options': \{'level': 3\}\}"):
        compiled(pullback.ones(2))
