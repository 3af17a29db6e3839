"""Nodes remember their source lines where that is asked for, and errors and pictures show them."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

import pullback
from pullback.autograd.graph import record_source_lines
from pullback.graph.source_lines import place_of
from pullback.utils.graph_picture import graph_tree, make_dot

HERE = Path(__file__).name


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


def test_nothing_is_remembered_by_default_or_after_the_block() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines(), record_source_lines(False):
        inside = x * 3
    assert place_of(inside.grad_fn) is None
    assert place_of((x * 3).grad_fn) is None


def test_pictures_show_the_lines() -> None:
    x = pullback.ones(2, requires_grad=True)
    with record_source_lines():
        y = (x * 3).sum()
    assert f" {HERE}:" in graph_tree(y)
    assert f"{HERE}:" in make_dot(y).source


@record_source_lines()
def _exponential(x: pullback.Tensor) -> pullback.Tensor:
    return pullback.exp(x)


def test_an_error_of_backward_names_the_line_of_its_node() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = _exponential(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    assert caught.value.__notes__[0].startswith("ExpBackward0 was recorded at ")
    assert caught.value.__notes__[0].endswith("(return pullback.exp(x))")


def test_a_second_backward_names_the_line_of_the_freed_node() -> None:
    x = pullback.ones(2, requires_grad=True)
    loss = _exponential(x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time") as caught:
        loss.backward()
    assert "return pullback.exp(x)" in caught.value.__notes__[0]
