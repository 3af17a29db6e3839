"""What `inspection/` tells and bounds of the memory of another device."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

import pullback
from pullback import nn
from tests.devices.fake_library import library


def gradients(budget: Any) -> tuple[list[Any], float]:
    """All gradients of a model on the device, and how many bytes are held there before backward."""
    pullback.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.Tanh())]).to("fake")
    x = pullback.linspace(-1.0, 1.0, 64 * 32).view(64, 32).to("fake")
    with budget:
        loss = model(x)[:, ::2].t().contiguous().mean()
    held = pullback.saved_report(loss).facts["activation_bytes"]
    loss.backward()
    return [p.grad.tolist() for p in model.parameters()], held


@pytest.mark.parametrize("offload", [None, "cpu", "disk"])
def test_a_budget_is_kept_on_the_device_and_changes_no_gradient(offload: str | None) -> None:
    one = 64 * 32 * 4
    expected, plain = gradients(nullcontext())
    budget = pullback.activation_budget(2 * one, offload=offload)
    actual, held = gradients(budget)
    assert actual == expected
    assert held <= 3 * one < 6 * one <= plain  # with the input, which the block did not make
    report = budget.report()
    assert report.facts["peak_bytes"] <= 3 * one
    assert sum(row["dropped"] for row in report.rows) > 0
    assert (sum(row["recomputed"] for row in report.rows) > 0) == (offload is None)


def test_what_was_offloaded_lies_in_the_memory_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pullback.ones(1000, device="fake").requires_grad_()
    moved = []
    download = library.download

    def note(raw: Any) -> Any:
        moved.append(raw.nbytes)
        return download(raw)

    with monkeypatch.context() as patched, pullback.activation_budget(0, offload="cpu"):
        patched.setattr(library, "download", note)
        loss = x.exp().exp().sum()
    assert moved == [4000, 4000]
    assert pullback.saved_report(loss).facts["activation_bytes"] == 0
    loss.backward()
    assert x.grad.device.type == "fake"


def test_the_ledger_counts_memory_that_views_share_once() -> None:
    x = pullback.ones(256, device="fake", requires_grad=True)
    y = x.exp()
    report = pullback.saved_report((y.view(16, 16) * y.view(16, 16).t()).sum())
    assert report.facts["total_bytes"] == 1024
