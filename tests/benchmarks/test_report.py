"""What the benchmarks make of their measurements."""

from __future__ import annotations

import re
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


def test_the_plot_has_a_section_for_each_measure_and_values_beside_the_bars() -> None:
    rows = [row("a", 1, 1.0, 0.25), row("b", 1, 1.0, 2.0), row("m", 1, 1.0, 0.9, "memory")]
    text = report.plot(rows)
    titles = re.findall(r'font-weight="bold">([^<]+)<', text)
    assert titles == ["time relative to PyTorch eager", "peak memory relative to PyTorch eager"]
    right = max(float(x) for x in re.findall(r'<line x1="([\d.]+)"', text))
    values = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end">(\d\.\d\d)<', text)
    assert [value for _, value in values] == ["0.25", "2.00", "0.90"]
    assert all(float(x) > right + 20 for x, _ in values)
    assert {"goal", "more", "less than PyTorch"} <= set(re.findall(r">([^<>]+)</text>", text))
