"""The pictures of a graph show its nodes, its leaves and their names."""

from __future__ import annotations

import xml.etree.ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pullback.utils.graph_picture import graph_tree, make_dot, read_graph, save_svg


class FakeNode:
    """A node as the pictures read it, so that they are tested without an engine."""

    def __init__(self, name: str, *inputs: Any, variable: Any = None) -> None:
        self._name = name
        self.next_functions = tuple((node, 0) for node in inputs)
        if variable is not None:
            self.variable = variable

    def name(self) -> str:
        return self._name


def tensor(*shape: int, grad_fn: FakeNode | None = None) -> Any:
    return SimpleNamespace(shape=shape, grad_fn=grad_fn)


@pytest.fixture
def square() -> tuple[Any, Any]:
    """The sum of x * x * constant, and x."""
    x = tensor(3)
    accumulator = FakeNode("torch::autograd::AccumulateGrad", variable=x)
    product = FakeNode("MulBackward0", accumulator, accumulator)
    scaled = FakeNode("MulBackward0", product, None)
    return tensor(grad_fn=FakeNode("SumBackward0", scaled)), x


def test_tree_names_leaves_and_marks_what_it_has_shown(square: tuple[Any, Any]) -> None:
    y, x = square
    assert graph_tree(y, {"x": x}).splitlines() == [
        "SumBackward0",
        "└── MulBackward0",
        "    └── MulBackward0",
        "        ├── x (3,)",
        "        └── x (3,) (seen above)",
    ]


def test_tree_of_a_leaf_is_its_name() -> None:
    assert graph_tree(tensor(2)) == "leaf (2,)"


def test_tree_of_a_deep_graph_is_cut() -> None:
    node = FakeNode("AccumulateGrad", variable=tensor(1))
    for _ in range(5000):
        node = FakeNode("MulBackward0", node)
    lines = graph_tree(tensor(1, grad_fn=node), max_depth=10).splitlines()
    assert len(lines) == 12
    assert lines[-1].strip() == "└── ..."


def test_graph_has_one_box_per_node_and_one_arrow_per_use(square: tuple[Any, Any]) -> None:
    y, x = square
    picture = read_graph(y, [("x", x)])
    assert [box.lines[0] for box in picture.boxes] == ["output", "SumBackward0", "MulBackward0", "MulBackward0", "x"]
    assert sorted(picture.arrows) == [(1, 0), (2, 1), (3, 2), (4, 3), (4, 3)]


def test_several_outputs_share_their_graph(square: tuple[Any, Any]) -> None:
    y, _ = square
    kinds = [box.kind for box in read_graph((y, y)).boxes]
    assert kinds.count("output") == 2
    assert kinds.count("leaf") == 1


def test_dot_shows_the_accumulator_apart_from_the_leaf(square: tuple[Any, Any]) -> None:
    y, x = square
    source = make_dot(y, params={'a "leaf"': x}).source
    assert source.startswith("digraph {")
    assert '[label="AccumulateGrad"' in source
    assert '[label="a \\"leaf\\"\\n(3,)"' in source


def test_params_may_be_a_module(square: tuple[Any, Any]) -> None:
    y, x = square
    module = SimpleNamespace(named_parameters=lambda: iter([("weight", x)]))
    assert "weight (3,)" in graph_tree(y, module)


def test_svg_is_well_formed_and_shows_every_label(square: tuple[Any, Any], tmp_path: Path) -> None:
    y, x = square
    path = save_svg(y, tmp_path / "graph.svg", {"<x>": x})
    texts = [text for text in xml.etree.ElementTree.parse(path).getroot().itertext() if text.strip()]
    assert {"<x>", "MulBackward0", "SumBackward0", "output"} <= set(texts)


def test_render_draws_an_svg_without_graphviz(
    square: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    path = make_dot(square[0]).render("graph", directory=tmp_path, format="png", cleanup=True)
    assert [Path(path)] == list(tmp_path.iterdir())
    assert Path(path).name == "graph.svg"


def test_attributes_and_saved_tensors_are_shown_on_demand(square: tuple[Any, Any]) -> None:
    y, x = square
    y.grad_fn._saved_dim = (0, 1)
    y.grad_fn._saved_self = x
    source = make_dot(y, show_attrs=True, show_saved=True).source
    assert '"SumBackward0\\ndim = (0, 1)\\nself = tensor (3,)"' in source
    assert '[label="self\\n(3,)"' in source


def test_released_value_is_told_as_such() -> None:
    class ReleasedNode(FakeNode):
        @property
        def _saved_self(self) -> Any:
            raise RuntimeError("Trying to backward through the graph a second time")

    assert "self = released" in make_dot(tensor(grad_fn=ReleasedNode("ExpBackward0")), show_attrs=True).source


def test_the_tree_shows_saved_values_and_source_lines() -> None:
    import warnings

    import pullback
    from pullback.utils.graph_picture import graph_tree

    x = pullback.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pullback.autograd.detect_anomaly():
            y = (x * x).sum()
    text = graph_tree(y, {"x": x}, show_saved=True, show_lines=True)
    assert "test_graph_picture.py:" in text
    assert "self=tensor (2,)" in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_of_a_tree_is_wider_than_the_terminal(width: int) -> None:
    import pullback

    x = y = pullback.ones(2, requires_grad=True)
    for _ in range(50):
        y = (y * x).relu() + y
    text = graph_tree(y, {"x": x}, max_depth=1000, width=width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("ReluBackward0" in line for line in lines) == 50
    assert {f"[{n}]" for n in range(1, 4)} <= {word for line in lines for word in line.split()}


def test_a_tree_follows_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    node = FakeNode("AccumulateGrad", variable=tensor(1))
    for _ in range(50):
        node = FakeNode("MulBackward0", node)
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, graph_tree(tensor(1, grad_fn=node)).splitlines())) <= 70


def test_a_linear_layer_reads_as_what_it_is() -> None:
    import pullback

    layer = pullback.nn.Linear(2, 3)
    y = layer(pullback.ones(4, 2))
    assert graph_tree(y, layer).splitlines() == ["Linear: AddmmBackward0 (4, 3)", "├── bias (3,)", "└── weight (3, 2)"]
    assert [box.lines[0] for box in read_graph(y, layer).boxes] == [
        "output",
        "Linear: AddmmBackward0",
        "bias",
        "weight",
    ]
    assert '"TBackward0' in make_dot(y, show_attrs=True).source  # its steps, where what they saved is shown


def test_graphviz_draws_what_is_rendered(tmp_path: Path) -> None:
    import shutil

    import pullback

    if shutil.which("dot") is None:
        pytest.skip("Graphviz's program dot is not installed")
    layer = pullback.nn.Linear(2, 3)
    drawing = make_dot(
        layer(pullback.ones(4, 2)).sum(), dict(layer.named_parameters()), show_attrs=True, show_saved=True
    )
    assert Path(drawing.render("graph", tmp_path, format="png")).read_bytes().startswith(b"\x89PNG")
    assert Path(drawing.render("graph", tmp_path)).suffix == ".pdf"
