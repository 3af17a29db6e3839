"""Every example runs as it stands, and its loss falls or its check holds."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def numbers_after(word: str, output: str) -> list[float]:
    return [float(number) for number in re.findall(rf"{word} ([\d.]+)", output)]


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("digits", 0.3),
        ("gpt", 0.7),
        ("cnn", 0.2),
        ("lstm", 0.1),
        ("physics_informed", 0.01),
        ("neural_ode", 0.1),
        ("normalising_flow", 0.6),
        ("per_sample_gradients", 0.4),
        ("straight_through", 0.2),
    ],
)
def test_loss_falls(
    name: str, factor: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = numbers_after("loss", run(name, capsys, monkeypatch))
    assert losses[-1] < factor * losses[0]


def test_meta_learning_lowers_the_loss_after_adaptation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = numbers_after("loss after adaptation", run("maml", capsys, monkeypatch))
    assert sum(losses[3:]) < 0.9 * sum(losses[:3])


def test_checkpointing_saves_memory_and_changes_no_loss(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = run("checkpointing", capsys, monkeypatch, "--steps", "4")
    assert numbers_after("memory saved:", output)[0] > 80
    assert numbers_after("largest difference of losses", output)[0] < 1e-6


def test_checks_that_examples_print_hold(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "vmap agrees with a loop: True" in run("per_sample_gradients", capsys, monkeypatch, "--steps", "1")
    assert "inverse recovers the input: True" in run("normalising_flow", capsys, monkeypatch, "--steps", "1")
    assert "gradient of rounding: [0.0, 1.0, 1.0, 0.0]" in run("straight_through", capsys, monkeypatch, "--steps", "1")
    adjoint = run("neural_ode", capsys, monkeypatch, "--steps", "1", "--solver-steps", "20")
    assert float(adjoint.split()[-1]) < 1e-4


@pytest.mark.parametrize("path", sorted(p for p in EXAMPLES.glob("*.py") if p.name != "demo.py"), ids=lambda p: p.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 120
