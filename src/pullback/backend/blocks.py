"""Elementwise updates of many arrays in place, a cache-sized block at a time.

An optimizer's rule makes a dozen passes over each parameter. On blocks that stay in the cache these cost arithmetic,
not memory traffic; and small arrays are joined to a block first, so that they cost no call of each pass each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pullback.typing import Array

BLOCK = 16384
"""Elements per block: six arrays of float32 blocks fit a second-level cache."""
GRADIENT = 1
"""The position of the gradient in a step's row: the one array that is only read."""
SMALL = 2048
"""Arrays up to this size are joined."""

Rule = Callable[..., Sequence[Array]]
Step = Callable[..., None]
OptionalArray = Any
"""An array, or None for one that a step does without."""


def in_blocks(step: Step) -> Step:
    """Make an elementwise step that works in place run block by block on large arrays.

    Its positional arguments are arrays of one shape, or None for arrays that it is to do without; numbers are keywords.
    """

    @wraps(step)
    def run(*arrays: OptionalArray, **numbers: Any) -> None:
        size = arrays[0].size
        if not arrays[0].ndim:
            # What NumPy computes from 0-dim arrays are scalars, which nothing can be written into.
            arrays = tuple([None if array is None else array.reshape(1) for array in arrays])
        if size <= BLOCK:
            step(*arrays, **numbers)
            return
        flat = _flattened(arrays)
        if flat is None:
            step(*arrays, **numbers)
            return
        for start in range(0, size, BLOCK):
            stop = start + BLOCK
            step(*[None if array is None else array[start:stop] for array in flat], **numbers)

    return run


def _flattened(arrays: Sequence[OptionalArray]) -> list[OptionalArray] | None:
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


def step_rows(step: Step, rows: Sequence[Sequence[Array]], *, join: bool = True) -> None:
    """Run a step in place on each row of arrays; `join` puts small arrays together, which pays for many passes."""
    small = [row for row in rows if row[0].size <= SMALL] if join else []
    if len(small) <= 1:
        small = []
    for row in rows:
        if not small or row[0].size > SMALL:
            step(*row)
    if small:
        _step_joined(step, small)


def _step_joined(step: Step, rows: Sequence[Sequence[Array]]) -> None:
    joined = [np.concatenate([array.reshape(-1) for array in column]) for column in zip(*rows, strict=True)]
    step(*joined)
    start = 0
    for row in rows:
        shape, stop = row[0].shape, start + row[0].size
        for position, array in enumerate(row):
            if position != GRADIENT:
                array[...] = joined[position][start:stop].reshape(shape)
        start = stop


def update_in_blocks(rule: Rule, rows: Sequence[Sequence[Array]], written: Sequence[int], *, join: bool = True) -> None:
    """Apply an elementwise rule to each row of equally shaped arrays and store what it returns.

    `written` are the positions in a row that the results belong to, in their order. `join` puts small arrays together,
    which pays for rules of many passes.
    """
    joined: list[Sequence[Array]] = []
    pending = 0
    for row in rows:
        size = row[0].size
        is_small = join and size <= SMALL and len(rows) > 1
        if (size <= BLOCK and not is_small) or not _are_contiguous(row, written):
            _store(row, written, rule(*row))
            continue
        # What is written is contiguous, so only a gradient may be copied here.
        flat = [array.reshape(-1) for array in row]
        if is_small:
            joined.append(flat)
            pending += size
            if pending >= BLOCK:
                _update_joined(rule, joined, written)
                joined, pending = [], 0
        else:
            for start in range(0, size, BLOCK):
                piece = [array[start : start + BLOCK] for array in flat]
                _store(piece, written, rule(*piece))
    if joined:
        _update_joined(rule, joined, written)


def _are_contiguous(row: Sequence[Array], positions: Sequence[int]) -> bool:
    for position in positions:  # noqa: SIM110  (a generator costs more than the check)
        if not row[position].flags.c_contiguous:
            return False
    return True


def _update_joined(rule: Rule, rows: Sequence[Sequence[Array]], written: Sequence[int]) -> None:
    if len(rows) == 1:
        _store(rows[0], written, rule(*rows[0]))
        return
    results = rule(*[np.concatenate(column) for column in zip(*rows, strict=True)])
    start = 0
    for row in rows:
        stop = start + row[0].size
        for position, result in zip(written, results, strict=True):
            row[position][...] = result[start:stop]
        start = stop


def _store(row: Sequence[Array], written: Sequence[int], results: Sequence[Array]) -> None:
    for position, result in zip(written, results, strict=True):
        if result is not row[position]:
            row[position][...] = result
