"""Compare: measurements as tables, a row for each task and a column for each description."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from pullback.utils.benchmark.measurement import (
    Measurement,
    longest,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

_BEST, _GOOD, _BAD, _VERY_BAD, _END = (
    "\033[92m\033[1m",
    "\033[34m",
    "\033[2m\033[91m",
    "\033[31m\033[1m",
    "\033[0m\033[0m",
)


Row = tuple[int, str | None, str]
"""Threads, environment and name."""
Cells = dict[tuple[Row, str | None], Measurement]


class Colorize(Enum):
    """Which times are compared when they are coloured."""

    NONE = auto()
    COLUMNWISE = auto()
    ROWWISE = auto()


class Compare:
    """Tables of measurements.

    >>> from pullback.utils.benchmark import TaskSpec
    >>> task = TaskSpec("x", "", label="L", sub_label="s", description="d")
    >>> Compare([Measurement(1, [1e-3], task)]).print()  # doctest: +NORMALIZE_WHITESPACE
    [----- L -----]
             |   d
    1 threads: ----
          s  |  1.0
    <BLANKLINE>
    Times are in milliseconds (ms).
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warns = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show only digits that can be told from noise."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour times by how they compare within their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that are too far apart to be relied on."""
        self._warns = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique([one.task_spec.label for one in merged])
        tables = [self._table([one for one in merged if one.task_spec.label == label]) for label in labels]
        return "\n".join(tables)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(one.median for one in results))
        columns = ordered_unique([one.task_spec.description for one in results])
        keys = ordered_unique([_row_key(one) for one in results])
        has_envs = any(env for _, env, _ in keys)
        stubs = {key: (f"({key[1]})  " if key[1] else "" if has_envs else "    ") + key[2] for key in keys}
        width = longest(list(stubs.values()))
        cells = {(_row_key(one), one.task_spec.description): one for one in results}
        texts = {place: self._text(one, scale) for place, one in cells.items()}
        formatted = {column: _aligned({k: texts.get((k, column), "") for k in keys}) for column in columns}
        titles = {c: str(c or "").center(longest(list(formatted[c].values()))) for c in columns}
        header = " " * (width + 2) + "".join([f"  |  {titles[c]}" for c in columns])
        lines = [f"[{f' {results[0].task_spec.label or results[0].title} '.center(len(header) - 2, '-')}]", header]
        for threads in ordered_unique([key[0] for key in keys]):
            lines.append(f"{threads} threads: ".ljust(len(header), "-"))
            for key in [k for k in keys if k[0] == threads]:
                parts = [self._coloured(formatted[c][key], cells, key, c) for c in columns]
                lines.append("  " + stubs[key].ljust(width) + "".join([f"  |  {part}" for part in parts]))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warns and any(one.has_warnings for one in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _text(self, measured: Measurement, scale: float) -> str:
        value = measured.median / scale
        if not self._trim:
            shown = f"{value:.1f}"
        else:
            digits = measured.significant_figures
            value = trim_sigfig(value, digits)
            shown = f"{value:.{max(0, min(1, digits - len(str(int(value)))))}f}"
        is_marked = self._warns and measured.has_warnings
        return shown + (f" (! {measured.iqr / measured.median * 100:.0f}%)" if is_marked else "")

    def _coloured(self, text: str, cells: Cells, key: Row, column: str | None) -> str:
        one = cells.get((key, column))
        if one is None or self._colorize is Colorize.NONE:
            return text
        by_row = self._colorize is Colorize.ROWWISE
        best = min(other.median for (k, c), other in cells.items() if (k == key if by_row else c == column))
        ratio = one.median / best
        if ratio <= 1.0 + 1e-9:
            return f"{_BEST}{text}{_END}"
        if ratio <= 1.1:
            return f"{_GOOD}{text}{_END}"
        if ratio < 2:
            return text
        return f"{_BAD if ratio < 5 else _VERY_BAD}{text}{_END}"


def _row_key(one: Measurement) -> Row:
    return one.task_spec.num_threads, one.task_spec.env, one.as_row_name


def _aligned(column: dict[Row, str]) -> dict[Row, str]:
    """Numbers one below the other, at the point; whole numbers at their end."""
    before = longest([text.partition(".")[0] for text in column.values()])
    after = longest([text.partition(".")[1] + text.partition(".")[2] for text in column.values()])
    aligned = {}
    for key, text in column.items():
        whole, point, rest = text.partition(".")
        aligned[key] = whole.rjust(before) + (point + rest).ljust(after)
    return aligned
