"""What is not compared, entry by entry, with the reason: PyTorch is wrong, inexact, or leaves the result open.

Wrong and inexact results were found by a higher-precision reference or by finite differences.
"""

NOT_COMPARED: dict[tuple[str, str], str] = {
    ("as_strided_scatter", "backward"): "PyTorch's gradient of the input is zero where it is kept, and the reverse",
    ("as_strided_scatter", "double-backward"): "as the first gradient",
    ("triangular_solve", "forward-AD"): "in PyTorch the tangent of the triangle that is not read counts",
    ("cholesky_inverse", "forward-AD"): "in PyTorch the tangent of the triangle that is not read counts",
    ("logcumsumexp", "forward-AD"): "PyTorch's tangents of complex numbers are NaN",
    ("fft.ihfft2", "out"): "PyTorch does not write out=",
    ("fft.ihfftn", "out"): "PyTorch does not write out=",
    (
        "nn.functional.linear_cross_entropy (chunked)",
        "double-backward",
    ): "PyTorch's chunked form has no second gradient",
    ("searchsorted", "vmap"): "the second example of the batch is not sorted",
    ("bucketize", "vmap"): "the second example of the batch is not sorted",
    ("argwhere", "vmap"): "the number of results differs between examples",
}

INEXACT_IN_PYTORCH: dict[str, str] = {
    "special.bessel_j0": "off by 2e-7 between 4 and 10 in float64",
    "special.bessel_y1": "off by 3e-7 between 4 and 10 in float64",
    "nn.functional.ctc_loss": "float32 gradients are sums of exponentials of large numbers",
    "native_layer_norm": "rounding in the mean of one float32",
    "logcumsumexp": "the tangent is off by 2e-7 in float64, the gradient by cancellation in float32",
}
