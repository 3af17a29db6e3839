"""What the page about a graph is made of; how it looks and acts is tested in a browser (tests/browser)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.modes.switches import switches
from pullback.utils.graph_page import graph_page, watch_backward
from pullback.utils.graph_page.arranging import arrange
from pullback.utils.graph_page.folding import Group, fold
from pullback.utils.graph_page.node_table import Row, read_table


def chain(*labels: str, module: str = "") -> list[Row]:
    """Rows of which each has the next one as its input."""
    rows = [Row("operation", label, label, module=module, sequence_nr=-n) for n, label in enumerate(labels)]
    rows[0].kind = "output"
    for position, row in enumerate(rows[:-1]):
        row.inputs = [position + 1]
    return rows


def outline(group: Group) -> list[Any]:
    return [[item.name, *outline(item)] if isinstance(item, Group) else item for item in group.items]


def test_operations_are_folded_by_module_and_a_module_with_one_is_not() -> None:
    rows = chain("output", "Add", "Relu", "Linear", "Linear")
    for row, module in zip(rows, ["", "", "body", "body.first", "body.last"], strict=True):
        row.module = module
    assert outline(fold(rows)) == [["body", 4, 3, 2], 1, 0]


def test_equal_layers_are_collapsed() -> None:
    rows = chain("output", *["Relu", "Linear"] * 4)
    for number in range(4):
        rows[2 * number + 1].module = rows[2 * number + 2].module = f"layers.{3 - number}"
    (layers,) = [item for item in fold(rows).items if isinstance(item, Group)]
    assert (layers.name, layers.repeats, len(layers.items)) == ("layers", 4, 4)


def test_layers_that_differ_at_the_end_leave_the_equal_ones_collapsed() -> None:
    rows = chain("output", "Sum", "Relu", "Linear", *["Relu", "Linear"] * 3)
    for row, module in zip(rows, ["", *["m.3"] * 3, *["m.2"] * 2, *["m.1"] * 2, *["m.0"] * 2], strict=True):
        row.module = module
    (layers,) = [item for item in fold(rows).items if isinstance(item, Group)]
    assert [(item.name, item.repeats) for item in layers.items if isinstance(item, Group)] == [("0 … 2", 3), ("3", 1)]


@pytest.mark.parametrize(("period", "repeats"), [(1, 300), (2, 150)])
def test_a_long_loop_of_one_or_two_operations_is_one_box_too(period: int, repeats: int) -> None:
    rows = chain("output", "Sum", *["Mul", "Add"][:period] * repeats)
    loop, total, output = fold(rows).items
    assert isinstance(loop, Group)
    assert (loop.repeats, total, output) == (repeats, 1, 0)
    assert len(loop.rows()) == period * repeats


@pytest.mark.parametrize(("count", "expected"), [(8, 8), (9, 1)])
def test_many_operations_side_by_side_are_one_box(count: int, expected: int) -> None:
    rows = chain("output", "Stack", *["Select"] * count, "Embedding")
    rows[1].inputs = list(range(2, 2 + count))
    for row in rows[2 : 2 + count]:
        row.inputs = [2 + count]
    embedding, *selected, stack, output = fold(rows).items
    assert (embedding, stack, output) == (2 + count, 1, 0)
    assert len(selected) == expected
    assert [(item.name, item.repeats) for item in selected if isinstance(item, Group)] == [("Select", 9)] * (count > 8)


def test_the_steps_of_a_loop_are_collapsed_without_any_module() -> None:
    root = fold(chain("output", "Sum", *["Mul", "Tanh", "Add"] * 50))
    repeated = root.items[0]
    assert isinstance(repeated, Group)
    assert (repeated.kind, repeated.repeats) == ("repeat", 50)
    assert len(repeated.rows()) == 150


def test_a_long_list_is_divided_into_blocks() -> None:
    root = fold(chain("output", *[f"Op{n}" for n in range(1000)]))
    assert len(root.items) < 121
    assert root.rows() == list(range(1000, -1, -1))


def test_every_arrow_of_the_graph_has_a_way_between_groups() -> None:
    rows = chain("output", "Add", "Relu", "Linear")
    rows[1].inputs = [2, 3]
    for row in rows[2:]:
        row.module = "m"
    root, inner = arrange(fold(rows), rows)
    assert root["items"] == [-1, 1, 0]
    assert root["chains"] == [[0, 1], [1, 2]]
    assert inner["items"] == [3, 2]
    assert set(inner["exits"]) == {"0", "1"}


def test_groups_that_lead_to_each_other_are_still_arranged() -> None:
    rows = chain("output", "Relu", "Linear", "Relu", "Linear")
    rows[2].module = rows[4].module = "shared"  # used twice: the group leads to Relu and back
    root = arrange(fold(rows), rows)[0]
    assert {place for row in root["rows"] for place in row} >= set(range(len(root["items"])))


def test_modules_are_inferred_from_parameters() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return x + self.inner(x)

    model = nn.Sequential(Residual(), Residual())
    with pullback.autograd.graph.record_source_lines(False):
        rows = read_table([model(pullback.ones(1, 2))], model)
    fold(rows)
    assert [(row.label, row.module) for row in rows if row.kind == "operation"] == [
        ("Add", "1"), ("Add", "0"), ("Linear", "0.inner"), ("Linear", "1.inner"),
    ]  # fmt: skip


def test_a_linear_layer_is_one_box_also_after_somebody_looked_inside() -> None:
    layer = nn.Linear(2, 3)
    y = layer(pullback.ones(1, 2, requires_grad=True)).sum()
    fresh = [row.label for row in read_table([y], layer)]
    assert y.grad_fn.next_functions[0][0].next_functions  # expands the node
    assert (
        [row.label for row in read_table([y], layer)] == fresh == ["output", "Sum", "Linear", "bias", "leaf", "weight"]
    )


def test_steps_hold_the_gradients_and_leave_the_program_as_it_was() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    data = graph_page(loss, {"x": x}).data
    last = data["steps"][-1]
    assert data["nodes"][last["node"]]["name"] == "x"
    assert last["values"] == [2.0, 4.0]
    assert last["grads"][0]["norm"] == pytest.approx(20**0.5, rel=1e-5)
    assert getattr(x, "grad") is None  # noqa: B009  # mypy takes it for None below otherwise
    assert not x._backward_hooks
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_times_are_known_of_every_operation() -> None:
    x = pullback.ones(3, requires_grad=True)
    data = graph_page(x.sin().exp().sum()).data
    assert [step["time"] is not None for step in data["steps"]] == [True, True, True, False]


def test_memory_counts_shared_storage_once_and_ends_empty() -> None:
    x = pullback.ones(256, requires_grad=True)
    y = x.exp()  # saves its result, which the product below saves twice more
    data = graph_page((y * y).sum(), {"x": x}).data
    assert [held for _, _, held in data["memory"]] == [1024, 1024, 1024, 1024, 1024, 0]


def test_leaves_are_named_by_the_variables_of_the_program() -> None:
    weight = pullback.ones(2, requires_grad=True)
    names = [node["name"] for node in graph_page((weight * 2).sum()).data["nodes"]]
    assert "weight" in names


def test_several_outputs_and_larger_ones_are_taken() -> None:
    x = pullback.ones(2, requires_grad=True)
    data = graph_page([x * 2, x * 3], {"x": x}).data
    assert data["steps"][-1]["values"] == [5.0, 5.0]


def test_what_needs_no_gradient_is_refused() -> None:
    with pytest.raises(ValueError, match="none of what was given requires grad"):
        graph_page(pullback.ones(1))


def test_gradients_that_are_not_finite_are_counted_and_fit_into_json() -> None:
    x = pullback.zeros(2, requires_grad=True)
    page = graph_page((x.sqrt() * 1).sum(), {"x": x})
    last = page.data["steps"][-1]
    assert last["grads"][0]["infinities"] == 2
    assert last["values"] == ["inf", "inf"]
    assert json.loads(page.html.partition('id="data">')[2].partition("</script>")[0]) == page.data


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    x = pullback.ones(2, requires_grad=True)
    page = graph_page((x * x).sum())
    text = page.save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "src=" not in text
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_a_watch_measures_the_memory_of_results_and_gradients() -> None:
    x = pullback.ones(256, requires_grad=True)
    with watch_backward({"x": x}, number=2) as watch:
        x.sum().backward()
        (x.exp().sin()).sum().backward()
    assert watch.page is not None
    forward = [held for phase, held, _ in watch.page.data["allocated"] if phase == 0]
    assert forward == [1024, 2048, 2052, 1028]  # what the sum read is freed, what it was made of is saved
    assert any(phase == 1 for phase, _, _ in watch.page.data["allocated"])


def test_a_watch_sees_the_pass_that_it_is_asked_for() -> None:
    x = pullback.ones(2, requires_grad=True)
    with watch_backward({"x": x}, number=2) as watch:
        (x * x).sum().backward()
        (x.exp()).sum().backward()
        (x.sin()).sum().backward()
    assert watch.page is not None
    names = [node["name"] for node in watch.page.data["nodes"]]
    assert "ExpBackward0" in names
    events = {event[0] for event in watch.page.data["events"]}
    assert {"aten::exp", "ExpBackward0"} <= events
    assert "aten::sin" not in events


def test_a_pass_that_fails_is_shown_up_to_there() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="inplace"), watch_backward({"x": x}) as watch:
        z.backward()
    assert watch.page is not None
    assert "ended in InPlaceModificationError" in watch.page.data["notes"][0]
    names = [watch.page.data["nodes"][step["node"]]["name"] for step in watch.page.data["steps"]]
    assert names == ["SumBackward0", "MulBackward0"]


def test_passes_of_transforms_are_watched_up_to_their_inputs() -> None:
    with watch_backward() as watch:
        pullback.func.grad(lambda x: (x * x).sum())(pullback.tensor([1.0, 2.0]))
    assert watch.page is not None
    assert watch.page.data["steps"][-1]["values"] == [2.0, 4.0]


def test_a_pass_inside_of_the_pass_belongs_to_it() -> None:
    from pullback.utils.checkpoint import checkpoint

    layer = nn.Linear(2, 2)
    x = pullback.ones(1, 2, requires_grad=True)
    with watch_backward(layer) as watch:
        checkpoint(layer, x, use_reentrant=True).sum().backward()
    assert watch.passes == 1
    assert watch.page is not None
    names = [watch.page.data["nodes"][step["node"]]["name"] for step in watch.page.data["steps"]]
    assert names == ["SumBackward0", "CheckpointFunctionBackward", "x"]


def test_gradients_of_passes_inside_are_not_taken_for_those_of_the_pass() -> None:
    weight = pullback.ones(2, requires_grad=True)

    class Inner(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with pullback.enable_grad():
                pullback.autograd.grad((weight * 7).sum(), weight)
            return grad * 2

    data = graph_page((Inner.apply(weight) * weight).sum(), {"weight": weight}).data
    arrived = [step["values"] for step in data["steps"] if data["nodes"][step["node"]]["name"] == "weight"]
    assert arrived == [[4.0, 4.0]]


def test_passes_of_other_threads_are_left_alone() -> None:
    x = pullback.ones(2, requires_grad=True)
    with watch_backward() as watch:
        thread = threading.Thread(target=lambda: (x * x).sum().backward())
        thread.start()
        thread.join()
    assert watch.passes == 0
    assert x.grad is not None


def test_leaves_that_another_thread_reaches_meanwhile_are_not_steps() -> None:
    x = pullback.ones(2, requires_grad=True)

    class Meanwhile(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            thread = threading.Thread(target=lambda: (x * 5).sum().backward())
            thread.start()
            thread.join()
            return grad

    data = graph_page(Meanwhile.apply(x * 2).sum(), {"x": x}).data
    arrived = [step["values"] for step in data["steps"] if data["nodes"][step["node"]]["name"] == "x"]
    assert arrived == [[2.0, 2.0]]


def test_a_watch_leaves_the_switches_as_they_were() -> None:
    x = pullback.ones(2, requires_grad=True)
    before = (switches.interceptors, switches.node_observer, switches.changed_switches)
    with watch_backward(), pullback.autocast("cpu"):
        pullback.func.grad(lambda y: (y * y).sum())(pullback.ones(2))
        (x * x).sum().backward()
        assert len(switches.interceptors) == 2
    assert (switches.interceptors, switches.node_observer, switches.changed_switches) == before


def test_the_gradient_of_an_inner_tensor_is_the_last_step() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 3
    with watch_backward() as watch:
        pullback.autograd.grad((y * y).sum(), y)
    assert watch.page is not None
    assert watch.page.data["steps"][-1]["values"] == [6.0, 6.0]


def test_saved_memory_is_that_of_the_report() -> None:
    from pullback.inspection.saved_memory import saved_report

    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    loss = model(pullback.ones(2, 3, 8)).sum()
    data = graph_page(loss, model).data
    held = {saved[4]: saved[3] for node in data["nodes"] for saved in node.get("saved", ())}
    assert sum(held.values()) == saved_report(loss).facts["total_bytes"]
    assert max(size for _, _, size in data["memory"]) == sum(held.values())


def test_the_code_in_the_guide_runs(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "pictures.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(block.replace("/tmp/", f"{tmp_path.as_posix()}/"), names)
    assert {"graph.html", "watched.html", "graph.svg"} <= {path.name for path in tmp_path.iterdir()}


SCRIPT = """
import torch
model = torch.nn.Linear(2, 1)
for number in range(3):
    model(torch.ones(1, 2)).sum().backward()
    print("pass", number)
"""


def view(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "pullback", "view", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_view_writes_the_page_and_ends_the_program(tmp_path: Path) -> None:
    done = view(tmp_path, "--no-open", "script.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert "script.graph.html" in done.stderr
    assert '"weight"' in (tmp_path / "script.graph.html").read_text(encoding="utf-8")


def test_view_lets_the_program_go_on_where_it_is_asked_to(tmp_path: Path) -> None:
    done = view(tmp_path, "--no-open", "--pass", "2", "--keep-running", "--output", "page.html", "script.py")
    assert done.stdout == "pass 0\npass 1\npass 2\n"
    assert (tmp_path / "page.html").exists()


def test_view_says_when_there_was_nothing_to_show(tmp_path: Path) -> None:
    done = view(tmp_path, "--pass", "9", "script.py")
    assert done.returncode == 1
    assert "no backward pass number 9 to show: only 3 ran" in done.stderr


def test_view_shows_an_error_of_the_program_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    command = [sys.executable, "-m", "pullback", "view", str(tmp_path / "wrong.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "graph_page" not in done.stderr


def test_events_stand_inside_of_their_modules() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    with watch_backward(model) as watch:
        model(pullback.ones(1, 2)).sum().backward()
    assert watch.page is not None
    forward = sorted(
        (event for event in watch.page.data["events"] if not event[4]), key=lambda event: (event[1], event[3])
    )
    depths = [(name, depth) for name, _, _, depth, _, _ in forward if name in ("Sequential", "0", "1", "aten::linear")]
    assert depths == [
        ("Sequential", 0), ("0", 1), ("aten::linear", 2), ("1", 1), ("0", 2), ("aten::linear", 3), ("1", 2), ("aten::linear", 3),
    ]  # fmt: skip
    outer, inner = forward[0], forward[-2]
    assert outer[1] <= inner[1]
    assert outer[1] + outer[2] >= inner[1] + inner[2] - 0.1


@pytest.mark.parametrize("retain_graph", [True, False])
def test_a_profile_writes_the_page_with_its_times_and_its_memory(tmp_path: Path, retain_graph: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with pullback.profiler.profile(profile_memory=True) as prof:
        loss = model(pullback.ones(5, 4)).square().mean()
        loss.backward(retain_graph=retain_graph)
    page = graph_page(loss, model, profiled=prof)
    forward, backward = ({event[0] for event in page.data["events"] if event[4] == phase} for phase in (0, 1))
    assert "aten::linear" in forward
    assert any("AddmmBackward0" in name for name in backward)
    assert max(entry[1] for entry in page.data["allocated"]) >= 160
    assert bool(page.data["steps"]) == retain_graph
    prof.export_page(str(tmp_path / "page.html"), loss, model)
    assert "aten::linear" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("wait", ["thread.join()", "time.sleep(60)"])
def test_a_pass_in_a_thread_of_a_program_is_shown_and_ends_the_program(tmp_path: Path, wait: str) -> None:
    script, output = tmp_path / "script.py", tmp_path / "page.html"
    script.write_text(
        "import threading, time\nimport torch\nw = torch.ones(3, requires_grad=True)\n"
        "thread = threading.Thread(target=lambda: w.sinh().sum().backward())\n"
        f"thread.start()\n{wait}\nprint('went on')\n"
    )
    command = [sys.executable, "-m", "pullback", "view", "--no-open", "--output", str(output), str(script)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=50)
    assert "SinhBackward0" in output.read_text()
    assert (done.stdout, done.stderr) == ("", f"pullback: the page is {output}\n")
