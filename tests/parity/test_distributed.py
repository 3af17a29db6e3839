"""Programs of two ranks, run with PyTorch over gloo and with pullback over MPI."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.running import environment, launch, needs_mpi

pytest.importorskip("torch")

PROGRAMS = Path(__file__).parent / "distributed"


def with_torch(program: str) -> Any:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(PROGRAMS / program),
    ]
    return found_in(
        subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    )


def with_pullback(program: str) -> Any:
    return found_in(launch("-n", "2", str(PROGRAMS / program)))


def found_in(done: subprocess.CompletedProcess[str]) -> Any:
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[0].removeprefix("FOUND "))


@needs_mpi
def test_collectives_give_what_pytorchs_give() -> None:
    expected, actual = with_torch("collectives_program.py"), with_pullback("collectives_program.py")
    assert {name: value for name, value in actual.items() if value != expected[name]} == {}
    assert list(actual) == list(expected)


@needs_mpi
def test_training_has_the_losses_of_pytorchs() -> None:
    expected, actual = with_torch("training_program.py"), with_pullback("training_program.py")
    assert list(actual) == list(expected)
    for name, run in expected.items():
        tolerance = 2e-3 if "float16" in name else 1e-5
        for part in ("sums", "buffers"):
            assert actual[name][part] == pytest.approx(run[part], rel=tolerance, abs=tolerance), (name, part)
        for ours, theirs in zip(actual[name]["losses"], run["losses"], strict=True):
            assert ours == pytest.approx(theirs, rel=tolerance), name
        assert actual[name]["names"] == run["names"]
