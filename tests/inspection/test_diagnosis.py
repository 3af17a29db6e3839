"""`diagnose` names the operation, the line, the element, the operands and the kind of a gradient that is not finite."""

from __future__ import annotations

import gc
import math
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import record_source_lines, saved_tensors_hooks
from pullback.graph.living_objects import living
from pullback.graph.node import Node
from pullback.inspection.diagnosis import Looks, diagnose
from pullback.utils.checkpoint import checkpoint
from pullback.utils.graph_page import graph_page


@pytest.fixture(autouse=True)
def _no_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loss is looked at, however long that took so far."""
    monkeypatch.setattr(Looks, "taken", -math.inf)


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
    "quotient that where() did not take": (
        "y = torch.where(x == 0, x,\n    1 / x)  # here",
        "ReciprocalBackward0",
        "zero_times_infinity",
    ),
    "growth that where() did not take": (
        "y = torch.where(x < 2, x,\n    (x * 100).exp())  # here\ny = torch.where(x == 4, 0.0, y)",
        "ExpBackward0",
        "zero_times_infinity",
    ),
    "end of a domain": ("y = (x[:1] * 1).acos()  # here", "AcosBackward0", "division_by_zero"),
    "mean of nothing": ("y = x[x > 9].mean()  # here", "MeanBackward0", "division_by_zero"),
    "loss over nothing": (
        "y = torch.nn.functional.mse_loss(x[x > 9], torch.ones(0))  # here",
        "MseLossBackward0",
        "division_by_zero",
    ),
    "equal singular values, and a gradient that is zero somewhere": (
        "y = torch.linalg.svd(torch.eye(3) * x[1])[0] @ torch.tensor([0.0, 1.0, 2.0])  # here",
        "LinalgSvdBackward0",
        "division_by_zero",
    ),
    "a branch inside of a checkpoint": (
        "y = torch.utils.checkpoint.checkpoint(lambda x: torch.where(x > 0, x.log(), 0.0), x, use_reentrant=False)  # here",
        "LogBackward0",
        "zero_times_infinity",
    ),
    "a custom backward": (
        """
class Log(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=1e-30).log()
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad / x  # here
y = Log.apply(x)""",
        "DivBackward0",
        "division_by_zero",
    ),
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


NOT_FINITE = {
    "a state that grows": (
        "h, w = torch.ones(2, 3), torch.nn.Parameter(torch.full((3, 3), 9.0))\nfor _ in range(40):\n    h = h @ w  # here\n"
        "y = h + x[:3]",
        "MmBackward0", "overflow", True,
    ),
    "a recurrent layer": (
        "layer = torch.nn.RNN(1, 1, nonlinearity='relu')\ntorch.nn.utils.vector_to_parameters(torch.full((4,), 9.0), layer.parameters())\n"
        "y = layer(torch.ones(60, 1))[0].square()  # here",
        "StackBackward0", "overflow", True,
    ),
    "a row that is masked": (
        "scores = (x * 2).masked_fill(torch.ones(4) > 0, -torch.inf)\ny = scores.softmax(0)  # here",
        "SoftmaxBackward0", "domain", False,
    ),
    "a mask that is added": (
        "scores = x * 2 + torch.full((4,), -torch.inf)\ny = scores.softmax(0)  # here", "SoftmaxBackward0", "domain", False,
    ),
    "no target": (
        "y = torch.nn.functional.cross_entropy(x[None] * 2, torch.tensor([-100]))  # here",
        "NllLossBackward0", "division_by_zero", True,
    ),
    "one element": (
        "with __import__('warnings').catch_warnings(action='ignore'):\n    y = (x[:1] * 2).std()  # here",
        "StdBackward0", "domain", True,
    ),
    "data in a layer": (
        "layer = torch.nn.Linear(2, 1)\ny = layer(torch.tensor([[1.0, float('nan')]])).exp()  # here",
        "AddmmBackward0", "nan_came_in", True,
    ),
    "root of a negative number": ("y = (x * 2) ** 0.3  # here", "PowBackward0", "domain", True),
    "division": ("y = 1.0 / (x * 2 - 2)  # here", "ReciprocalBackward0", "division_by_zero", True),
    "a singular matrix": ("y = torch.logdet(x.reshape(2, 2) * 0)  # here", "LinalgSlogdetBackward0", "division_by_zero", True),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FINITE)
@pytest.mark.parametrize("retain_graph", [None, True, False])
def test_why_a_loss_is_not_finite_is_known_also_when_its_graph_was_freed(name: str, retain_graph: bool | None) -> None:
    text, operation, kind, certain = NOT_FINITE[name]
    scope, line = run(text, retain_graph)
    found = diagnose(scope["loss"])
    assert found is not None
    assert (found.operation, found.kind, found.certain, found.forward) == (operation, kind, certain, True)
    assert found.element is not None
    assert found.line is not None
    assert found.line.place == ("a program", line)


def test_what_was_found_out_about_a_loss_goes_with_it() -> None:
    scope, _ = run("y = (x * 2).digamma()  # here", retain_graph=False)
    assert diagnose(scope["loss"]) is not None
    scope.clear()
    gc.collect()
    assert not [node for node in living(Node) if node.name() == "DigammaBackward0"]


def test_passes_inside_of_a_mode_run_nothing_again() -> None:
    with pullback.recorded_run() as seen:
        run("y = (x * 2).log()  # here", retain_graph=False)
    with pullback.recorded_run() as again:
        run("y = (x * 2).exp()  # here", retain_graph=False)
    assert len(seen.entries) == len(again.entries)


def write_and_log(x: pullback.Tensor, seen: pullback.Tensor) -> pullback.Tensor:
    seen.add_(1)
    return (x * 2).log().sum()


@record_source_lines()
def test_a_compiled_function_that_cannot_run_again_is_named_by_its_call_and_by_what_to_do() -> None:
    compiled = pullback.compile(write_and_log)
    x, seen = pullback.tensor([1.0, -1.0], requires_grad=True), pullback.zeros(2)
    for _ in range(4):
        loss = compiled(x, seen)
        loss.backward()
    assert loss.grad_fn is not None
    assert loss.grad_fn.name() == "CompiledFunctionBackward"
    found = diagnose(loss)
    assert found is not None
    assert (found.kind, found.operands) == ("unknown", {"result": pytest.approx(math.nan, nan_ok=True)})
    assert found.line is not None
    assert found.line.text == "loss = compiled(x, seen)"
    assert "in place of its compiled form" in found.remedy


def root(x: pullback.Tensor) -> pullback.Tensor:
    return (x.sqrt() * 2).sum()


@record_source_lines()
def test_the_operation_inside_of_a_compiled_function_is_named() -> None:
    compiled = pullback.compile(root)
    for value, kind, forward in ((0.0, "division_by_zero", False), (-1.0, "domain", True)):
        x = pullback.tensor([4.0, value], requires_grad=True)
        for _ in range(4):
            loss = compiled(x * 1)
        loss.backward(retain_graph=True)
        found = diagnose(loss)
        assert loss.grad_fn is not None
        assert loss.grad_fn.name() == "CompiledFunctionBackward"
        assert found is not None
        assert (found.operation, found.kind, found.element, found.forward) == ("SqrtBackward0", kind, (1,), forward)
        assert found.line is not None
        assert found.line.text == "return (x.sqrt() * 2).sum()"


@record_source_lines()
def test_a_parameter_that_is_not_finite_is_not_taken_for_data() -> None:
    layer = pullback.nn.Linear(2, 1)
    optimizer = pullback.optim.SGD(layer.parameters(), lr=1e38)
    for _ in range(2):
        loss = layer(pullback.ones(1, 2)).square().sum() * 1e3
        loss.backward()
        optimizer.step()
    loss = layer(pullback.ones(1, 2)).sum()
    loss.backward()
    found = diagnose(loss)
    assert found is not None
    assert found.kind == "nan_came_in"
    assert "is a leaf, and not finite itself" in found.sentence
    assert "learning rate" in found.remedy


@record_source_lines()
def test_of_a_freed_graph_what_grew_is_suspected_before_what_only_adds() -> None:
    x = pullback.tensor([1.0, 200.0], requires_grad=True)
    loss = pullback.where(x < 50, x.exp(), x).sum()
    loss.backward()
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.certain) == ("ExpBackward0", "zero_times_infinity", False)


@record_source_lines()
def test_a_custom_backward_that_records_nothing_is_named_by_its_code() -> None:
    class Log(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clamp(min=1e-30).log()

        @staticmethod
        @pullback.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad / x

    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    loss = Log.apply(x).sum()
    loss.backward(retain_graph=True)
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.element) == ("LogBackward", "division_by_zero", (1,))
    assert "its backward(), at " in found.remedy
    assert "((x,) = ctx.saved_tensors)" in found.remedy


@record_source_lines()
def test_a_gradient_that_an_earlier_pass_left_is_told_apart() -> None:
    x = pullback.tensor([0.0, 1.0], requires_grad=True)
    x.sqrt().sum().backward()
    loss = (x * 2).sum()
    loss.backward(retain_graph=True)
    found = diagnose(loss)
    assert found is not None
    assert (found.kind, found.element) == ("earlier_pass", (0,))
    assert "zero_grad()" in str(found)


@record_source_lines()
def test_a_zero_in_a_vector_is_no_reason_for_its_norm_to_be_suspected() -> None:
    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    angle = (x[0] / x.norm()).acos()
    angle.backward()
    found = diagnose(angle)
    assert found is not None
    assert found.operation == "AcosBackward0"


@record_source_lines()
def test_the_module_is_named() -> None:
    net = pullback.nn.Sequential(pullback.nn.Linear(1, 1), pullback.nn.Linear(1, 1))
    with pullback.no_grad():
        net[1].weight.fill_(float("inf"))
    found = diagnose(net(pullback.ones(1, 1)).sum())
    assert found is not None
    assert found.module == "1"
    assert "in the module 1" in str(found)


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


@pytest.mark.parametrize("reentrant", [False, True])
@record_source_lines()
def test_the_operation_inside_of_a_checkpoint_is_named_and_no_gradient_changes(reentrant: bool) -> None:
    weight = pullback.tensor([0.0, 1.0], requires_grad=True)
    x = pullback.ones(2, requires_grad=True)
    loss = checkpoint(lambda x: (x * weight).sqrt(), x, use_reentrant=reentrant).sum()
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.element) == ("SqrtBackward0", "division_by_zero", (0,))
    assert found.line is not None
    assert found.line.text.startswith("loss = checkpoint(lambda x: (x * weight).sqrt()")
    assert weight.grad is None
    assert x.grad is None


@record_source_lines()
def test_a_page_changes_no_gradient_of_a_reentrant_checkpoint() -> None:
    weight = pullback.tensor([0.0, 1.0], requires_grad=True)
    loss = checkpoint(lambda x: x * weight, pullback.ones(2, requires_grad=True), use_reentrant=True).sum()
    loss.backward(retain_graph=True)
    graph_page(loss)
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0]


@record_source_lines()
def test_values_that_hooks_packed_are_operands_too() -> None:
    with saved_tensors_hooks(lambda tensor: tensor.numpy(force=True), pullback.from_numpy):
        loss = (pullback.zeros(2, requires_grad=True) * 1).log().sum()
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.operands) == ("LogBackward0", "division_by_zero", {"input": 0.0})


@record_source_lines()
def test_a_hook_on_the_way_is_suspected_where_the_pass_is_finite_without_it() -> None:
    x = pullback.ones(2, requires_grad=True)
    hidden = x * 2
    hidden.register_hook(lambda grad: grad * math.nan)
    loss = hidden.sum()
    loss.backward(retain_graph=True)
    found = diagnose(loss)
    assert found is not None
    assert (found.kind, found.certain) == ("hook", False)
    assert found.line is not None
    assert found.line.text == "hidden.register_hook(lambda grad: grad * math.nan)"


@pytest.mark.parametrize("retain_graph", [None, True])
def test_complex_numbers_are_divided_by_zero_as_others_are(retain_graph: bool | None) -> None:
    z = pullback.tensor([1 + 1j, 0j], requires_grad=True)
    loss = (1 / z).abs().sum()
    loss.backward(retain_graph=retain_graph)
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.element) == ("ReciprocalBackward0", "division_by_zero", (1,))


@pytest.mark.parametrize("retain_graph", [True, None])
def test_an_overflow_behind_a_split_is_named_with_its_operand(retain_graph: bool | None) -> None:
    layer = pullback.nn.Linear(2, 4)
    pullback.nn.init.constant_(layer.bias, 500.0)
    with record_source_lines():
        mean, logarithm = layer(pullback.zeros(3, 2)).chunk(2, -1)
        noise = (0.5 * logarithm).exp()
        loss = (mean + noise).sum()
    loss.backward(retain_graph=retain_graph)
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind, found.certain) == ("ExpBackward0", "overflow", True)
    assert found.operands["input"] == 250.0
    assert found.line is not None
    assert found.line.text == "noise = (0.5 * logarithm).exp()"


def test_an_overflow_in_half_precision_is_found_behind_casts() -> None:
    layer = pullback.nn.Linear(4, 4)
    pullback.nn.init.constant_(layer.weight, 0.25)
    with pullback.autocast("cpu", dtype=pullback.float16):
        hidden = layer(pullback.full((2, 4), 6e4))
    loss = (hidden * 1e3).sum()
    found = diagnose(loss)
    assert found is not None
    assert (found.operation, found.kind) == ("MulBackward0", "overflow")


def test_an_infinity_in_the_data_of_a_recurrent_layer_came_in() -> None:
    layer, x = pullback.nn.LSTM(2, 2), pullback.zeros(3, 1, 2)
    x[1, 0, 1] = float("inf")
    found = diagnose(layer(x)[0].sum())
    assert found is not None
    assert (found.kind, found.element, found.operands) == ("nan_came_in", (1, 0, 1), {"input": float("inf")})


def test_a_diagnosis_inside_of_transforms_counts_the_examples() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        loss = pullback.where(x > 0, x.sqrt(), 0.0).sum()
        found = diagnose(loss)
        assert found is not None
        seen.append((found.operation, found.kind, found.element))
        return loss

    pullback.func.grad(function)(pullback.tensor([1.0, 0.0]))
    pullback.vmap(pullback.func.grad(function))(pullback.tensor([[1.0, 1.0], [2.0, 0.0]]))
    assert seen == [
        ("SqrtBackward0", "zero_times_infinity", (1,)), ("SqrtBackward0", "zero_times_infinity", (1, 1)),
    ]  # fmt: skip
