"""Where PyTorch itself is wrong or inexact, found by a higher-precision reference or by finite differences."""

WRONG_IN_PYTORCH: dict[tuple[str, str], str] = {
    (
        "as_strided_scatter",
        "backward",
    ): "the gradient of the input is zero where it is kept, and kept where it is written",
    ("as_strided_scatter", "double-backward"): "as the first gradient",
    ("triangular_solve", "forward-AD"): "the tangent of the triangle that is not read counts",
    ("cholesky_inverse", "forward-AD"): "the tangent of the triangle that is not read counts",
    ("fft.ihfft2", "out"): "out= is not written",
    ("fft.ihfftn", "out"): "out= is not written",
    ("nn.functional.linear_cross_entropy (chunked)", "double-backward"): "the chunked form has no second gradient",
}

INEXACT_IN_PYTORCH: dict[str, str] = {
    "special.bessel_j0": "off by 2e-7 between 4 and 10 in float64",
    "special.bessel_y1": "off by 3e-7 between 4 and 10 in float64",
    "nn.functional.ctc_loss": "float32 gradients are sums of exponentials of large numbers",
    "native_layer_norm": "rounding in the mean of one float32",
    "logcumsumexp": "the tangent is off by 2e-7 in float64, the gradient by cancellation in float32",
}
