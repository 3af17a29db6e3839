"""What the benchmarks make of their measurements."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import report


def row(workload: str, threads: int, torch: float, pullback: float, measures: str = "time") -> dict[str, Any]:
    ratio = pullback / torch
    return {"workload": workload, "threads": threads, "torch": torch, "pullback": pullback, "measures": measures,
            "ratio": ratio, "spread": [ratio, ratio], "goal": 0.5}  # fmt: skip


def test_a_row_is_distorted_where_threads_made_pytorch_slower() -> None:
    rows = [row("a", 1, 1.0, 0.5), row("a", 2, 4.0, 0.5), row("b", 1, 1.0, 0.5), row("b", 2, 0.6, 0.3)]
    report.mark_distorted(rows)
    assert [r["distorted"] for r in rows] == [False, True, False, False]
    assert report.geometric_mean(rows[1::2]) == pytest.approx(0.5)
    assert "distorted" in report.table(rows)[3]


def test_the_mean_is_of_time_or_instructions_and_leaves_out_the_import() -> None:
    rows = [row("a", 1, 1.0, 0.25), row("b", 1, 1.0, 1.0), row("import", 1, 1.0, 0.1), row("m", 1, 1.0, 9.0, "memory")]
    assert report.geometric_mean(rows) == pytest.approx(0.5)
    assert report.geometric_mean([row("c", 1, 100.0, 50.0, "instructions")]) == pytest.approx(0.5)
