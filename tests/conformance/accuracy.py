"""Compare accuracy: `python -m tests.conformance.accuracy [function ...]`.

Elementwise functions and their first derivatives (accuracy_elementwise.py) are computed by both libraries over regions of
arguments and at special ones, and their errors are measured in units in the last place of mpmath's value; reductions
(accuracy_reductions.py) have a float64 reference, linear algebra (accuracy_linalg.py) residuals. A line per function
and dtype has the worst error and the 99.9th percentile of both libraries. Flagged is where ours is worse by a factor of two
and by one unit, or a special value differs. The last line has the counts; with something flagged the exit status is 1.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable

from . import accuracy_elementwise, accuracy_linalg, accuracy_reductions

SECONDS = 120  # for one function
ACCEPTED = {
    "nn.functional.gelu float32": "PyTorch's vectors give NaN at infinity",
}
"""Lines whose flags do not count, and why."""


def lines_of(measured: Callable[[int], list[tuple[str, int]]], index: int, label: str) -> list[tuple[str, int]]:
    """Measure in a process of its own, since PyTorch crashes on some arguments."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            return pool.apply_async(measured, (index,)).get(SECONDS)
        except Exception as error:
            return [(f"{label}: {error!r}", 1)]


def main(names: list[str]) -> int:
    """Measure the functions named, or all of them."""
    counts: Counter[str] = Counter(lines=0, flagged=0, accepted=0)
    for part in (accuracy_elementwise, accuracy_reductions, accuracy_linalg):
        for index, label in enumerate(part.labels()):
            name = label.split()[0]
            if names and not any(wanted in (label, name, *name.split(".")) for wanted in names):
                continue
            for line, flags in lines_of(part.measure_all, index, label):
                reason = ACCEPTED.get(" ".join(line.split("\n")[0].split("ours")[0].split()))
                counts.update(lines=1, flagged=flags > 0 and reason is None, accepted=flags > 0 and reason is not None)
                print(line if reason is None else f"{line}\n    accepted: {reason}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return int(counts["flagged"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
