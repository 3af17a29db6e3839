"""What this process computed whose last bits may be others with another number of threads, or without compile.

# Note [Unpromised bits]
Gradients have the same bits for any number of threads, with hooks, checkpoints and compile, but for what is listed here.
Whoever cannot promise that says so when it runs: kernels that leave their work to BLAS or LAPACK, which divide it by the
number of threads; compiled functions, whose loops round less often and sum in another order; sums of a GPU at positions
in the order in which they arrive; backward passes of several threads at once; fused operations whose steps somebody looks
at, or saves through hooks of their own (Note [Fused nodes]). `grad_fingerprint` reads the list, so that
nobody compares bits that need not be equal without being told. Under `use_deterministic_algorithms(True)` only the
last is listed: what cannot promise its bits raises there before it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pullback.typing import Array

THREADS = "the number of threads"
COMPILE = "compile"
ARRIVAL = "the order of arrival"
LOOKING = "who looks at the graph"

_UNDIVIDED = 8192
"""So many multiplications are one thread's: OpenBLAS was seen to divide from 250,000 on, other libraries may sooner."""


class UnpromisedBits:
    """The list, and whether it is kept."""

    is_kept = True
    found: dict[tuple[str, str], Any] = {}
    """(what the bits depend on, what ran): the line of the program that ran it first, where it is known."""
    calling_line: Callable[[], Any] = staticmethod(lambda: None)
    """Finds the user's line; modes/source_lines.py puts it here."""


def note_unpromised(depends_on: str, what: str, line: Any = None) -> None:
    """List what runs, once."""
    if (UnpromisedBits.is_kept or depends_on is LOOKING) and (depends_on, what) not in UnpromisedBits.found:
        UnpromisedBits.found[depends_on, what] = line or UnpromisedBits.calling_line()


def note_product(a: Array, columns: int = 1) -> None:
    """List a product that NumPy's BLAS computes of `a` and a matrix of so many columns, unless it is small."""
    if a.size * columns > _UNDIVIDED and a.dtype.kind in "fcV":
        note_unpromised(THREADS, "a matrix product by BLAS")


def note_factorization(A: Array) -> None:
    """List the calling kernel, which leaves matrices to LAPACK, unless they are small."""
    rows, columns = A.shape[-2:]
    if rows * columns * min(rows, columns) > _UNDIVIDED and UnpromisedBits.is_kept:
        note_unpromised(THREADS, sys._getframe(1).f_code.co_name.strip("_"))
