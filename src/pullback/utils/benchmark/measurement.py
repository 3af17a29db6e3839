"""Measurements: the times of one statement, and what can be said of them."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1))
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}

# How far the middle half of the times may be spread, relative to their median, before a measurement warns.
_SPREAD_TO_MENTION, _SPREAD_TO_DOUBT = 0.1, 0.25
_SMALLEST_ERROR = 25e-9  # in seconds: no clock and no machine is steadier


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured, and the labels that tell it from other tasks."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement if that is short."""
        if self.label is not None:
            return f"{self.label}: {self.sub_label}" if self.sub_label else self.label
        if "\n" not in self.stmt:
            return f"{self.stmt}: {self.sub_label}" if self.sub_label else self.stmt
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{_indented(self.stmt)}"

    def setup_str(self) -> str:
        """The setup, if there is one."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{_indented(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, a line each."""
        return "\n".join([part for part in (self.title, self.description or "", self.setup_str()) if part])


def _indented(text: str) -> str:
    return "\n".join([f"  {line}" for line in text.strip().split("\n")])


class Measurement:
    """The times that a statement took, and their statistics.

    >>> measured = Measurement(10, [1.0, 1.2, 1.4], TaskSpec("x", "pass"))
    >>> measured.median
    0.12
    """

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict[Any, Any] | None = None
    ) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        """The labels of the task."""
        if name.startswith("__") or "task_spec" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds per execution."""
        return [time / self.number_per_run for time in self.raw_times]

    @cached_property
    def _sorted(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("the measurement holds no time")
        return sorted(self.times)

    @property
    def median(self) -> float:
        """The time in the middle."""
        return statistics.median(self._sorted)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return statistics.fmean(self._sorted)

    def _quantile(self, share: float) -> float:
        place = share * (len(self._sorted) - 1)
        low, high = self._sorted[math.floor(place)], self._sorted[math.ceil(place)]
        return low + (high - low) * (place - math.floor(place))

    @property
    def iqr(self) -> float:
        """How far the middle half of the times is spread."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median can be told from noise."""
        deviation = self.iqr / 1.349  # of a normal distribution with this spread
        error = max(1.645 * deviation / math.sqrt(len(self._sorted)), _SMALLEST_ERROR)
        return min(4, max(1, math.floor(math.log10(self.median) - math.log10(error)))) if self.median > 0 else 1

    @property
    def has_warnings(self) -> bool:
        """Whether the times are too far apart, or too few, to be relied on."""
        return bool(self._warning())

    def _warning(self) -> str:
        spread = self.iqr / self.median if self.median else 0.0
        if len(self._sorted) < 2 or spread < _SPREAD_TO_MENTION:
            return ""
        advice = (
            "This suggests significant environmental influence."
            if spread >= _SPREAD_TO_DOUBT
            else "This could indicate system fluctuation."
        )
        return f"  WARNING: Interquartile range is {spread * 100:.1f}% of the median measurement.\n           {advice}"

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the middle half of the times lies close enough around the median."""
        return self.iqr / self.median < threshold if self.median else True

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What names this measurement's row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        runs = f"{self.number_per_run} runs {'per measurement' if len(self.raw_times) > 1 else ''}"
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if len(self.raw_times) > 1 else ''}{self.median / scale:.2f} {unit}")
        if len(self.raw_times) > 3:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        count = len(self.raw_times)
        threads = self.task_spec.num_threads
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {threads} thread{'s' if threads > 1 else ''}"
        )
        if self._warning():
            lines.append(self._warning())
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join the measurements of equal tasks."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            groups.setdefault(one.task_spec, []).append(one)
        return [
            Measurement(1, [time for one in group for time in one.times], task, None) for task, group in groups.items()
        ]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is read easily, and its seconds.

    >>> select_unit(3e-4)
    ('us', 1e-06)
    """
    power = math.floor(math.log10(t)) // 3 if t > 0 else -3
    return _UNITS[max(0, min(3, power + 3))]


def unit_to_english(u: str) -> str:
    """The name of a unit.

    >>> unit_to_english("us")
    'microsecond'
    """
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to so many digits.

    >>> trim_sigfig(123456.0, 2)
    120000.0
    """
    if x == 0:
        return 0.0
    place = math.floor(math.log10(abs(x))) + 1 - n
    return float(round(x / 10.0**place) * 10.0**place)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in the order in which they came.

    >>> ordered_unique([1, 2, 1])
    [1, 2]
    """
    return list(dict.fromkeys(elements))


def longest(texts: Sequence[str]) -> int:
    """The length of the longest text."""
    return max(map(len, texts), default=0)
