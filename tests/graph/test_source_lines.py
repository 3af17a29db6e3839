"""Nodes and in-place writes remember their source lines and modules, and errors and pictures show them."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import linecache
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.autograd.graph import module_path_of, record_source_lines, set_source_lines, source_line_of
from pullback.graph.source_lines import CHEAP, HIDDEN, WRITES_KEPT, place_of
from pullback.inspection.nodes import nodes_behind, tensors_in
from pullback.native import extension
from pullback.utils.graph_picture import graph_tree, make_dot
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import SAMPLES

HERE = Path(__file__).name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_node_of_every_operation_knows_its_line(sample: Sample) -> None:
    inputs = [pullback.tensor(array, requires_grad=array.dtype.kind in "fc") for array in sample.arrays()]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    with record_source_lines():
        results = [tensor for tensor in tensors_in(sample.call(*inputs)) if tensor.grad_fn is not None]
        sums = [tensor.abs().sum() for tensor in results]
        gradients = pullback.autograd.grad(sums, wanted, create_graph=sample.second_order, allow_unused=True)
    nodes = nodes_behind([*results, *[grad for grad in gradients if grad is not None]])
    assert {node.name() for node in nodes if source_line_of(node) is None} <= {"torch::autograd::AccumulateGrad"}


def test_a_node_knows_the_line_that_recorded_it() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines():
        y = x * 3
    file, line = place_of(y.grad_fn) or ("", 0)
    assert (Path(file).name, linecache.getline(file, line).strip()) == (HERE, "y = x * 3")


def test_layers_are_named_by_the_line_that_calls_them() -> None:
    layer = pullback.nn.Linear(2, 1)
    with record_source_lines():
        y = layer(pullback.ones(1, 2))
    file, line = place_of(y.grad_fn) or ("", 0)
    assert linecache.getline(file, line).strip() == "y = layer(pullback.ones(1, 2))"


def test_nothing_is_remembered_where_it_is_turned_off() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines(), record_source_lines(False):
        inside = x * 3
    former = set_source_lines(False)
    after = x * 3
    set_source_lines(former)
    assert place_of(inside.grad_fn) is None
    assert place_of(after.grad_fn) is None


def test_lines_are_on_by_default_where_they_are_cheap() -> None:
    former = set_source_lines(True)
    set_source_lines(former)
    assert former == CHEAP
    assert (extension is not None) == CHEAP


@record_source_lines()
def test_the_same_place_gives_the_same_object() -> None:
    x = pullback.ones(2, requires_grad=True)
    first, second = [source_line_of((x * 3).grad_fn) for _ in range(2)]
    assert first is not None
    assert (first is second) == CHEAP


class Twice(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


@record_source_lines()
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("y = x[0]", "SelectBackward0"),
        ("y = Twice.apply(x)", "TwiceBackward"),
        ("y = pullback.complex(x, x).imag", "SelectBackward0"),
        ("y = x.sum().to(pullback.float64)", "ToCopyBackward0"),
        ("y = pullback.utils.checkpoint.checkpoint(pullback.exp, x, use_reentrant=True)", "CheckpointFunctionBackward"),
    ],
)
def test_every_kind_of_node_knows_its_line(text: str, name: str) -> None:
    scope: dict[str, Any] = {"pullback": pullback, "Twice": Twice, "x": pullback.ones(2, requires_grad=True)}
    exec(compile(f"\n\n{text}", "a program", "exec"), scope)
    assert scope["y"].grad_fn.name() == name
    assert place_of(scope["y"].grad_fn) == ("a program", 3)


@record_source_lines()
def test_the_base_of_a_modified_view_knows_the_line_that_modified_it() -> None:
    x = pullback.ones(2, requires_grad=True).clone()
    x[0].mul_(2)
    line = source_line_of(x.grad_fn)
    assert line is not None
    assert line.text == "x[0].mul_(2)"


@record_source_lines()
def test_writes_are_noted_newest_last() -> None:
    x, y = pullback.ones(2), pullback.ones(2)
    x.add_(1)
    x[0] = 3
    pullback.exp(y, out=x)
    x.copy_(y)
    lines = x._counter.lines if x._counter is not None else None
    assert [line.text for line in lines or ()] == ["x.add_(1)", "x[0] = 3", "pullback.exp(y, out=x)", "x.copy_(y)"]


@record_source_lines()
def test_a_step_of_an_optimizer_is_a_write() -> None:
    x = pullback.ones(2, requires_grad=True)
    optimizer = pullback.optim.SGD([x], lr=0.1)
    x.sum().backward()
    optimizer.step()
    lines = x._counter.lines if x._counter is not None else None
    assert [line.text for line in lines or ()] == ["optimizer.step()"]


@record_source_lines()
def test_only_the_last_writes_are_kept() -> None:
    x = pullback.ones(2)
    for _ in range(1000):
        x.add_(1)
    assert x._counter is not None
    assert WRITES_KEPT <= len(x._counter.lines or ()) <= 2 * WRITES_KEPT


@record_source_lines()
def test_a_node_that_was_freed_knows_the_backward_that_did_it() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    assert y.grad_fn is not None
    assert y.grad_fn.freed_by is not None
    assert y.grad_fn.freed_by.line.text == "y.sum().backward()"


class _Net(pullback.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.ReLU())
        self.loose = [pullback.nn.Tanh()]

    def forward(self, x: Any) -> Any:
        hidden = self.encoder(x)
        return hidden, self.loose[0](hidden), hidden * 2


@record_source_lines()
def test_a_node_knows_the_path_of_its_module() -> None:
    module = _Net()
    hidden, loose, own = module(pullback.ones(1, 2))
    names = {"hidden": hidden, "loose": loose, "own": own, "outside": own * 2}
    assert {name: module_path_of(value.grad_fn) for name, value in names.items()} == {
        "hidden": "encoder.1", "loose": "Tanh", "own": "", "outside": None,
    }  # fmt: skip
    assert module_path_of(hidden.grad_fn.next_functions[0][0]) == "encoder.0"


@record_source_lines()
def test_the_module_is_left_when_its_forward_raises() -> None:
    layer = pullback.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="shapes"):
        layer(pullback.ones(3, 3))
    assert module_path_of((pullback.ones(1, requires_grad=True) * 2).grad_fn) is None


def test_a_thread_has_its_own_module_and_line() -> None:
    x = pullback.ones(2, requires_grad=True)
    seen: list[Any] = []

    def work() -> None:
        with record_source_lines():
            seen.append((x * 2).grad_fn)

    def run_thread(*_: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    layer = pullback.nn.Linear(2, 2)
    layer.register_forward_pre_hook(run_thread)
    layer(x)
    assert module_path_of(seen[0]) is None
    line = source_line_of(seen[0])
    assert line is not None
    assert line.text == "seen.append((x * 2).grad_fn)"


@record_source_lines()
def test_transforms_keep_the_line_of_the_function() -> None:
    seen: list[Any] = []

    def square(x: Any) -> Any:
        y = x * x
        seen.append(source_line_of(y.grad_fn))
        return y.sum()

    pullback.func.grad(square)(pullback.ones(2))
    pullback.func.vmap(pullback.func.grad(square))(pullback.ones(2, 2))
    assert seen[0].text == "y = x * x"


@record_source_lines()
def test_a_library_that_asks_for_it_is_passed_over() -> None:
    library: dict[str, Any] = {HIDDEN: True}
    exec("def double(x):\n    return x * 2", library)
    y = library["double"](pullback.ones(2, requires_grad=True))
    line = source_line_of(y.grad_fn)
    assert line is not None
    assert line.text == 'y = library["double"](pullback.ones(2, requires_grad=True))'


@record_source_lines()
def test_pythons_own_library_is_passed_over() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = copy.deepcopy(x) * 1
    cached = functools.lru_cache(pullback.exp)(x)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        z = pool.submit(pullback.exp, x).result()
    lines = [source_line_of(value.grad_fn) for value in (y, cached, z)]
    assert [line and line.text for line in lines[:2]] == [
        "y = copy.deepcopy(x) * 1", "cached = functools.lru_cache(pullback.exp)(x)",
    ]  # fmt: skip
    assert lines[2] is None


def test_nodes_of_a_recorded_backward_know_the_line_of_its_call() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines():
        (grad,) = pullback.autograd.grad((x * x * x).sum(), x, create_graph=True)
    line = source_line_of(grad.grad_fn)
    assert line is not None
    assert line.text == "(grad,) = pullback.autograd.grad((x * x * x).sum(), x, create_graph=True)"


def test_a_library_that_is_not_built_gives_the_same_lines() -> None:
    program = (
        "import pullback\n"
        "from pullback.autograd.graph import source_line_of, module_path_of, set_source_lines\n"
        "set_source_lines(True)\n"
        "net = pullback.nn.Sequential(pullback.nn.Linear(1, 1))\n"
        "y = net(pullback.ones(1, 1))\n"
        "y.detach().add_(1)\n"
        "print(source_line_of(y.grad_fn).place[1], module_path_of(y.grad_fn), y._counter.lines[0].place[1])\n"
    )
    for native in "01":
        environment = {**os.environ, "PULLBACK_NATIVE": native}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "5 0 6\n"


def test_pictures_show_the_lines() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines():
        y = (x * 3).sum()
    assert f" {HERE}:" in graph_tree(y, show_lines=True)
    assert f"{HERE}:" in make_dot(y, show_attrs=True).source


@record_source_lines()
def _exponential(x: pullback.Tensor) -> pullback.Tensor:
    return pullback.exp(x)


def test_an_error_of_backward_names_the_line_of_its_node() -> None:
    class Fails(Twice):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("no")

    with record_source_lines():
        y = Fails.apply(pullback.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="no") as caught:
        y.sum().backward()
    assert caught.value.__notes__[0].startswith("FailsBackward was recorded at ")
    assert caught.value.__notes__[0].endswith("(y = Fails.apply(pullback.ones(2, requires_grad=True)))")
    assert caught.value.__notes__[1].startswith(f"Its backward() stands at {__file__}:")


@record_source_lines()
def test_an_in_place_error_names_every_write_since_the_save_and_the_line_that_saved() -> None:
    x = pullback.ones(2, requires_grad=True)
    factor = pullback.ones(2)
    factor.add_(1)
    y = x * factor
    factor.add_(2)
    factor[0] = 3
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    message = str(caught.value)
    assert "factor.add_(1)" not in message
    assert message.index("(factor.add_(2)); at ") < message.index("(factor[0] = 3). MulBackward0 had saved it at ")
    assert message.endswith(
        "(y = x * factor). Use the out-of-place form there, or clone() the tensor before it is modified."
    )


@record_source_lines()
def test_writes_that_are_not_kept_any_more_are_counted() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.exp()
    for _ in range(1000):
        y.detach().add_(1)
    with pytest.raises(RuntimeError, match=r"add_\(1\)\), \d\d times; and by \d\d\d earlier writes"):
        y.sum().backward()


@record_source_lines()
def test_a_second_backward_names_the_lines_that_recorded_and_freed_the_node() -> None:
    x = pullback.ones(2, requires_grad=True)
    loss = _exponential(x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time") as caught:
        loss.backward()
    assert "ExpBackward0 released its saved values" in str(caught.value)
    assert "(return pullback.exp(x)), freed by the backward at " in str(caught.value)
    assert "(loss.backward())." in str(caught.value)


@record_source_lines()
def test_a_second_backward_of_the_same_line_is_told_of_what_a_loop_carries_over() -> None:
    state = pullback.ones(2, requires_grad=True).exp()
    carried = "Where a loop carries it over from turn to turn, detach() it there"

    def turn() -> None:
        state.sum().backward()

    turn()
    with pytest.raises(RuntimeError, match="a second time") as caught:
        turn()
    assert carried in str(caught.value)
    with pytest.raises(RuntimeError, match="a second time") as caught:
        state.sum().backward()
    assert carried not in str(caught.value)


@record_source_lines()
def test_a_second_backward_of_a_compiled_function_names_its_lines() -> None:
    compiled, x = pullback.compile(_exponential), pullback.ones(2, requires_grad=True)
    for _ in range(3):
        y = compiled(x)
    assert compiled.runs == 1, [stop.describe() for kind in compiled.kinds.values() for stop in kind.stops]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="CompiledFunctionBackward released its saved values") as caught:
        y.sum().backward()
    assert "(y = compiled(x)), freed by the backward at " in str(caught.value)


@record_source_lines()
def test_an_inference_tensor_names_the_line_that_made_it() -> None:
    with pullback.inference_mode():
        made = pullback.ones(2) * 2
    with pytest.raises(RuntimeError, match=r"Inference tensors cannot be saved .*\(made = pullback.ones\(2\) \* 2\)"):
        pullback.ones(2, requires_grad=True) * made
    with pytest.raises(RuntimeError, match=r"Inplace update to inference tensor .*\(made = pullback.ones\(2\) \* 2\)"):
        made.add_(1)
    with pytest.raises(RuntimeError, match=r"Setting requires_grad=True on .*\(made = pullback.ones\(2\) \* 2\)"):
        made.requires_grad_()


@record_source_lines()
def test_a_view_or_alias_of_an_inference_tensor_names_the_line_that_made_the_tensor() -> None:
    with pullback.inference_mode():
        made = pullback.ones(2, 2) * 2
    made_there = r"It was made in inference mode at .*\(made = pullback.ones\(2, 2\) \* 2\)"
    with pytest.raises(RuntimeError, match=f"Inplace update to inference tensor .*{made_there}"):
        made[0] = 1.0
    for alias in (made[0], made.view(4), made.detach()):
        with pytest.raises(RuntimeError, match=f"Inference tensors cannot be saved .*{made_there}"):
            pullback.ones(alias.shape, requires_grad=True) * alias
    with pytest.raises(RuntimeError, match=f"Inference tensors do not track version counter. {made_there}"):
        made._version


def test_errors_say_what_they_can_without_lines() -> None:
    with record_source_lines(False):
        y = pullback.ones(2, requires_grad=True).exp()
        y.mul_(2)
        with pytest.raises(RuntimeError, match=r"expected version 0 instead\. Hint: enable anomaly"):
            y.sum().backward()


@record_source_lines()
def test_errors_name_the_modules_where_one_line_calls_them_all() -> None:
    net = pullback.nn.Sequential(pullback.nn.Sigmoid(), pullback.nn.ReLU(inplace=True))
    loss = net(pullback.ones(2, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match=r"saved, at .*, in the module 1\. SigmoidBackward0 .*, in the module 0\."):
        loss.backward()
