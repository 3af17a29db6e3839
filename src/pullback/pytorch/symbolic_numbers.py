"""PyTorch's functions on numbers that a compiler may not know yet; here a number is always known."""

from __future__ import annotations

import math
from typing import Any

from pullback.facts import declare


@declare(found="torch")
def sym_int(a: Any) -> int:
    """Round towards zero."""
    return math.trunc(a)


@declare(found="torch")
def sym_float(a: Any) -> float:
    """Convert to a floating-point number."""
    return float(a)


@declare(found="torch")
def sym_not(a: Any) -> bool:
    """Negate."""
    return not a


@declare(found="torch")
def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if one of them is."""
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


@declare(found="torch")
def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if one of them is."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


@declare(found="torch")
def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


@declare(found="torch")
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Give `t` if `b`, else `f`."""
    return t if b else f
