"""Timers, measurements and their tables; statistics and texts are PyTorch's for the same times."""

from __future__ import annotations

import pytest

import pullback
from pullback.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit, trim_sigfig


def measured(
    times: list[float], runs: int = 1, description: str = "d", sub_label: str = "s", threads: int = 1
) -> Measurement:
    return Measurement(runs, times, TaskSpec("x+y", "pass", "", "L", sub_label, description, None, threads))


@pytest.mark.parametrize(
    ("times", "median", "iqr", "figures", "warns"),
    [
        ([1e-3] * 5, 1e-3, 0.0, 4, False),
        ([1.2345e-6] * 5, 1.2345e-6, 0.0, 1, False),
        ([0.5, 0.6, 0.55, 0.52], 0.535, 0.0475, 1, False),
        ([1.0, 1.5, 3.0], 1.5, 1.0, 1, True),
    ],
)
def test_statistics(times: list[float], median: float, iqr: float, figures: int, warns: bool) -> None:
    one = measured(times)
    assert one.median == pytest.approx(median)
    assert one.iqr == pytest.approx(iqr)
    assert (one.significant_figures, one.has_warnings) == (figures, warns)


def test_text_of_a_measurement() -> None:
    lines = repr(measured([0.5, 0.6, 0.55, 0.52])).split("\n")[1:]
    assert lines == [
        "L: s", "d", "  Median: 535.00 ms", "  IQR:    47.50 ms (515.00 to 562.50)",
        "  4 measurements, 1 runs per measurement, 1 thread",
    ]  # fmt: skip
    assert repr(measured([1.0, 1.5, 3.0], 10)).split("\n")[3:] == [
        "  Median: 150.00 ms", "  3 measurements, 10 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 66.7% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]  # fmt: skip


def test_equal_tasks_are_merged() -> None:
    merged = Measurement.merge([measured([1.0]), measured([4.0], 2), measured([5.0], sub_label="other")])
    assert [one.times for one in merged] == [[1.0, 2.0], [5.0]]


def test_tables_have_a_row_per_task_and_thread_count() -> None:
    results = [measured([1e-3] * 4), measured([2.5e-3] * 4, description="e"), measured([1e-3] * 4, threads=4)]
    assert str(Compare(results)).split("\n") == [
        "[--------- L ---------]",
        "         |   d   |   e ",
        "1 threads: ------------",
        "      s  |  1.0  |  2.5",
        "4 threads: ------------",
        "      s  |  1.0  |     ",
        "",
        "Times are in milliseconds (ms).",
        "",
    ]


def test_units_and_digits() -> None:
    assert [select_unit(t)[0] for t in (2e-8, 3e-4, 0.5, 100.0)] == ["ns", "us", "ms", "s"]
    assert trim_sigfig(123456.0, 2) == 120000.0
    assert trim_sigfig(0.0123, 1) == pytest.approx(0.01)


def test_a_timer_runs_its_statement_as_often_as_it_says() -> None:
    ran: list[int] = []
    timer = Timer("ran.append(1)", globals={"ran": ran})
    assert timer.timeit(200).number_per_run == 200
    assert len(ran) == 202
    blocks = timer.blocked_autorange(min_run_time=0.005)
    assert sum(blocks.raw_times) >= 0.005


def test_a_timer_sets_threads_and_puts_them_back() -> None:
    before = pullback.get_num_threads()
    seen: list[int] = []
    Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(1)
    assert set(seen) == {1}
    assert pullback.get_num_threads() == before


def test_statements_are_texts() -> None:
    with pytest.raises(ValueError, match="`str` stmt"):
        Timer(len)  # type: ignore[arg-type]  # the mistake


def test_tables_mark_times_that_are_far_apart() -> None:
    table = Compare([measured([1e-3, 1.5e-3, 3e-3, 1.2e-3])])
    table.highlight_warnings()
    assert "1.4 (! 54%)" in str(table)
    assert "where XX is the IQR / median * 100." in str(table)
