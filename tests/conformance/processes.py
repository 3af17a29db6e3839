"""Comparisons of one operation after the other in a process that is replaced where one crashes or hangs."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

Compare = Callable[..., tuple[int, Any]]
"""Takes the place of an operation in the database, then `arguments`; gives the number of calls and the differences."""


def compare_each(
    chosen: Iterable[tuple[int, str]],
    compare: Compare,
    arguments: tuple[Any, ...],
    shown: tuple[str, ...],
    seconds: float,
) -> int:
    """Print the differences of the kinds shown, and the counts; the status is 1 where something differs.

    `chosen` are places and names of operations. A difference is its kind, what was called, and words about it.
    """
    counts: Counter[str] = Counter()
    pool = None
    for index, name in chosen:
        pool = pool or multiprocessing.get_context("fork").Pool(1)
        try:
            made, differences = pool.apply_async(compare, (index, *arguments)).get(seconds)
        except Exception as error:  # a crash or a hang: the next operation gets a new process
            pool.terminate()
            pool = None
            made, differences = 0, [("differ", "all", repr(error))]
        counts.update({"calls": made, "operations": 1, "differ": 0, "worded": 0})
        for kind, what, *words in differences:
            counts[kind] += 1
            if kind in shown:
                print(f"{name}: {what}: {' | '.join(words)}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return int(counts["differ"] > 0)
