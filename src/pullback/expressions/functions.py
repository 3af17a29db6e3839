"""What is known of each function that an expression may call: its names, its cost, whether it rounds.

A new function of one number is a row here, a word in native/functions.h and, for CUDA, a name of its library.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A function of elements.

    `c`, `numpy` and `cuda` are its names. `costly`: it takes as long as some twenty additions. `exact`: its result is
    one of its arguments, or needs no rounding. `in_float32_alone`: native/functions.h has it for float32, and Python
    serves float64. `libm`: the vector code covers a range only, and beyond it libm's own function stands in.
    """

    name: str
    c: str
    numpy: str
    cuda: str
    costly: bool = False
    exact: bool = False
    in_float32_alone: bool = False
    libm: bool = False


def _costly(*names: str, in_float32_alone: bool = False, libm: bool = False) -> list[Function]:
    return [
        Function(n, f"{n}_of", f"np.{_NUMPY.get(n, n)}", n, True, False, in_float32_alone, libm) for n in names
    ]  # fmt: skip


_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan2": "arctan2"}

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in [
        Function("exp_below_zero", "EXPONENTIAL", "np.exp", "exp", costly=True),
        Function("exp_of_shifted", "EXPONENTIAL_OR_INFINITY", "np.exp", "exp", costly=True),
        *_costly("exp", "expm1", "log", "log1p", "tanh"),
        *_costly("sin", "cos", libm=True),
        *_costly("tan", in_float32_alone=True, libm=True),
        *_costly("atan2", "asin", "cosh", "log2", "log10", "exp2", in_float32_alone=True),
        Function("logaddexp", "logaddexp_of", "np.logaddexp", "logaddexp_of", costly=True),
        Function("erf", "erf_of", "F.erf", "erf", costly=True),
        Function("erfc", "erfc_of", "F.erfc", "erfc", costly=True),
        Function("erfinv", "erfinv_of", "F.erfinv", "erfinv", costly=True),
        Function("lgamma", "lgamma_of", "F.lgamma", "lgamma", costly=True),
        Function("digamma", "digamma_of", "F.digamma", "digamma_of", costly=True, in_float32_alone=True),
        Function("sinc", "sinc_of", "np.sinc", "sinc_of", costly=True),
        Function("sqrt", "sqrt_of", "np.sqrt", "sqrt"),
        Function("hypot", "hypot_of", "np.hypot", "hypot"),
        Function("abs", "abs_of", "np.abs", "fabs", exact=True),
        Function("floor", "floor_of", "np.floor", "floor", exact=True),
        Function("ceil", "ceil_of", "np.ceil", "ceil", exact=True),
        Function("trunc", "trunc_of", "np.trunc", "trunc", exact=True),
        Function("rint", "rint_of", "np.rint", "rint", exact=True),
        Function("at_least", "TYPED(at_least)", "np.maximum", "maximum_of", exact=True),
        Function("maximum", "maximum_of", "np.maximum", "maximum_of", exact=True),
        Function("minimum", "minimum_of", "np.minimum", "minimum_of", exact=True),
        Function("fmax", "fmax_of", "np.fmax", "fmax", exact=True),
        Function("fmin", "fmin_of", "np.fmin", "fmin", exact=True),
        Function("copysign", "copysign_of", "np.copysign", "copysign", exact=True),
        Function("fmod", "fmod_of", "np.fmod", "fmod", exact=True, libm=True),
        Function("remainder_from", "remainder_from_of", "remainder_from", "remainder_from_of", exact=True),
        Function("floor_quotient", "floor_quotient_of", "floor_quotient", "floor_quotient_of"),
        Function("largest_like", "largest_like", "largest_like", "largest_like", exact=True),
    ]
}
"""By the name that expressions use."""

NUMPY_NAMES: dict[str, str] = {
    **{f.numpy.removeprefix("np."): f.name for f in FUNCTIONS.values() if f.numpy.startswith("np.")},
    "fabs": "abs",
}
"""The functions that a text calls as `np.name`, by that name."""
del NUMPY_NAMES["fmod"], NUMPY_NAMES["sinc"]  # followed by the reader, which knows their ranges and their kernels

KERNEL_NAMES = (*[f.name for f in FUNCTIONS.values() if f.numpy.startswith("F.")], "sinc")
"""Kernels that are a function here, whose own text is one of branches."""
