"""The graphs and the derivatives in each input are PyTorch's, and the comparisons find what is wrong on purpose."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

import torch

from .each_input import compare_each_input
from .entries import Entry, database
from .exceptions import NOT_SHOWN
from .graphs import compare_graphs


def entry(name: str) -> Entry:
    return next(e for e in database() if e.name == name)


@pytest.mark.parametrize(
    "name", ["mul", "prod", "nn.functional.linear", "nn.functional.conv2d", "nn.functional.nll_loss"]
)
def test_graphs_are_those_of_pytorch(name: str) -> None:
    made, differences = compare_graphs(entry(name))
    assert made
    assert not [words for kind, _, words in differences if kind == "differ"]


@pytest.mark.parametrize("node", NOT_SHOWN)
def test_what_nodes_do_not_show_is_what_the_list_says(node: str) -> None:
    kind = getattr(torch._C._functions, node)
    theirs = {name.removeprefix("_saved_") for name in dir(kind) if name.startswith("_saved_")}
    assert set(NOT_SHOWN[node][0].split()) <= theirs


def test_another_chain_of_operations_is_found() -> None:
    def plant(function: Any) -> Any:
        return lambda input, other, **options: -function(-input, other, **options)

    _, differences = compare_graphs(entry("mul"), plant)
    assert any("expected MulBackward0" in words for _, _, words in differences)


@pytest.mark.parametrize(
    "name",
    ["nn.functional.binary_cross_entropy_with_logits", "nn.functional.multi_margin_loss", "nn.functional.batch_norm"],
)
def test_derivatives_in_each_input_are_those_of_pytorch(name: str) -> None:
    made, differences = compare_each_input(entry(name))
    assert made
    assert not differences
