"""`diagnose` names the operation, the line, the element, the operands and the kind of a gradient that is not finite."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import record_source_lines
from pullback.inspection.diagnosis import diagnose

START = """
import pullback as torch
x = torch.tensor([1.0, 4.0, 0.0, -2.0], requires_grad=True)
"""

PROGRAMS = {
    "log of a negative number": (
        "x = x.detach()[1:].neg().requires_grad_()\ny = x[:2].log()  # here",
        "LogBackward0",
        "domain",
    ),
    "root of zero": ("y = x[:3].sqrt()  # here", "SqrtBackward0", "division_by_zero"),
    "root of a negative number": ("y = x.sqrt()  # here", "SqrtBackward0", "domain"),
    "division": ("y = torch.ones(3) / x[:3]  # here", "DivBackward0", "division_by_zero"),
    "power of zero": ("y = x[:3] ** 0.5  # here", "PowBackward0", "division_by_zero"),
    "overflow": ("y = (x * 100).exp()  # here", "ExpBackward0", "overflow"),
    "branch not taken": (
        "y = torch.where(x > 0,\n    x.clamp(min=0).sqrt(),  # here\n    0.0)",
        "SqrtBackward0",
        "zero_times_infinity",
    ),
    "data": ("y = x * torch.tensor([1.0, float('nan'), 1.0, 1.0])  # here", "MulBackward0", "nan_came_in"),
}


def run(text: str, retain_graph: bool | None = True) -> tuple[dict[str, Any], int]:
    scope: dict[str, Any] = {}
    whole = f"{START}{text}\nloss = y.sum()\n"
    with record_source_lines():
        exec(compile(whole, "a program", "exec"), scope)
        if retain_graph is not None:
            scope["loss"].backward(retain_graph=retain_graph)
    return scope, next(number for number, line in enumerate(whole.splitlines(), 1) if line.endswith("# here"))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("retain_graph", [True, None])
def test_the_operation_its_line_and_the_kind_are_named(name: str, retain_graph: bool | None) -> None:
    text, operation, kind = PROGRAMS[name]
    scope, line = run(text, retain_graph)
    before = None if scope["x"].grad is None else scope["x"].grad.tolist()
    found = diagnose(scope["loss"])
    assert found is not None
    assert (found.operation, found.kind) == (operation, kind)
    assert found.line is not None
    assert found.line.place == ("a program", line)
    assert found.remedy in str(found)
    assert str(None if scope["x"].grad is None else scope["x"].grad.tolist()) == str(before)


FREED = {
    "overflow of a product": ("y = (x * 1e30) * (x * 1e30)  # here", "MulBackward0", "overflow", True),
    "overflow of leaves": ("x = (x * 1e30).detach().requires_grad_()\ny = x * x  # here", "MulBackward0", "overflow", False),
    "log of a negative number": ("x = x.detach()[3:].requires_grad_()\ny = x.log()  # here", "LogBackward0", "domain", False),
    "a leaf with NaN": ("x = (x / 0).detach().requires_grad_()\ny = x.sin()  # here", "SinBackward0", "nan_came_in", False),
    "branch not taken": ("y = torch.where(x > 0, x.abs().sqrt(), 0.0)  # here", "SqrtBackward0", "zero_times_infinity", True),
    "branch of a leaf": (
        "x = x.detach().abs().requires_grad_()\ny = torch.where(x > 0, x.sqrt(), 0.0)  # here",
        "SqrtBackward0", "zero_times_infinity", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FREED)
@pytest.mark.parametrize("retain_graph", [None, True, False])
def test_a_graph_that_was_freed_is_computed_again_from_its_leaves(name: str, retain_graph: bool | None) -> None:
    text, operation, kind, needs_graph = FREED[name]
    if needs_graph and retain_graph is False:
        pytest.skip("a number that was saved is gone with the graph")
    scope, line = run(text, retain_graph)
    found = diagnose(scope["loss"])
    assert found is not None
    assert (found.operation, found.kind, found.certain) == (operation, kind, True)
    assert found.line is not None
    assert found.line.place == ("a program", line)


@pytest.mark.parametrize("retain_graph", [None, True, False])
def test_data_that_nobody_kept_are_suspected_where_they_came_in(retain_graph: bool | None) -> None:
    scope, line = run("y = (x + torch.tensor(float('nan'))).exp()  # here", retain_graph)
    found = diagnose(scope["loss"])
    assert found is not None
    assert (found.operation, found.kind, found.certain) == ("AddBackward0", "nan_came_in", False)
    assert found.line is not None
    assert found.line.place == ("a program", line)


@record_source_lines()
def test_the_element_and_its_operands_are_shown() -> None:
    x = pullback.tensor([[1.0, 4.0], [0.0, 9.0]], requires_grad=True)
    loss = (x.sqrt() * pullback.tensor([2.0, 3.0])).sum()
    loss.backward(retain_graph=True)
    found = diagnose(loss)
    assert found is not None
    assert found.element == (1, 0)
    assert (found.operands["outgoing"], found.operands["incoming"]) == (math.inf, 2.0)
    assert "element [1, 0]: " in str(found)


def test_finite_gradients_need_no_diagnosis() -> None:
    x = pullback.ones(3, requires_grad=True)
    loss = x.log().sum()
    loss.backward(retain_graph=True)
    assert diagnose(loss) is None
    loss.backward()
    assert diagnose(loss) is None


@record_source_lines()
def test_of_a_freed_graph_a_leaf_tells_what_happened() -> None:
    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    y = x.sqrt()
    loss = y.sum()
    loss.backward()
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.element, found.certain) == (
        "SqrtBackward0",
        "division_by_zero",
        (1,),
        True,
    )
    assert found.line is not None
    assert found.line.text == "y = x.sqrt()"


@record_source_lines()
def test_of_a_freed_graph_the_operations_that_can_have_done_it_are_left() -> None:
    x, other = pullback.zeros(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    hidden = x * 2
    root = hidden.sqrt()
    loss = (root + other.log()).sum()
    loss.backward()
    found = diagnose(loss)
    assert found is not None
    assert not found.certain
    assert found.operation == "SqrtBackward0"
    assert found.line is not None
    assert found.line.text == "root = hidden.sqrt()"
    assert "retain_graph=True" in str(found)


@record_source_lines()
def test_a_linear_layer_with_bad_weights_is_named_by_its_data() -> None:
    layer = pullback.nn.Linear(2, 2)
    with pullback.no_grad():
        layer.weight[0, 1] = float("nan")
    loss = layer(pullback.ones(1, 2)).exp().sum()
    loss.backward(retain_graph=True)
    found = diagnose(loss)
    assert found is not None
    assert found.forward
    assert found.kind in ("nan_came_in", "unknown")
