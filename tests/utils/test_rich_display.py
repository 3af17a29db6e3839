"""Notebooks show tensors, modules and graphs with what one would look up next."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest

import pullback
from pullback import nn


def test_a_tensor_shows_its_text_its_facts_and_its_distribution() -> None:
    shown = (pullback.arange(6.0, requires_grad=True) * 2)._repr_html_()
    assert "<pre>tensor([ 0.,  2.,  4.,  6.,  8., 10.], grad_fn=&lt;MulBackward0&gt;)</pre>" in shown
    assert "shape (6,) · float32 · cpu · 24 B · mean 5 · from 0 to 10 · made by MulBackward0" in shown
    assert shown.count("<rect") == 6


def test_what_is_not_finite_is_counted() -> None:
    assert "1 NaN, 1 infinite" in pullback.tensor([1.0, float("nan"), float("inf")])._repr_html_()


@pytest.mark.parametrize(
    "tensor",
    [pullback.empty(0), pullback.tensor(3), pullback.tensor([True, False]), pullback.ones(2, 3, device="meta"),
     pullback.ones(2, dtype=pullback.complex64), pullback.ones(3, dtype=pullback.bfloat16), pullback.eye(2).to_sparse(),
     nn.Parameter(pullback.ones(2)), pullback.full((3,), float("nan"))],
    ids=lambda t: str(t.dtype),
)  # fmt: skip
def test_every_kind_of_tensor_is_shown(tensor: pullback.Tensor) -> None:
    xml.etree.ElementTree.fromstring(tensor._repr_html_())


def test_a_tensor_inside_of_a_transform_is_shown() -> None:
    seen: list[str] = []

    def look(x: pullback.Tensor) -> pullback.Tensor:
        seen.append(x._repr_html_())
        return x

    pullback.vmap(look)(pullback.ones(2, 3))
    assert "BatchedTensor" in seen[0]


def test_a_module_is_a_tree_with_its_parameters_counted() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    model[0].weight.requires_grad_(False)
    shown = model._repr_html_()
    xml.etree.ElementTree.fromstring(shown.replace("<details open>", "<details>"))
    assert "(0): Linear(in_features=2, out_features=3, bias=True)" in shown
    assert "9 parameters, 36 B" in shown
    assert "13 parameters, 52 B, 7 of them trained" in shown
    assert shown.count("<details") == 2


def test_a_node_shows_the_graph_behind_it() -> None:
    layer = nn.Linear(2, 3)
    shown = layer(pullback.ones(1, 2)).relu().grad_fn._repr_html_()
    assert shown.startswith("<svg")
    assert "Linear: AddmmBackward0" in shown


def test_a_large_graph_is_shown_as_the_beginning_of_its_tree() -> None:
    y = pullback.ones(1, requires_grad=True)
    for _ in range(200):
        y = y * 2
    assert y.grad_fn is not None
    shown = y.grad_fn._repr_html_()
    assert shown.startswith("<pre>MulBackward0")
    assert "more lines" in shown or "..." in shown
