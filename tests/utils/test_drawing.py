"""Drawing has the methods of graphviz's Digraph that programs use; torchviz's functions go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pullback
from pullback.utils.graph_picture import Drawing, make_dot, make_dot_from_trace, resize_graph


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Drawing:
    monkeypatch.setattr("pullback.utils.drawing.shutil.which", lambda name: None)  # no graphviz, no viewer
    return make_dot((pullback.ones(2, requires_grad=True) * 2).sum())


def test_attributes_of_graph_nodes_and_edges_are_written(drawing: Drawing) -> None:
    drawing.attr(rankdir="LR")
    drawing.attr("node", shape="oval")
    drawing.node("a", "A box")
    drawing.edge("a", "0", color="red")
    drawing.graph_attr["size"] = "7,7"
    lines = drawing.source.replace("\t", "").splitlines()
    assert lines[1] == 'graph [size="7,7"]'
    assert lines[-5:] == ["rankdir=LR", "node [shape=oval]", 'a [label="A box"]', "a -> 0 [color=red]", "}"]


def test_render_names_the_picture_by_outfile(drawing: Drawing, tmp_path: Path) -> None:
    assert drawing.render(outfile=tmp_path / "graph.svg") == str(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")
    assert (tmp_path / "graph.gv").read_text() == drawing.source


def test_render_draws_an_svg_where_graphviz_is_missing(drawing: Drawing, tmp_path: Path) -> None:
    path = drawing.render("graph", tmp_path, format="png", cleanup=True)
    assert path == str(tmp_path / "graph.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["graph.svg"]


def test_view_returns_the_path_also_where_nothing_can_open_it(drawing: Drawing, tmp_path: Path) -> None:
    assert Path(drawing.view("graph", tmp_path, format="svg")).exists()


def test_pipe_gives_bytes_or_text(drawing: Drawing) -> None:
    assert drawing.pipe("svg").startswith(b"<svg")
    assert drawing.pipe("svg", encoding="utf-8") == drawing._repr_svg_()


def test_resize_graph_follows_the_number_of_statements(drawing: Drawing) -> None:
    drawing.body.extend(["\tx\n"] * 100)
    resize_graph(drawing, size_per_element=0.5, min_size=3)
    size = len(drawing.body) / 2
    assert drawing.graph_attr["size"] == f"{size:g},{size:g}"


def test_traces_are_not_drawn() -> None:
    with pytest.raises(NotImplementedError, match="moved to pytorch core"):
        make_dot_from_trace(None)
