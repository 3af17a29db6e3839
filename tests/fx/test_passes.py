"""Passes over graphs: patterns that follow each other, submodules, fused layers, forms in the text."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import fx, nn
from pullback.fx.experimental.optimization import fuse, remove_dropout
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.fx.passes.shape_prop import ShapeProp
from pullback.fx.passes.split_module import split_module


def test_pattern_whose_result_is_the_input_of_the_next_match_is_replaced_too() -> None:
    traced = fx.symbolic_trace(lambda a: pullback.add(pullback.add(a, 1), a))
    matches = fx.replace_pattern(traced, lambda x, y: pullback.add(x, y), lambda x, y: pullback.mul(x, y))
    traced.graph.lint()
    assert [node.name for node in traced.graph.nodes] == ["a", "mul", "mul_1", "output"]
    assert len(matches) == 2
    assert traced(pullback.tensor(3.0)).item() == 9.0


def test_readable_text_has_dtypes_and_sizes() -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2)))
    assert '"f32' not in traced.print_readable(print_output=False)
    ShapeProp(traced).propagate(pullback.ones(4, 3))
    text = traced.print_readable(print_output=False)
    assert 'def forward(self, input: "f32[4, 3]"):' in text
    assert '_0: "f32[4, 2]" = getattr(self, "0")(' in text
    assert "f32" not in traced.code
    assert '"b8[2]"' in make_fx(lambda x: x > 0)(pullback.ones(2)).print_readable(print_output=False)


def test_module_is_split_where_the_function_says() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2), nn.Tanh())
    traced, names = fx.symbolic_trace(model), dict[str, str]()
    split = split_module(traced, model, lambda node: int(str(node.target)) // 2, names)
    assert [name for name, _ in split.named_children()] == ["submod_0", "submod_1"]
    assert names == {"submod_0.0": "0", "submod_0.1": "1", "submod_1.2": "2", "submod_1.3": "3"}
    x = pullback.ones(1, 2)
    pullback.testing.assert_close(split(x), model(x))
    assert {id(p) for p in split.parameters()} == {id(p) for p in model.parameters()}


def test_part_with_several_results_and_parameters_of_its_own() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(pullback.full((2,), 3.0))

        def forward(self, x: Any, y: Any) -> Any:
            a = x * self.scale
            b = a + y
            return a * b, {"y": y}

    model = Two()
    traced = fx.symbolic_trace(model)
    split = split_module(traced, model, lambda node: "last" if node.name == "mul_1" else "first")
    x, y = pullback.ones(2), pullback.arange(2.0)
    pullback.testing.assert_close(split(x, y), model(x, y))
    assert [node.name for node in split.graph.nodes][2:5] == ["submod_first", "getitem", "getitem_1"]


def test_parts_that_need_each_other_are_refused() -> None:
    traced = fx.symbolic_trace(lambda x: x.sin().cos().tan())
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(traced, None, lambda node: node.name == "cos")


def test_norms_are_fused_and_dropout_is_removed() -> None:
    pullback.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)
    )
    model(pullback.randn(4, 1, 4, 4))
    model.eval()
    fused = fuse(model)
    assert [str(n.target) for n in fused.graph.nodes if n.op == "call_module"] == ["0", "2", "3", "4", "5"]
    x = pullback.randn(2, 1, 4, 4)
    pullback.testing.assert_close(fused(x), model(x))
    assert [str(n.target) for n in remove_dropout(model).graph.nodes if n.op == "call_module"] == list("012456")
