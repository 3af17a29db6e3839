"""Backward node by node, and breakpoints on nodes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy
import pytest

import pullback
from pullback.autograd.graph import record_source_lines
from pullback.inspection.stepping import break_at, clear_breaks, set_trace
from pullback.modes.switches import switches


def network() -> tuple[pullback.nn.Module, Any]:
    pullback.manual_seed(0)
    net = pullback.nn.Sequential(pullback.nn.Linear(3, 4), pullback.nn.Tanh(), pullback.nn.Linear(4, 2))
    x = pullback.randn(5, 3)
    hidden = net(x)
    return net, (hidden.exp() * hidden + hidden[:, :1]).sum()


def test_the_steps_leave_the_gradients_of_backward_to_the_bit() -> None:
    expected, loss = network()
    loss.backward()
    actual, loss = network()
    for _ in loss.backward_steps():
        pass
    for one, other in zip(expected.parameters(), actual.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert one.grad.tolist() == other.grad.tolist()


@record_source_lines()
def test_a_step_has_node_line_gradients_and_saved_values() -> None:
    x = pullback.tensor([2.0, 3.0], requires_grad=True)
    y = x.exp() * x
    step = next(step for step in y.sum().backward_steps() if step.name == "MulBackward0")
    assert step.line is not None
    assert step.line.text == "y = x.exp() * x"
    assert [grad.tolist() for grad in step.incoming if grad is not None] == [[1.0, 1.0]]
    assert step.outgoing is not None
    assert [grad.tolist() for grad in step.outgoing if grad is not None] == [[2.0, 3.0], x.exp().tolist()]
    assert step.saved["other"] is x
    assert "MulBackward0 at " in repr(step)


@record_source_lines()
def test_a_step_names_the_module() -> None:
    _, loss = network()
    assert next(step.module for step in loss.backward_steps() if step.name == "TanhBackward0") == "1"


def test_a_pass_that_is_left_runs_no_further() -> None:
    x = pullback.ones(2, requires_grad=True)
    steps = x.exp().sum().backward_steps()
    next(steps)
    steps.stop()
    assert list(steps) == []
    assert x.grad is None


def test_the_rest_can_run_without_a_stop() -> None:
    x = pullback.zeros(2, requires_grad=True)
    steps = x.exp().sum().backward_steps()
    next(steps)
    steps.finish()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]


@record_source_lines()
@pytest.mark.parametrize("place", ["ExpBackward0", 4, "program.py:4", "/elsewhere/program.py:4"])
def test_a_pass_can_go_to_a_node_or_a_line(place: Any) -> None:
    scope: dict[str, Any] = {"torch": pullback}
    program = "x = torch.zeros(2, requires_grad=True)\n\n\ny = x.exp()\nz = (y * 2).sum()\n"
    exec(compile(program, "program.py", "exec"), scope)
    steps = scope["z"].backward_steps()
    steps.go_to(place)
    assert next(steps).name == "ExpBackward0"
    assert next(steps).name == "torch::autograd::AccumulateGrad"


def test_a_pass_can_go_to_a_node_itself() -> None:
    first, second = pullback.zeros(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    wanted = first.exp()
    steps = (wanted * second.exp()).sum().backward_steps()
    assert wanted.grad_fn is not None
    steps.go_to(wanted.grad_fn)
    assert next(steps).node is wanted.grad_fn


def test_steps_can_be_seen_before_their_nodes_run() -> None:
    x = pullback.zeros(2, requires_grad=True)
    for step in x.exp().sum().backward_steps(before=True):
        assert step.outgoing is None
    assert x.grad is not None


def test_only_wanted_inputs_get_gradients() -> None:
    x, y = pullback.ones(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    names = [step.name for step in (x.exp() * y.sin()).sum().backward_steps(inputs=[x])]
    assert "SinBackward0" not in names
    assert (x.grad is None, y.grad is None) == (False, True)


def test_the_graph_is_kept_where_it_is_asked_for() -> None:
    x = pullback.ones(2, requires_grad=True)
    loss = x.exp().sum()
    for _ in loss.backward_steps(retain_graph=True):
        pass
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        list(loss.backward_steps())


def test_hooks_and_custom_functions_run_in_steps() -> None:
    class Twice(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = pullback.ones(2, requires_grad=True)
    y = Twice.apply(x)
    y.register_hook(lambda grad: grad * 10)
    steps = {step.name: step for step in y.sum().backward_steps()}
    assert x.grad is not None
    assert x.grad.tolist() == [20.0, 20.0]
    assert steps["TwiceBackward"].outgoing is not None


def test_a_breakpoint_on_a_node_stops_before_it_runs() -> None:
    seen: list[str] = []
    break_at("ExpBackward0", lambda: seen.append("stopped"))
    try:
        pullback.ones(2, requires_grad=True).exp().sum().backward()
        pullback.ones(2, requires_grad=True).sin().sum().backward()
    finally:
        clear_breaks()
    pullback.ones(2, requires_grad=True).exp().sum().backward()
    assert seen == ["stopped"]


def test_pdb_breaks_on_the_name_of_a_node() -> None:
    commands = "break ExpBackward0\nbreak\ncontinue\np step.name, incoming[0].tolist()\nclear ExpBackward0\ncontinue\n"
    out = io.StringIO()
    x = pullback.zeros(2, requires_grad=True)
    loss = (x.exp() * 3).sum()
    set_trace(io.StringIO(commands), out)
    try:
        loss.backward()
    finally:
        clear_breaks()
    assert "Breakpoint at node ExpBackward0" in out.getvalue()
    assert "('ExpBackward0', [3.0, 3.0])" in out.getvalue()
    assert "Deleted breakpoint at node ExpBackward0" in out.getvalue()


def test_retain_grad_can_be_taken_back() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.retain_grad(False)
    y.sum().backward()
    assert (y.retains_grad, y._grad) == (False, None)


def test_a_temporary_breakpoint_stops_once() -> None:
    out = io.StringIO()
    x = pullback.zeros(2, requires_grad=True)
    loss = (x.exp().exp() * 3).sum()
    set_trace(io.StringIO("tbreak ExpBackward0\ncontinue\np 'here', step.name\ncontinue\n"), out)
    try:
        loss.backward()
    finally:
        clear_breaks()
    assert "Temporary breakpoint at node ExpBackward0" in out.getvalue()
    assert out.getvalue().count("('here', 'ExpBackward0')") == 1


def test_pdb_says_that_compiled_functions_run_uncompiled_meanwhile() -> None:
    out = io.StringIO()
    set_trace(io.StringIO("break CompiledFunctionBackward\ncontinue\n"), out)
    try:
        pullback.ones(2)
    finally:
        clear_breaks()
    assert "run uncompiled while there is a breakpoint" in out.getvalue()


def test_a_breakpoint_that_is_cleared_in_a_pass_leaves_nothing_behind_and_others_observing() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.profiler.profile() as profiled:
        break_at("ExpBackward0", clear_breaks)
        x.exp().sum().backward()
        assert switches.node_observer is not None
        x.sin().sum().backward()
    assert "SinBackward0" in {event.name for event in profiled.events()}
    break_at("ExpBackward0", clear_breaks)
    x.exp().sum().backward()
    assert switches.node_observer is None


def test_steps_compute_infinities_without_a_warning_and_hooks_have_the_settings_of_the_program() -> None:
    x = pullback.ones(3, requires_grad=True)
    settings = []
    deviation = x.std()
    deviation.register_hook(lambda grad: settings.append(numpy.geterr()["divide"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deviation.backward_steps().finish()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert settings == ["warn"]
