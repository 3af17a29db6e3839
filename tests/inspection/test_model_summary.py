"""A summary counts what the model computes and holds, and leaves it as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.inspection.model_summary import summary
from pullback.inspection.saved_memory import saved_report
from pullback.utils.flop_counter import FlopCounterMode


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * 16, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 10),
    )  # fmt: skip


def row(report: Any, layer: str) -> Any:
    return next(row for row in report.rows if row["layer"] == layer)


def test_layers_stand_in_order_with_shapes_and_parameters() -> None:
    report = summary(network(), (4, 3, 8, 8))
    assert [r["layer"] for r in report.rows] == ["", *map(str, range(9))]
    assert row(report, "0")["input"] == (4, 3, 8, 8)
    assert row(report, "0")["output"] == (4, 8, 8, 8)
    assert row(report, "5")["parameters"] == 8 * 16 * 16 + 16
    assert row(report, "")["kind"] == "Sequential"
    assert report.facts["parameters"] == sum(p.numel() for p in network().parameters())


def test_flops_of_products_are_those_of_the_flop_counter() -> None:
    model, x = (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)),
        pullback.randn(4, 3, 8, 8),
    )
    report = summary(model, x)
    with FlopCounterMode(display=False) as forward:
        y = model(x)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    assert report.facts["forward_flops"] == forward.get_total_flops()
    assert report.facts["backward_flops"] == backward.get_total_flops()


def test_saved_bytes_are_those_of_the_ledger() -> None:
    model, x = network(), pullback.randn(4, 3, 8, 8)
    facts = summary(model, x).facts
    assert facts["saved_bytes"] == saved_report(model(x)).facts["activation_bytes"]
    assert facts["forward_peak_bytes"] <= facts["peak_bytes"]


def test_the_model_is_left_as_it_was() -> None:
    pullback.manual_seed(0)
    model = network()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = pullback.get_rng_state()
    model[0].weight.grad = pullback.ones_like(model[0].weight)
    summary(model, pullback.ones(4, 3, 8, 8))
    assert all(pullback.equal(value, state[name]) for name, value in model.state_dict().items())
    assert pullback.equal(pullback.get_rng_state(), numbers)
    assert pullback.equal(model[0].weight.grad, pullback.ones_like(model[0].weight))
    assert model[5].weight.grad is None


def test_a_model_without_gradients_and_one_that_only_runs_forward_have_a_summary() -> None:
    model = nn.Linear(3, 4).requires_grad_(False)
    facts = summary(model, (2, 3)).facts
    assert (facts["trainable_parameters"], facts["saved_bytes"], facts["backward_flops"]) == (0, 0, 0)
    facts = summary(nn.Linear(3, 4), (2, 3), backward=False).facts
    assert (facts["forward_flops"], facts["backward_flops"]) == (48, 0)


def test_arguments_may_be_several_or_named() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = nn.Linear(3, 3)

        def forward(self, a: Any, b: Any) -> Any:
            return self.shared(a) + self.shared(b) * 2

    a, b = pullback.ones(1, 3), pullback.ones(1, 3)
    first, second = summary(Two(), (a, b)), summary(Two(), {"a": a, "b": b})
    assert row(first, "shared")["operations"] == row(second, "shared")["operations"] == 2
    assert row(first, "")["operations"] == 2
    assert first.facts["input_bytes"] == 24


def test_a_summary_is_text_html_and_plain_data() -> None:
    report = summary(network(), (4, 3, 8, 8))
    assert "Conv2d" in str(report)
    assert "<td>Conv2d</td>" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["facts"]["parameters"] == report.facts["parameters"]


def test_random_numbers_are_left_as_they_were_where_the_input_is_drawn() -> None:
    before = pullback.get_rng_state()
    summary(pullback.nn.Dropout(0.5), (4, 3))
    assert pullback.equal(before, pullback.get_rng_state())


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_the_products_of_recurrent_layers_are_counted(kind: str, gates: int) -> None:
    report = summary(getattr(pullback.nn, kind)(3, 2), (4, 5, 3))
    (row,) = report.rows
    assert row["forward_flops"] == 2 * 4 * 5 * gates * 2 * (3 + 2)
    assert row["backward_flops"] >= row["forward_flops"]


@pytest.mark.parametrize("dtype", [pullback.float64, pullback.bfloat16])
def test_sizes_stand_for_numbers_of_the_parameters_dtype(dtype: Any) -> None:
    report = summary(pullback.nn.Linear(2, 3).to(dtype), (4, 2))
    assert report.facts["input_bytes"] == 8 * dtype.itemsize


def test_what_is_no_module_has_no_summary() -> None:
    with pytest.raises(TypeError, match="summary expects a module, got function"):
        summary(lambda x: x, (2,))
