"""The profiler: names, the schedule of its steps, and what its switches ask for."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.autograd.graph import record_source_lines
from pullback.graph.source_lines import source_line_of
from pullback.profiler import profile, record_function, schedule


class Net(nn.Module):
    """Two layers, called on lines of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.second(x.relu())


def profiled(**options: Any) -> Any:
    model, inputs = Net(), pullback.ones(3, 4)
    with profile(**options) as recorded:
        model(inputs).sum().backward()
    return recorded


def event(recorded: Any, name: str) -> Any:
    return next(e for e in recorded.events() if e.name == name)


def test_a_layer_appears_under_the_name_of_its_operation() -> None:
    layer, inputs = nn.Linear(2, 3), pullback.ones(1, 2)
    with profile() as recorded:
        layer(inputs)
    assert [event.key for event in recorded.key_averages()] == ["aten::linear"]


def test_a_trace_is_handed_over_after_its_last_step() -> None:
    seen: list[int] = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda prof: seen.append(prof.step_num)
    ) as recorded:
        for _ in range(5):
            recorded.step()
    assert seen == [4]


def test_shapes_are_recorded_where_asked_for() -> None:
    assert event(profiled(), "aten::linear").input_shapes == []
    assert event(profiled(record_shapes=True), "aten::linear").input_shapes == [[3, 4], [8, 4], [8]]


def test_averages_by_shape_keep_calls_of_other_shapes_apart() -> None:
    averages = profiled(record_shapes=True).key_averages(group_by_input_shape=True)
    assert [e.count for e in averages if e.key == "aten::linear"] == [1, 1]
    assert "Input Shapes" in averages.table()


def test_flops_of_a_layer_are_those_of_its_product() -> None:
    recorded = profiled(with_flops=True)
    assert event(recorded, "aten::linear").flops == 2 * 3 * 4 * 8
    assert "Total FLOPs" in recorded.key_averages().table()
    # the first layer's input wants no gradient, the second's does
    assert [e.flops for e in recorded.events() if e.name == "AddmmBackward0"] == [2 * 2 * 3 * 8 * 2, 2 * 3 * 4 * 8]


def test_stacks_name_the_lines_of_the_program() -> None:
    stack = event(profiled(with_stack=True), "aten::relu").stack
    assert stack[0].startswith(__file__)
    assert stack[0].endswith("forward")
    assert not any("/src/pullback/" in frame for frame in stack)


def test_memory_ends_where_what_is_still_held_is() -> None:
    x = pullback.ones(256, requires_grad=True)
    with profile(profile_memory=True) as recorded:
        y = x * 2
        z = y * 3
        del y
    timeline = recorded.memory_timeline()
    assert [(e.operation, e.bytes) for e in timeline] == [("aten::mul", 1024), ("aten::mul", 1024), ("", -1024)]
    assert timeline[-1].total_bytes == z._array.nbytes
    assert "Self CPU Mem" in recorded.key_averages().table()


def test_arguments_that_were_there_before_are_no_allocations() -> None:
    x = pullback.ones(256)
    with profile(profile_memory=True) as recorded:
        x.view(16, 16)
        x.add_(1)
    assert recorded.memory_timeline() == []


def test_a_profile_without_memory_has_no_timeline() -> None:
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        profiled().memory_timeline()


def test_time_by_line_and_module_counts_gradients_where_the_operation_was() -> None:
    recorded = profiled()
    modules = {row["module"]: row for row in recorded.by_module().rows}
    assert {"Net", "Net.first", "Net.second"} <= set(modules)
    assert modules["Net.first"]["forward_us"] > 0
    assert modules["Net.first"]["backward_us"] > 0
    lines = {row["line"]: row for row in recorded.by_line().rows}
    first = Net.forward.__code__.co_firstlineno + 1
    assert lines[f"{__file__}:{first}"]["calls"] == 2
    assert sum(row["total_us"] for row in lines.values()) == pytest.approx(recorded.by_line().facts["total_us"])


def test_a_trace_has_events_arrows_and_memory(tmp_path: Path) -> None:
    recorded = profiled(profile_memory=True, record_shapes=True)
    for name, opened in (("trace.json", open), ("trace.json.gz", gzip.open)):
        recorded.export_chrome_trace(str(tmp_path / name))
        with opened(tmp_path / name, "rt") as file:
            trace = json.load(file)
        events = trace["traceEvents"]
        assert trace["schemaVersion"] == 1
        assert trace["record_shapes"] == 1
        assert {e["ph"] for e in events} >= {"X", "s", "f", "i", "C"}
        linear = next(e for e in events if e["name"] == "aten::linear")
        assert linear["args"]["Input Dims"] == [[3, 4], [8, 4], [8]]
        assert isinstance(linear["pid"], int)


def test_stacks_are_exported_outermost_first(tmp_path: Path) -> None:
    profiled(with_stack=True).export_stacks(str(tmp_path / "stacks.txt"), "cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    linear = next(line for line in lines if ";aten::linear " in line)
    assert linear.index("profiled") < linear.index("forward")
    with pytest.raises(RuntimeError, match="with_stack=True"):
        profiled().export_stacks(str(tmp_path / "stacks.txt"))


def test_a_profile_is_plain_data_too() -> None:
    data = profiled(profile_memory=True).to_dict()
    assert json.loads(json.dumps(data)) == data
    inner = next(e for e in data["events"] if e["name"] == "AddmmBackward0")
    assert data["events"][inner["parent"]]["name"] == "autograd::engine::evaluate_function: AddmmBackward0"
    assert data["memory"][0]["bytes"] > 0


def test_blocks_are_named_inside_of_two_profiles() -> None:
    with profile() as outer, profile() as inner, record_function("mine"):
        pullback.ones(1, requires_grad=True).exp().backward()
    assert "mine" in [e.name for e in inner.events()]
    assert "ExpBackward0" in [e.name for e in inner.events()]
    assert "ExpBackward0" in [e.name for e in outer.events()]


def test_another_thread_is_not_profiled() -> None:
    def work() -> None:
        pullback.ones(1, requires_grad=True).exp().backward()

    with profile() as recorded:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert recorded.events() == []


def test_a_profile_shows_itself_in_notebooks() -> None:
    assert "<table>" in profiled()._repr_html_()
    assert "<td>aten::linear</td>" in profiled().by_operation()._repr_html_()


def test_a_trace_carries_what_the_program_adds(tmp_path: Path) -> None:
    recorded = profiled()
    recorded.add_metadata("run", "seven")
    recorded.add_metadata_json("sizes", "[1, 2]")
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert (trace["run"], trace["sizes"]) == ("seven", [1, 2])


def test_gradients_of_views_and_of_earlier_operations_have_their_lines() -> None:
    x = pullback.ones(4, 3, requires_grad=True)
    with record_source_lines():
        before = x * 2
        source = source_line_of(before.grad_fn)
        assert source is not None
        line = source.place[1]
        with profile() as recorded:
            before.view(6, 2).t().sum().backward()
    backward = {event.name: event.line for event in recorded.events() if event.name.endswith("Backward0")}
    expected = {"SumBackward0": 5, "ViewBackward0": 5, "TBackward0": 5, "MulBackward0": 0}
    nodes = {name: f"{__file__}:{line + after}" for name, after in expected.items()}
    assert {name: backward[name] for name in nodes} == nodes
