"""Elementwise updates of many arrays in place, a cache-sized block at a time.

An optimizer's rule makes a dozen passes over each parameter. On blocks that stay in the cache these cost arithmetic,
not memory traffic; and small arrays are joined to a block first, so that a pass costs one call, not one per array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

BLOCK = 131072
"""Elements per block: large, since each pass has its cost, while six arrays of float32 still fit a last-level cache."""
GRADIENT = 1
"""The position of the gradient in a step's row: the one array that is only read."""
SMALL = 2048
"""Arrays up to this size are joined."""

Step = Callable[..., None]
OptionalArray = Any
"""An array, or None for one that a step does without."""
Row = Sequence[OptionalArray]
"""What a step works on: a parameter, its gradient, its state."""


def for_rows(step: Step) -> Step:
    """Make an elementwise step, written for one row of arrays, run in place on a list of rows.

    The arrays of a row are of one shape, or None for those that the step is to do without; numbers are keywords. Small
    arrays are joined and large ones run block by block.
    """

    @wraps(step)
    def run(rows: Sequence[Row], **numbers: Any) -> None:
        # A step of two passes costs less than to join and to part again.
        joins = len(rows) > 1 and len(rows[0]) > GRADIENT + 1
        small: list[Row] = []
        pending = 0
        for row in rows:
            size = row[0].size
            if size > SMALL or not joins:
                _step_in_blocks(step, row, size, numbers)
                continue
            small.append(row)
            pending += size
            if pending >= BLOCK:
                _step_joined(step, small, numbers)
                small, pending = [], 0
        if small:
            _step_joined(step, small, numbers)

    vars(run)["is_for_rows"] = True
    return run


def _step_in_blocks(step: Step, row: Row, size: int, numbers: dict[str, Any]) -> None:
    if not row[0].ndim:
        # What NumPy computes from 0-dim arrays are scalars, which nothing can be written into.
        row = [None if array is None else array.reshape(1) for array in row]
    flat = _flattened(row) if size > BLOCK else None
    if flat is None:
        step(*row, **numbers)
        return
    for start in range(0, size, BLOCK):
        stop = start + BLOCK
        step(*[None if array is None else array[start:stop] for array in flat], **numbers)


def _flattened(arrays: Row) -> list[OptionalArray] | None:
    """The same memory as arrays of one dimension, all in one order; None if some array's memory has gaps.

    The gradient may be copied: it is only read.
    """
    first = arrays[0]
    if not first.flags.forc:
        return None
    order = "C" if first.flags.c_contiguous else "F"
    flat: list[OptionalArray] = []
    for position, array in enumerate(arrays):
        if array is not None and position != GRADIENT and not array.flags[f"{order}_CONTIGUOUS"]:
            return None
        flat.append(None if array is None else array.reshape(-1, order=order))
    return flat


def _step_joined(step: Step, rows: Sequence[Row], numbers: dict[str, Any]) -> None:
    if len(rows) == 1:
        _step_in_blocks(step, rows[0], rows[0][0].size, numbers)
        return
    columns = list(zip(*rows, strict=True))
    joined: list[OptionalArray] = [
        None if column[0] is None else np.concatenate([array.reshape(-1) for array in column]) for column in columns
    ]
    step(*joined, **numbers)
    for position, column in enumerate(columns):
        if joined[position] is None or position == GRADIENT:
            continue
        start = 0
        for array in column:
            stop = start + array.size
            array[...] = joined[position][start:stop].reshape(array.shape)
            start = stop
