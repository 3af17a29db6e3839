"""How far apart two values may be: the defaults per dtype, and the rule that decides."""

from __future__ import annotations

from typing import Any, NamedTuple

import pullback

__all__ = ["Tolerances", "choose_tolerances", "find_matches"]


class Tolerances(NamedTuple):
    """Relative and absolute tolerance: `|actual - expected| <= atol + rtol * |expected|`."""

    rtol: float
    atol: float

    @property
    def ask_for_equality(self) -> bool:
        """Whether nothing but equal values will do."""
        return self.rtol == 0 and self.atol == 0


_EXACT = Tolerances(0.0, 0.0)

_DEFAULTS = {
    "float16": Tolerances(1e-3, 1e-5),
    "bfloat16": Tolerances(1.6e-2, 1e-5),
    "float32": Tolerances(1.3e-6, 1e-5),
    "float64": Tolerances(1e-7, 1e-7),
    "complex64": Tolerances(1.3e-6, 1e-5),
    "complex128": Tolerances(1e-7, 1e-7),
}


def choose_tolerances(rtol: float | None, atol: float | None, *dtypes: Any) -> Tolerances:
    """Return the tolerances asked for, or the widest of the dtypes' defaults."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    if rtol is not None and atol is not None:
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value < 0:
                raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
        return Tolerances(rtol, atol)
    defaults = [_DEFAULTS.get(str(dtype).rpartition(".")[2], _EXACT) for dtype in dtypes]
    return Tolerances(max(default.rtol for default in defaults), max(default.atol for default in defaults))


def find_matches(actual: Any, expected: Any, tolerances: Tolerances, equal_nan: bool) -> Any:
    """Return where two tensors of one shape and dtype are close; infinities are close only to themselves."""
    matches = actual == expected
    if equal_nan:
        matches = matches | ((actual != actual) & (expected != expected))
    if tolerances.ask_for_equality:
        return matches
    difference = pullback.abs(actual - expected)
    allowed = tolerances.atol + tolerances.rtol * pullback.abs(expected)
    return matches | ((difference <= allowed) & pullback.isfinite(difference))
