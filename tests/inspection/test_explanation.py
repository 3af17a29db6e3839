"""`explain_grad` names the cause of a missing gradient: one program per cause, with its exact code and line.

The line that must be named is marked `# here`; in front of it stand unrelated operations that look alike.
"""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import weakref
from functools import partial
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import record_source_lines
from pullback.inspection import explanation as explanation_module
from pullback.inspection.explanation import Explanation, Explanations, explain_grad
from pullback.inspection.nodes import nodes_behind
from pullback.modes.cuts import clear_cuts, cuts
from pullback.tensor.tensor import Tensor

START = """
import pullback as torch
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
other = (torch.ones(3, requires_grad=True) * 2)
other.detach(), other.data, other.sum().item(), other > 1, other.argmax()
with torch.no_grad():
    other * 2

def body(h):
    return h.exp()
"""

PROGRAMS = {
    "not_a_leaf": """
w = w * 2  # here
loss = w.sum()
loss.backward()
""",
    "frozen": """
w.requires_grad_(False)  # here
loss = (w * v).sum()
loss.backward()
""",
    "never_used": """
loss = v.sum()
loss.backward()
""",
    "detach": """
loss = (body(w).detach() + v).sum()  # here
loss.backward()
""",
    "data": """
loss = (v * w.data).sum()  # here
loss.backward()
""",
    "no_grad": """
with torch.no_grad():
    h = body(w * 2)  # here
loss = (h + v).sum()
loss.backward()
""",
    "inference_mode": """
with torch.inference_mode():
    h = w * 2  # here
loss = (h.clone() + v).sum()
loss.backward()
""",
    "integer_cast": """
h = body(w)
loss = (h.long() + v).sum()  # here
loss.backward()
""",
    "argmax": """
h = body(w).argmax()  # here
loss = (v * h).sum()
loss.backward()
""",
    "comparison": """
mask = body(w) > 1  # here
loss = (v * mask).sum()
loss.backward()
""",
    "item": """
scale = body(w).sum().item()  # here
loss = (v * scale).sum()
loss.backward()
""",
    "numpy": """
import numpy
values = numpy.sin(body(w).detach().numpy())  # here
loss = (v * torch.from_numpy(values)).sum()
loss.backward()
""",
    "copy": """
h = torch.tensor(body(w))  # here
loss = (v * h).sum()
loss.backward()
""",
    "function_returned_none": """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y
    @staticmethod
    def backward(ctx, grad):
        return None, grad
loss = Scale.apply(body(w), v).sum()  # here
loss.backward()
""",
    "hook_returned_zeros": """
h = body(w)
h.register_hook(lambda grad: grad * 0)  # here
loss = (h * v).sum()
loss.backward()
""",
    "backward_not_called": """
loss = (w * v).sum()
""",
    "gradient_gone": """
loss = (w * v).sum()
loss.backward()  # here
torch.optim.SGD([w, v]).zero_grad()
""",
    "loss_is_a_leaf": """
loss = v.sum().detach().requires_grad_()
loss.backward()
""",
    "has_gradient": """
loss = (w * v).sum()
loss.backward()
""",
    "zero_gradient": """
loss = (w * 0).sum()  # here
loss.backward(retain_graph=True)
""",
    "non_differentiable": """
h = torch.signbit(body(w))  # here
loss = (h + v).sum()
loss.backward()
""",
}


def run(text: str) -> tuple[dict[str, Any], int | None]:
    """The variables of a program, and the number of its marked line."""
    clear_cuts()
    scope: dict[str, Any] = {}
    whole = START + text
    linecache.cache["a program"] = (len(whole), None, whole.splitlines(keepends=True), "a program")
    with record_source_lines():
        exec(compile(whole, "a program", "exec"), scope)
    marked = [number for number, line in enumerate(whole.splitlines(), 1) if line.endswith("# here")]
    return scope, marked[0] if marked else None


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("code", PROGRAMS)
def test_each_cause_has_its_code_and_line(code: str) -> None:
    scope, line = run(PROGRAMS[code])
    explanation = explain_grad(scope["w"], scope["loss"])
    assert isinstance(explanation, Explanation)
    assert explanation.code == code
    assert (None if explanation.line is None else explanation.line.place) == (
        None if line is None else ("a program", line)
    )
    assert explanation.certain
    assert explanation.remedy in str(explanation)


SIBLINGS = [
    ("argmax", "i = body(w).max(0).indices  # here\nloss = v[i]"),
    ("argmax", "i = w.topk(2)[1]  # here\nloss = v[i].sum()"),
    ("argmax", "i = body(w).sort()[1]  # here\nloss = v[i].sum()"),
    ("item", "import math\nscale = math.exp(w.sum())  # here\nloss = (v * scale).sum()"),
    ("no_grad", "h = torch.zeros(3)\nwith torch.no_grad():\n    h.add_(w)  # here\nloss = (h * v).sum()"),
    ("no_grad", "h = torch.zeros(3)\nwith torch.no_grad():\n    h.copy_(w)  # here\nloss = (h * v).sum()"),
    ("no_grad", "h = torch.zeros(3)\nwith torch.no_grad():\n    h[:] = w  # here\nloss = (h * v).sum()"),
    ("data", "h = torch.zeros(3)\nh.data = body(w)  # here\nloss = (h * v).sum()"),
    ("integer_cast", "h = torch.zeros(3, dtype=torch.int64)\nh.copy_(w)  # here\nloss = (h * v).sum()"),
    ("integer_cast", "h = torch.zeros(3, dtype=torch.int64)\nh[1:] = body(w[1:])  # here\nloss = (h * v).sum()"),
    ("argmax", "i = torch.multinomial(body(w), 2)  # here\nloss = v[i].sum()"),
    ("argmax", "i = body(w).nonzero()  # here\nloss = v[i].sum()"),
    ("argmax", "i = torch.bucketize(body(w), torch.arange(3.0))  # here\nloss = v[i.clamp(0, 2)].sum()"),
    ("comparison", "i = torch.isin(body(w), torch.ones(2))  # here\nloss = (v * i).sum()"),
    ("new_parameter", "h = torch.nn.Parameter(body(w))  # here\nloss = (h * v).sum()"),
    ("numpy", "h = torch.from_numpy(\n    body(w)\n    .data  # here\n    .numpy()\n)\nloss = (h * v).sum()"),
    ("numpy", "import numpy\nh = numpy.asarray(w.detach())  # here\nloss = (torch.tensor(h) * v).sum()"),
    (
        "numpy",
        "import numpy\nh = body(w).detach()  # here\ng = numpy.sin(h.cpu().numpy())\nloss = (torch.tensor(g) * v).sum()",
    ),
    ("sample", "h = torch.distributions.Normal(w, 1.0).sample()  # here\nloss = (h * v).sum()"),
    ("detach", "h = (\n    body(w)\n    .detach()  # here\n    .mul(v)\n)\nloss = h.sum()"),
]


def test_an_error_about_a_released_graph_names_the_release() -> None:
    scope, line = run("loss = w.exp().sum()\ntorch.autograd.graph.release(loss)  # here")
    with pytest.raises(
        RuntimeError, match=rf"release\(\) freed the graph behind it, at a program:{line} .*compute the result anew"
    ):
        scope["loss"].backward()


def test_a_distribution_that_looks_at_its_parameters_cuts_nothing() -> None:
    scope, _ = run("torch.distributions.Normal(w, 1.0)\nloss = v.sum()\nloss.backward()")
    explanation = explain_grad(scope["w"], scope["loss"])
    assert isinstance(explanation, Explanation)
    assert explanation.code == "never_used"


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(("code", "text"), SIBLINGS)
def test_siblings_of_the_causes_are_told_with_their_lines(code: str, text: str) -> None:
    scope, line = run(text)
    scope["loss"].backward()
    explanation = explain_grad(scope["w"], scope["loss"])
    assert isinstance(explanation, Explanation)
    assert explanation.code == code
    assert explanation.line is not None
    assert explanation.line.place == ("a program", line)


FUNCTION = """
class Act(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept = x + 1
        return CODE
    @staticmethod
    def backward(ctx, grad):
        return RESULT
"""
FUNCTIONS = [
    ("has_gradient", "kept.sin()", "grad", "loss = (Act.apply(body(w)) * v).sum()"),
    ("has_gradient", "torch.tensor(x.detach().numpy() * x.sum().item())", "grad", "loss = (Act.apply(w) * v).sum()"),
    ("function_returned_none", "kept", "None", "h = Act.apply(body(w))  # here\nloss = (h * v).sum()"),
    ("non_differentiable", "x.argsort()", "grad", "h = Act.apply(body(w))  # here\nloss = (h * v).sum()"),
    ("no_grad", "x * w  # here", "grad", "loss = (Act.apply(v) * v).sum()"),
]


@pytest.mark.parametrize(("code", "forward", "result", "text"), FUNCTIONS)
def test_the_forward_of_a_custom_function_is_told_apart_from_its_backward(
    code: str, forward: str, result: str, text: str
) -> None:
    scope, line = run(FUNCTION.replace("CODE", forward).replace("RESULT", result) + text)
    before = explain_grad(scope["w"])
    scope["loss"].backward()
    after, with_loss = explain_grad(scope["w"]), explain_grad(scope["w"], scope["loss"])
    assert isinstance(before, Explanation)
    assert isinstance(after, Explanation)
    assert isinstance(with_loss, Explanation)
    assert after.code == with_loss.code == code
    assert (None if after.line is None else after.line.place[1]) == line
    assert before.code == (code if code in ("non_differentiable", "no_grad") else "not_known")


LOSSES = {
    "detach": "loss = (w * v).sum().detach()  # here",
    "no_grad": "with torch.no_grad():\n    loss = (w * v).sum()  # here",
    "inference_mode": "with torch.inference_mode():\n    loss = (w * v).sum()  # here",
    "integer_cast": "loss = (w * v).sum().long()  # here",
    "item": "loss = torch.tensor(body(w).sum().item())  # here",
    "comparison": "loss = (body(w) > 1).float().mean()  # here",
    "argmax": "loss = body(w).argmax().float()  # here",
}


@pytest.mark.parametrize("code", LOSSES)
def test_a_loss_without_history_names_what_cut_it(code: str) -> None:
    scope, line = run(LOSSES[code])
    for explanation in (explain_grad(scope["loss"]), explain_grad(scope["w"], scope["loss"])):
        assert isinstance(explanation, Explanation)
        assert explanation.code == code
        assert explanation.line is not None
        assert explanation.line.place[1] == line


def test_backward_of_a_loss_without_history_names_what_cut_it() -> None:
    scope, line = run("loss = (w * v).sum().detach()  # here")
    with pytest.raises(
        RuntimeError, match=rf"does not have a grad_fn.* Here detach\(\) cut it off, at a program:{line} .*Leave"
    ):
        scope["loss"].backward()


@record_source_lines()
def test_a_gradient_computed_without_a_graph_is_told_of() -> None:
    clear_cuts()
    w = pullback.ones(3, requires_grad=True)
    (slope,) = pullback.autograd.grad((w**3).sum(), w)
    penalty = (slope.norm() - 1) ** 2
    for explanation in (explain_grad(slope), explain_grad(penalty), explain_grad(w, penalty)):
        assert isinstance(explanation, Explanation)
        assert explanation.code == "gradient"
        assert explanation.line is not None
        assert explanation.line.text == "(slope,) = pullback.autograd.grad((w**3).sum(), w)"
        assert "create_graph=True" in explanation.remedy
    with pytest.raises(RuntimeError, match=r"Here it is a gradient that autograd\.grad\(\) computed"):
        slope.backward(slope)
    loss = (pullback.ones(1, requires_grad=True) * penalty).sum()
    unused = explain_grad(w, loss)
    assert isinstance(unused, Explanation)
    assert unused.code == "never_used"


@record_source_lines()
def test_an_input_that_grad_does_not_reach_is_told_of_with_the_line_that_cut_it_off() -> None:
    clear_cuts()
    w, v = pullback.ones(3, requires_grad=True), pullback.ones(3, requires_grad=True)
    hidden = w.detach()
    with pytest.raises(
        RuntimeError, match=r"desired behavior\. Perhaps detach\(\) cut it off, at .*hidden = w\.detach\(\)"
    ):
        pullback.autograd.grad((hidden * v).sum(), [v, w])
    with pytest.raises(RuntimeError, match=r"desired behavior\.$"):
        pullback.autograd.grad(hidden.sum() * v.sum(), [v, pullback.ones(1, requires_grad=True)])


def test_backward_does_not_guess_which_line_cut_a_loss_off() -> None:
    scope, _ = run("with torch.no_grad():\n    h = w.exp()\nloss = h.sum()")
    with pytest.raises(RuntimeError, match=r"from a detach\(\)ed tensor\. Of a loss, explain_grad\(loss\) names .*\.$"):
        scope["loss"].backward()


def test_a_loss_of_constants_says_that_nothing_requires_grad() -> None:
    clear_cuts()
    explanation = explain_grad((pullback.ones(3) * 2).sum())
    assert isinstance(explanation, Explanation)
    assert explanation.code == "no_input_requires_grad"


@record_source_lines()
def test_a_loss_of_frozen_parameters_names_the_line_that_froze_them() -> None:
    clear_cuts()
    layer = pullback.nn.Linear(2, 1)
    layer.requires_grad_(False)
    explanation = explain_grad(layer(pullback.ones(1, 2)).sum())
    assert isinstance(explanation, Explanation)
    assert (explanation.code, explanation.certain) == ("no_input_requires_grad", False)
    assert explanation.line is not None
    assert explanation.line.text == "layer.requires_grad_(False)"


class _Net(pullback.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.ReLU())
        self.head = pullback.nn.Linear(2, 1)
        self.spare = pullback.nn.Linear(2, 1)
        self.head.bias.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        hidden = self.encoder(x).detach()
        return self.head(hidden)


@record_source_lines()
def test_a_module_is_explained_by_the_names_of_its_parameters() -> None:
    net = _Net()
    pullback.nn.init.ones_(net.encoder[0].weight)
    net.state_dict()
    loss = net(pullback.ones(1, 2)).sum()
    loss.backward()
    explained = explain_grad(net, loss)
    assert isinstance(explained, Explanations)
    assert {name: entry.code for name, entry in explained.items()} == {
        "encoder.0.weight": "detach", "encoder.0.bias": "detach", "head.bias": "frozen",
        "spare.weight": "never_used", "spare.bias": "never_used",
    }  # fmt: skip
    line = explained["encoder.0.weight"].line
    assert line is not None
    assert line.text == "hidden = self.encoder(x).detach()"
    assert "head.bias: it does not require grad [frozen]" in str(explained)


@record_source_lines()
def test_without_the_loss_nothing_is_said_about_it() -> None:
    layer = pullback.nn.Linear(2, 1)
    layer(pullback.ones(1, 2)).sum().backward()
    layer.zero_grad()
    explanation = explain_grad(layer.weight)
    assert isinstance(explanation, Explanation)
    assert explanation.code == "not_known"


@record_source_lines()
def test_a_pass_through_another_loss_is_not_taken_for_one_through_this() -> None:
    encoder, head = pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 1)
    hidden = encoder(pullback.ones(1, 2))
    first, second = head(hidden).sum(), hidden.square().sum()
    second.backward()
    codes = [{entry.code for entry in explain_grad(head, loss).values()} for loss in (first, second)]  # type: ignore[union-attr]
    assert codes == [{"backward_not_called"}, {"never_used"}]


@record_source_lines()
def test_a_gradient_of_another_loss_is_told_apart() -> None:
    layer = pullback.nn.Linear(2, 1)
    layer(pullback.ones(1, 2)).sum().backward()
    with pullback.no_grad():
        hidden = layer(pullback.ones(1, 2))
    loss = (hidden * pullback.ones(1, requires_grad=True)).sum()
    explanation = explain_grad(layer.weight, loss)
    assert isinstance(explanation, Explanation)
    assert explanation.code == "no_grad"
    assert explanation.sentence.endswith("; the gradient that it has is of another loss")
    assert explanation.line is not None
    assert explanation.line.text == "hidden = layer(pullback.ones(1, 2))"


def test_parameters_that_saturated_units_starve_are_told_of_with_the_operation() -> None:
    net = pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.ReLU(), pullback.nn.Linear(3, 1))
    pullback.nn.init.constant_(net[0].bias, -10.0)
    loss = net(pullback.ones(4, 2)).mean()
    loss.backward(retain_graph=True)
    explained = explain_grad(net, loss)
    assert isinstance(explained, Explanations)
    assert {name: entry.sentence.split(": ")[1] for name, entry in explained.items() if name != "2.weight"} == {
        "0.weight": "ReluBackward0 made it so", "0.bias": "ReluBackward0 made it so",
    }  # fmt: skip


class _Lists(pullback.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 2)]
        self.blocks = {"last": (pullback.nn.Linear(2, 2),)}
        self.scale = pullback.ones(2, requires_grad=True)
        self.teacher = [pullback.nn.Linear(2, 2)]
        self.head = pullback.nn.Linear(2, 1)

    def forward(self, x: Any) -> Any:
        for layer in (*self.layers, self.blocks["last"][0]):
            x = layer(x).sigmoid()
        return self.head(x * self.scale)


def test_what_a_module_holds_without_knowing_it_is_named() -> None:
    net = _Lists()
    loss = net(pullback.ones(1, 2)).sum()
    loss.backward()
    explained = explain_grad(net, loss)
    assert isinstance(explained, Explanations)
    assert {name: entry.code for name, entry in explained.items()} == dict.fromkeys(
        ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "blocks.last.0.weight",
         "blocks.last.0.bias", "scale"], "not_registered",
    )  # fmt: skip
    assert "it is in a plain list, which parameters()" in explained["layers.0.weight"].sentence
    others = [leaf for layer in net.layers for leaf in layer.parameters()]
    optimizer = pullback.optim.SGD([*net.parameters(), *others, net.scale, *net.blocks["last"][0].parameters()], lr=0.1)
    assert str(explain_grad(net, loss)) == "every parameter has a gradient"
    del optimizer


def test_a_parameter_that_was_replaced_after_the_optimizer_was_made_is_named() -> None:
    layer = pullback.nn.Linear(2, 1)
    optimizer = pullback.optim.SGD(layer.parameters(), lr=0.1)
    layer.weight = pullback.nn.Parameter(pullback.ones(1, 2))
    loss = layer(pullback.ones(1, 2)).sum()
    loss.backward()
    of_module, of_optimizer = explain_grad(layer, loss), explain_grad(optimizer, loss)
    assert isinstance(of_module, Explanations)
    assert isinstance(of_optimizer, Explanations)
    assert {name: entry.code for name, entry in of_module.items()} == {"weight": "not_in_optimizer"}
    assert {name: entry.code for name, entry in of_optimizer.items()} == {
        "param_groups[0]['params'][0]": "replaced", "step()": "never_stepped",
    }  # fmt: skip
    optimizer.step()
    optimizer.add_param_group({"params": [layer.weight]})
    assert not explain_grad(layer, loss)
    of_optimizer = explain_grad(optimizer, loss)
    assert isinstance(of_optimizer, Explanations)
    assert list(of_optimizer) == ["param_groups[0]['params'][0]"]


def test_an_optimizer_of_an_earlier_model_is_noticed() -> None:
    optimizer = pullback.optim.SGD(pullback.nn.Linear(2, 1).parameters(), lr=0.1)
    layer = pullback.nn.Linear(2, 1)
    layer(pullback.ones(1, 2)).sum().backward()
    explained = explain_grad(layer)
    assert isinstance(explained, Explanations)
    assert {entry.code for entry in explained.values()} == {"not_in_optimizer"}
    del optimizer


def test_an_optimizer_tells_names_that_it_was_given() -> None:
    layer, other = pullback.nn.Linear(2, 1), pullback.nn.Linear(2, 1)
    optimizer = pullback.optim.Adam([*layer.named_parameters(), ("spare", other.weight)], lr=0.1)
    loss = layer(pullback.ones(1, 2)).sum()
    loss.backward()
    optimizer.step()
    explained = explain_grad(optimizer, loss)
    assert isinstance(explained, Explanations)
    assert {name: entry.code for name, entry in explained.items()} == {"spare": "never_used"}
    optimizer.param_groups[0]["lr"] = 0.0
    explained = explain_grad(optimizer, loss)
    assert isinstance(explained, Explanations)
    assert [entry.code for entry in explained.values()] == ["never_used", "zero_rate"]


@record_source_lines()
def test_a_line_tells_of_each_of_the_first_leaves_that_it_cut_off() -> None:
    clear_cuts()
    leaves = [pullback.ones(2, requires_grad=True) for _ in range(7)]
    for leaf in leaves:
        (leaf * 2).detach()
    loss = pullback.ones(1, requires_grad=True).sum()
    assert {explain_grad(leaf, loss).code for leaf in leaves} == {"detach"}  # type: ignore[union-attr]


@record_source_lines()
def test_every_parameter_that_one_line_froze_is_told_of_with_the_line() -> None:
    clear_cuts()
    parameters = pullback.nn.ParameterList([pullback.ones(1) for _ in range(300)])
    for parameter in parameters:
        parameter.requires_grad = False
    explained = explain_grad(parameters)
    assert isinstance(explained, Explanations)
    assert {entry.line and entry.line.text for entry in explained.values()} == {"parameter.requires_grad = False"}


def kill(module: Any, grad_input: Any, grad_output: Any) -> Any:
    return tuple(grad * 0 for grad in grad_input)


def let_pass(factor: float, module: Any, grad_input: Any, grad_output: Any) -> Any:
    return tuple(grad * factor for grad in grad_input)


@record_source_lines()
def test_a_hook_of_a_module_that_returned_zeros_is_named_itself() -> None:
    net = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 1))
    net[1].register_full_backward_hook(partial(let_pass, 2.0))
    net[2].register_full_backward_hook(kill)
    loss = net(pullback.ones(1, 2)).sum()
    loss.backward()
    explained = explain_grad(net, loss)
    assert isinstance(explained, Explanations)
    assert list(explained) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    for entry in explained.values():
        assert entry.code == "hook_returned_zeros"
        assert entry.line is not None
        assert entry.line.place == (__file__, kill.__code__.co_firstlineno)


@record_source_lines()
def test_a_hook_that_was_given_zeros_is_not_blamed_for_them() -> None:
    w = pullback.ones(2, requires_grad=True)
    w.register_hook(lambda grad: grad * 2)
    loss = (w * 0).sum()
    loss.backward()
    explanation = explain_grad(w, loss)
    assert isinstance(explanation, Explanation)
    assert explanation.code == "zero_gradient"


@record_source_lines()
def test_the_operation_that_made_zeros_of_a_gradient_is_named() -> None:
    w, mask = pullback.ones(2, requires_grad=True), pullback.zeros(2)
    hidden = w.exp()
    masked = hidden * mask
    loss = masked.sum()
    loss.backward(retain_graph=True)
    explanation = explain_grad(w, loss)
    assert isinstance(explanation, Explanation)
    assert "MulBackward0 made it so" in explanation.sentence
    assert explanation.line is not None
    assert explanation.line.text == "masked = hidden * mask"
    loss.backward()
    assert "retain_graph=True" in str(explain_grad(w, loss))


def test_saving_a_model_is_not_mistaken_for_a_cut() -> None:
    clear_cuts()
    layer = pullback.nn.Linear(2, 1)
    with record_source_lines():
        layer.state_dict()
        loss = pullback.ones(1, requires_grad=True).sum()
        loss.backward()
    explanation = explain_grad(layer.weight, loss)
    assert isinstance(explanation, Explanation)
    assert explanation.code == "never_used"


@record_source_lines()
def test_a_line_that_runs_often_is_one_note() -> None:
    clear_cuts()
    w = pullback.ones(2, requires_grad=True)
    for _ in range(100):
        w.exp().detach()
    assert len(cuts()) == 1


@record_source_lines()
def test_notes_keep_nothing_alive() -> None:
    clear_cuts()
    w = pullback.ones(2, requires_grad=True)
    h = w.exp()
    detached = h.detach()
    references = [weakref.ref(h), weakref.ref(detached), weakref.ref(w)]
    del w, h, detached
    assert [reference() for reference in references] == [None, None, None]


def test_without_source_lines_nothing_is_noted() -> None:
    clear_cuts()
    with record_source_lines(False):
        pullback.ones(2, requires_grad=True).detach()
    assert cuts() == []


def test_the_same_is_said_where_nothing_is_compiled() -> None:
    program = (
        "import pullback\n"
        "pullback.autograd.graph.set_source_lines(True)\n"
        "w, v = pullback.ones(2, requires_grad=True), pullback.ones(2, requires_grad=True)\n"
        "for _ in range(3):\n"
        "    loss = (w.exp().detach() * v).sum()\n"
        "loss.backward()\n"
        "explanation = pullback.explain_grad(w, loss)\n"
        "print(explanation.code, explanation.line.place[1])\n"
    )
    environment = {**os.environ, "PULLBACK_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "detach 5\n"


def detached(x: Tensor, w: Tensor) -> Tensor:
    y = (x * w).detach()
    return (y * w).sum()


def found_largest(x: Tensor, w: Tensor) -> Tensor:
    return w.sum() + x.argmax()


def used_without_grad(x: Tensor, w: Tensor) -> Tensor:
    with pullback.no_grad():
        y = x * 3
    return (y * w).sum()


@pytest.mark.parametrize(
    ("function", "code", "offset"),
    [(detached, "detach", 1), (found_largest, "argmax", 1), (used_without_grad, "no_grad", 2)],
)
@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (3, 4, 5, 6)])
def test_a_compiled_function_names_the_line_for_arguments_it_never_saw(
    function: Any, code: str, offset: int, sizes: tuple[int, ...]
) -> None:
    clear_cuts()
    elsewhere = pullback.ones(3, requires_grad=True)
    elsewhere.data.add_(1)
    compiled = pullback.compile(function, dynamic=len(set(sizes)) > 1)
    for size in sizes:
        x, w = pullback.ones(size, requires_grad=True), pullback.ones(size, requires_grad=True)
        loss = compiled(x, w)
        loss.backward()
    explanation = explain_grad(x, loss)
    assert isinstance(explanation, Explanation)
    assert explanation.code == code
    assert explanation.line is not None
    assert explanation.line.place == (__file__, function.__code__.co_firstlineno + offset)
    assert loss.grad_fn is not None
    assert loss.grad_fn.name() == "CompiledFunctionBackward"


@record_source_lines()
def test_cuts_of_what_a_program_has_left_behind_are_not_suspected() -> None:
    clear_cuts()
    gone = pullback.ones(2, requires_grad=True)
    _ = gone.detach()
    del gone
    explanation = explain_grad((pullback.ones(2) * 2).sum())
    assert isinstance(explanation, Explanation)
    assert (explanation.code, explanation.line) == ("no_input_requires_grad", None)


@record_source_lines()
def test_a_guess_about_a_loss_says_what_else_it_may_be() -> None:
    clear_cuts()
    w = pullback.ones(2, requires_grad=True)
    with pullback.no_grad():
        loss = (w * 2).sum()
    explanation = explain_grad((loss * 2).clone())
    assert isinstance(explanation, Explanation)
    assert (explanation.code, explanation.certain) == ("no_grad", False)
    assert "unless nothing that it was computed from requires grad" in str(explanation)


@pytest.mark.parametrize("step", ["round", "floor", "sign"])
def test_of_a_freed_graph_a_step_is_named_that_always_gives_zeros(step: str) -> None:
    w = pullback.rand(3, requires_grad=True)
    loss = (getattr(w * pullback.rand(3), step)() * pullback.rand(3)).sum()
    loss.backward()
    explanation = explain_grad(w, loss)
    assert isinstance(explanation, Explanation)
    assert explanation.code == "zero_gradient"
    assert explanation.sentence.endswith(f": {step.title()}Backward0 made it so")


def test_the_module_is_named_where_one_line_calls_several() -> None:
    net = pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.ReLU())
    pullback.nn.init.constant_(net[0].bias, -10.0)
    with record_source_lines():
        loss = net(pullback.zeros(4, 2)).mean()
    loss.backward(retain_graph=True)
    assert "(loss = net(pullback.zeros(4, 2)).mean()), in the module 1\n" in str(explain_grad(net[0].bias, loss))


def test_several_tensors_are_explained_by_their_names() -> None:
    used, unused = pullback.ones(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    loss = used.sum()
    loss.backward()
    explained = explain_grad({"used": used, "unused": unused}, loss)
    assert isinstance(explained, Explanations)
    assert {name: entry.code for name, entry in explained.items()} == {"unused": "never_used"}
    assert explain_grad([used, unused], loss).keys() == {"1"}  # type: ignore[union-attr]


_THROUGH_NUMPY = """
import numpy as np
def program(v):
    values = v.detach().cpu()  # here
    return torch.as_tensor({use})
loss = (program(w) * v).sum()
"""


@pytest.mark.parametrize(
    ("use", "code"),
    [("values.numpy() * 2", "numpy"), ("np.sin(values)", "numpy"), ("values * values.numpy()", "detach")],
)
def test_values_that_only_go_to_numpy_are_told_of_as_such(use: str, code: str) -> None:
    scope, line = run(_THROUGH_NUMPY.format(use=use))
    explanation = explain_grad(scope["w"], scope["loss"])
    assert isinstance(explanation, Explanation)
    assert explanation.line is not None
    assert (explanation.code, explanation.line.place[1]) == (code, line)


def test_a_module_of_many_layers_is_explained_by_one_look_at_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    net = pullback.nn.Sequential(*[pullback.nn.Linear(2, 2) for _ in range(20)])
    loss = (net(pullback.ones(1, 2)) * 0.0).sum()
    loss.backward()
    walks = []

    def walk(tensors: Any) -> Any:
        walks.append(tensors)
        return nodes_behind(tensors)

    monkeypatch.setattr(explanation_module, "nodes_behind", walk)
    assert len(explain_grad(net, loss)) == 40  # type: ignore[arg-type]
    assert len(walks) == 1


@record_source_lines()
def test_the_last_result_of_a_line_that_runs_again_and_again_is_known() -> None:
    clear_cuts()
    w = pullback.ones(2, requires_grad=True)
    references = []
    for step in range(20):
        h = w.detach()
        if step % 3 == 0:
            references.append(weakref.ref(h))  # one that the program holds is not used for another tensor
        (cut,) = cuts()
        assert cut.result is not None
        assert cut.result() is h
    assert references.pop()() is None
    assert {reference() for reference in references} == {None}
    assert weakref.ref(h)() is h
    del h
    assert cut.result is not None
    assert cut.result() is None


def test_a_gradient_without_elements_is_one() -> None:
    x = pullback.empty(0, 2, requires_grad=True)
    loss = x.sum()
    loss.backward()
    assert explain_grad(x, loss).code == "has_gradient"  # type: ignore[union-attr]
