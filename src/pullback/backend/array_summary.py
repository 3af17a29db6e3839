"""Summarise an array in a few numbers and a small histogram, for pages and displays that people read."""

from __future__ import annotations

import math
from typing import Any, TypedDict

import numpy as np

from pullback.typing import Array

__all__ = ["ArraySummary", "first_values", "summarise"]

SAMPLE = 200_000
"""A histogram of more elements than this counts an even sample of them: it is looked at, not computed with."""


class ArraySummary(TypedDict):
    """What an array holds. The statistics are of its finite elements, and None where it has none."""

    elements: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    norm: float | None
    zeros: int
    nans: int
    infinities: int
    histogram: list[int]


def summarise(array: Array, bins: int = 24) -> ArraySummary:
    """Describe the elements of an array; complex ones by their absolute values.

    >>> summary = summarise(np.array([0.0, 3.0, -4.0, np.nan]), bins=2)
    >>> summary["norm"], summary["zeros"], summary["nans"], summary["histogram"]
    (5.0, 1, 1, [1, 2])
    """
    values = _as_floats(array)
    finite = values[np.isfinite(values)]
    nans = int(np.isnan(values).sum())
    summary: ArraySummary = {
        "elements": values.size, "minimum": None, "maximum": None, "mean": None, "deviation": None, "norm": None,
        "zeros": int((values == 0).sum()), "nans": nans, "infinities": values.size - finite.size - nans, "histogram": [],
    }  # fmt: skip
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        summary["minimum"], summary["maximum"] = low, high
        scale = max(abs(low), abs(high)) or 1.0  # squares of what is left neither overflow nor vanish
        scaled = finite / scale
        summary["mean"] = float(scaled.mean()) * scale
        summary["deviation"] = float(scaled.std()) * scale
        summary["norm"] = math.sqrt(float(scaled @ scaled)) * scale
        summary["histogram"] = _histogram(scaled, bins)
    return summary


def first_values(array: Array, count: int = 6) -> list[float | str]:
    """The first elements in row-major order, as JSON can hold them: what is not finite is spelled out.

    >>> first_values(np.array([[1.0, np.inf], [np.nan, 2.0]]), 3)
    [1.0, 'inf', 'nan']
    """
    values = _as_floats(array[(0,) * max(array.ndim - 1, 0)] if array.size and array.ndim > 1 else array)[:count]
    if values.size < min(count, array.size):
        values = _as_floats(array)[:count]
    return [value if math.isfinite(value) else str(value) for value in map(float, values)]


def _as_floats(array: Array) -> Any:
    """The elements in one row, as float64."""
    on_host = array.get() if hasattr(array, "get") else np.asarray(array)
    if on_host.dtype.kind == "c":
        on_host = np.abs(on_host)
    return on_host.astype(np.float64).ravel()


def _histogram(values: Any, bins: int) -> list[int]:
    sample = values[:: max(1, values.size // SAMPLE)]
    low, high = float(sample.min()), float(sample.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts, _ = np.histogram(sample, bins=bins, range=(low, high))
    return [int(count) for count in counts]
