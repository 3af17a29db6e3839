"""Compare accuracy: `python -m tests.conformance.accuracy [function ...]`.

Elementwise functions and their first derivatives (accuracy_elementwise.py) are computed by both libraries over regions of
arguments and at special ones, and their errors are measured in units in the last place of mpmath's value; reductions
(accuracy_reductions.py) and nn.functional (accuracy_networks.py) have a float64 reference, linear algebra
(accuracy_linalg.py) residuals. A line per function
and dtype has the worst error and the 99.9th percentile of both libraries. Flagged is where ours is worse by a factor of two
and by one unit, or a special value differs; without compiled kernels NumPy's own float32 exp and log are, by 2 units. The
last line has the counts; with something flagged the exit status is 1.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable

from . import accuracy_elementwise, accuracy_linalg, accuracy_networks, accuracy_reductions

SECONDS = 400  # for one function
_CUTS = "which side of a branch cut a zero lies on is lost in PyTorch's vectors"
_ODD = "PyTorch's is the positive zero, of an odd function"
_POLES = "PyTorch's is a large number at a pole, and pi times a rounded number far from zero"
_SCALAR = "PyTorch's vectors and the rest of an array differ there"
_UNSET = "PyTorch's recurrence ends at NaN before its result is set: it is whatever was there"
ACCEPTED = {
    "acos complex128": _CUTS,
    "acosh complex64 derivative": _CUTS,
    "acosh complex128 derivative": _CUTS,
    "nn.functional.gelu float32": "PyTorch's vectors give NaN at infinity",
    "nn.functional.softshrink float32 derivative": _SCALAR,
    "nn.functional.softshrink float64": _SCALAR,
    "special.log_ndtr float32 derivative": "PyTorch's is NaN far below zero, where the slope is -x",
    "special.log_ndtr float64 derivative": "PyTorch's is NaN far below zero, where the slope is -x",
    "digamma float32 derivative": _POLES,
    "digamma float64 derivative": _POLES,
    "polygamma n=1 float32": _POLES,
    "polygamma n=1 float64": _POLES,
    "mvlgamma p=1 float32 derivative": "PyTorch's loses the sign of zero",
    "mvlgamma p=1 float64 derivative": "PyTorch's loses the sign of zero",
    "special.i1 float32": _ODD,
    "special.i1 float64": _ODD,
    "special.i1e float32": _ODD,
    "special.i1e float64": _ODD,
    "special.modified_bessel_i1 float32": _ODD,
    "special.modified_bessel_i1 float64": _ODD,
    "special.airy_ai float64": "neither has a digit there; ours is NaN",
    **{
        f"special.{name} {dtype}": _UNSET
        for dtype in ("float32", "float64")
        for name in (
            "chebyshev_polynomial_u",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
            "shifted_chebyshev_polynomial_u",
        )
    },
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
    for part in (accuracy_elementwise, accuracy_reductions, accuracy_networks, accuracy_linalg):
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
