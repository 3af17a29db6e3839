"""Precision telemetry tells what is lost, and the loss scale that saves it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.inspection.fingerprints import grad_fingerprint
from pullback.inspection.gradient_health import grad_health


def small_gradients(scale: float = 1.0) -> Any:
    x = pullback.tensor([1.0, 1e-3, 1e-4, 3e-5], dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        (((x * x) * 1e-4).sum() * scale).backward()
    return health


def test_elements_that_became_zero_though_they_are_not_are_counted() -> None:
    row = small_gradients().rows[-1]  # gradients 1e-4 * [1, 1e-3, 1e-4, 3e-5], of which the last two are below 3e-8
    assert row["operation"] == "MulBackward0"
    assert row["flushed_share"] == 0.5
    assert row["zero_share"] == 0.5


def test_true_zeros_are_not_flushed() -> None:
    x = pullback.tensor([-1.0, 2.0], dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        x.relu().sum().backward()
    row = health.rows[-1]
    assert (row["zero_share"], row["flushed_share"]) == (0.5, 0.0)


def test_the_loss_scale_saves_what_was_flushed() -> None:
    before = small_gradients()
    scale = before.facts["loss_scale"]
    assert scale > 1
    assert before.facts["saved_share"] == 1.0
    after = small_gradients(scale)
    assert after.facts["flushed_share"] == 0.0
    assert small_gradients(scale / 4).facts["flushed_share"] > 0


def test_a_scale_that_would_overflow_is_not_recommended() -> None:
    x = pullback.tensor([1e4, 1e-7], dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        ((x * x) * 0.25).sum().backward()
    facts = health.facts
    assert facts["largest_loss_scale"] <= 65504 / 5000
    assert facts["loss_scale"] <= facts["largest_loss_scale"]


def test_infinite_subnormal_and_nan_gradients_are_counted() -> None:
    x = pullback.tensor([1.0, 1e-6, 60000.0, float("nan")], dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        (x * x * x).sum().backward()
    last = health.rows[-1]
    assert last["infinite_share"] > 0
    assert last["nan_share"] > 0
    y = pullback.tensor([1.0], dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        (y * 1e-5).sum().backward()
    assert health.rows[-1]["subnormal_share"] == 1.0


def test_the_shadow_adds_up_the_errors_of_a_chain() -> None:
    pullback.manual_seed(0)
    weights = [pullback.randn(16, 16).half() for _ in range(6)]
    x = pullback.randn(16, dtype=pullback.float16, requires_grad=True)
    wide = x.detach().double().requires_grad_()
    with grad_health(shadow=True) as health:
        y: Any = x
        for weight in weights:
            y = weight @ y
        y.sum().backward()
    z: Any = wide
    for weight in weights:
        z = weight.double() @ z
    z.sum().backward()
    expected = float((x.grad.double() - wide.grad).norm() / wide.grad.norm())
    rows = [row for row in health.rows if row["operation"] == "MvBackward0"]
    assert rows[-1]["total_error"] == pytest.approx(expected, rel=1e-6)
    assert 0 < rows[-1]["own_error"] < 0.001
    assert rows[-1]["total_error"] > rows[0]["total_error"] > 0


def test_shadows_that_meet_are_summed() -> None:
    x = pullback.tensor([0.1, 0.7], requires_grad=True)
    with grad_health(shadow=True) as health:
        y = x.exp()
        (y.sin() + y * y).sum().backward()
    exponential = next(row for row in health.rows if row["operation"] == "ExpBackward0")
    wide_y = x.detach().exp().double()
    wide = wide_y * (wide_y.cos() + 2 * wide_y)
    assert exponential["total_error"] == pytest.approx(
        float((x.grad.double() - wide).norm() / wide.norm()), rel=1e-3, abs=1e-12
    )


def test_watching_changes_no_gradient() -> None:
    def run() -> str:
        pullback.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
        ).bfloat16()
        model(pullback.randn(2, 1, 6, 6).bfloat16()).float().logsumexp(1).sum().backward()
        return grad_fingerprint(model)

    plain = run()
    with grad_health(shadow=True) as health:
        watched = run()
    assert plain == watched
    assert {row["dtype"] for row in health.rows} == {"bfloat16", "float32"}
    assert all(row["own_error"] is not None and row["own_error"] < 0.05 for row in health.rows)


def test_passes_of_a_loop_add_up() -> None:
    x = pullback.ones(3, dtype=pullback.float16, requires_grad=True)
    with grad_health() as health:
        for _ in range(4):
            (x * 2).sum().backward()
    assert [row["elements"] for row in health.rows] == [12, 12]


def test_custom_functions_hooks_and_second_derivatives_are_watched() -> None:
    class Double(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    x = pullback.ones(3, requires_grad=True)
    with grad_health() as health:
        y = Double.apply(x).sin()
        y.register_hook(lambda grad: grad * 3)
        (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
        pullback.autograd.grad(first.sum(), x)
    names = [row["operation"] for row in health.rows]
    assert "DoubleBackward" in names
    own = {row["operation"]: row["own_error"] for row in health.rows}
    assert own["DoubleBackward"] is None
    assert own["SinBackward0"] is not None


def test_nothing_is_watched_outside_of_the_block() -> None:
    x = pullback.ones(3, requires_grad=True)
    with grad_health() as health:
        pass
    (x * 2).sum().backward()
    assert health.rows == []


def test_telemetry_is_text_html_and_plain_data() -> None:
    health = small_gradients()
    assert json.loads(json.dumps(health.to_dict()))["facts"]["loss_scale"] > 1
    assert "loss scale" in str(health)
    assert "<table>" in health._repr_html_()
