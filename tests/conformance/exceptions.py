"""Where PyTorch itself is wrong or inexact, found by a higher-precision reference or by finite differences."""

WRONG_IN_PYTORCH: dict[tuple[str, str], str] = {
    (
        "as_strided_scatter",
        "backward",
    ): "the gradient of the input is zero where it is kept, and kept where it is written",
    ("as_strided_scatter", "double-backward"): "as the first gradient",
}

INEXACT_IN_PYTORCH: dict[str, str] = {
    "special.bessel_j0": "off by 2e-7 between 4 and 10 in float64",
    "special.bessel_y1": "off by 3e-7 between 4 and 10 in float64",
    "logcumsumexp": "the tangent is off by 2e-7 in float64, the gradient by cancellation in float32",
}
