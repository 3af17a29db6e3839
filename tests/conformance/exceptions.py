"""What is not compared, entry by entry, with the reason: PyTorch is wrong, inexact, or leaves the result open.

Wrong and inexact results were found by a higher-precision reference or by finite differences.
"""

_NORMS = (
    "native_layer_norm", "native_batch_norm", "layer_norm", "nn.functional.layer_norm", "nn.functional.batch_norm",
    "nn.functional.instance_norm",
)  # fmt: skip

_WRITTEN = ("nn.functional.pad (circular)", "diff")
_ROUNDED = ("special.round", "round (decimals_0)", "special.round (decimals_0)")
_CHUNKED = ("nn.functional.linear_cross_entropy (chunked)", "nn.functional.linear_cross_entropy (chunked_none)")
_MEDIANS, _QUANTILES, _INTEGRALS = ("median", "nanmedian"), ("quantile", "nanquantile"), ("trapz", "trapezoid")

_NEAR_POLES = (
    *(f"{word}polygamma ({word.replace('.', '_')}polygamma_n_{n})" for word in ("", "special.") for n in range(5)),
    "special.erfcx",
)
_CONJUGATES = ("fft.ifft", "fft.ihfft")
_EMPTY = "PyTorch's batching rule refuses, or takes, of no elements what it does not without vmap"
_OF_NOTHING = (
    "index_copy", "index_select", "index_add", "slice_scatter", "select_scatter", "nn.functional.embedding",
    "nn.functional.nll_loss", "nn.functional.gaussian_nll_loss", "setitem.list", "setitem.mask", "setitem.row mask",
    "setitem.empty mask", "setitem.getitem mask", "setitem.getitem row mask", "setitem.getitem empty mask", "index_put",
    *(f"index_reduce ({name})" for name in ("mean", "prod", "amin", "amax")), *_CHUNKED,
)  # fmt: skip

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
    ("nn.functional.linear_cross_entropy (chunked)", "orders"): "PyTorch's chunked form has no second gradient",
    ("nn.functional.linear_cross_entropy (chunked_none)", "orders"): "PyTorch's chunked form has no second gradient",
    **{
        (name, "each-input"): "PyTorch's chunked form is not a function of transforms, and its tangent is 0"
        for name in _CHUNKED
    },
    **{
        (name, f"vmap: {end} dimension empty"): "examples without elements have the median nan, as without vmap"
        for end in ("first", "last")
        for name in _MEDIANS
    },
    **{(name, "vmap: first input only"): "the result lies as NumPy lays it out" for name in _QUANTILES},
    **{(name, "vmap: last dimension empty"): "zeros are new, and not one zero expanded" for name in _INTEGRALS},
    **{("gradient", f"vmap: {end} dimension empty"): "both refuse, in other words" for end in ("first", "last")},
    **{(name, "vmap: tangent"): "PyTorch's chunked form has no tangent: it is 0" for name in _CHUNKED},
    ("triangular_solve", "vmap: tangent"): "in PyTorch the tangent of the triangle that is not read counts",
    ("cholesky_inverse", "vmap: tangent"): "in PyTorch the tangent of the triangle that is not read counts",
    ("scatter_reduce (prod)", "vmap: tangent"): "PyTorch's tangent is zero",
    ("special.erfcx", "vmap: gradient"): "the rounding of a difference of large numbers",
    ("special.polygamma (special_polygamma_n_0)", "vmap: gradient"): "inexact in PyTorch near a pole",
    **{(f"polygamma (polygamma_n_{n})", "vmap: gradient"): "inexact in PyTorch near a pole" for n in range(5)},
    **{
        (f"nn.functional.{name}_margin_loss", "vmap: first dimension empty"): "PyTorch's mean of no losses is not set"
        for name in ("multi", "multilabel")
    },
    **{(name, f"vmap: {end} dimension empty"): _EMPTY for end in ("first", "last") for name in _OF_NOTHING},
    **{
        ("native_batch_norm", f"vmap: {end} dimension empty"): "the normalized values of nothing are nothing"
        for end in ("first", "last")
    },
    **{(name, "vmap: gradient, first along -1"): "inexact in PyTorch near a pole" for name in _NEAR_POLES},
    ("nn.functional.conv_tbc", "vmap: along 1"): "PyTorch's views need another layout",
    ("nn.functional.conv_tbc", "vmap: gradient, first along -1"): "PyTorch writes into a tensor that is not mapped",
    ("resize_as_", "vmap: all but the first"): "what is not mapped takes the shape, and keeps its values",
    **{
        (name, f"vmap: {where}"): "PyTorch takes examples of the value for those of the tensor"
        for name in ("setitem.slice and index tensor",)
        for where in ("along 0", "along 1", "along -1", "nested", "last dimension empty")
    },
    **{
        (name, f"vmap: along {dim}"): "PyTorch's result is a conjugate that is not computed yet"
        for dim in (0, 1)
        for name in _CONJUGATES
    },
    ("linalg.pinv", "vmap: all but the first"): "PyTorch's result of empty matrices is not mapped",
    ("logcumsumexp", "vmap: tangent"): "PyTorch's tangents are 0 where later elements are much larger",
    ("as_strided_scatter", "orders"): "as the first gradient",
    ("as_strided_scatter", "each-input"): "as the first gradient",
    ("triangular_solve", "each-input"): "in PyTorch the tangent of the triangle that is not read counts",
    ("cholesky_inverse", "each-input"): "in PyTorch the tangent of the triangle that is not read counts",
    ("scatter_reduce (prod)", "each-input"): "PyTorch's tangent is zero",
    ("special.erfcx", "each-input"): "the rounding of a difference of large numbers",
    **{(name, "orders"): "in PyTorch statistics count as constants from the third derivative on" for name in _NORMS},
    **{
        (
            f"{module}polygamma ({module.replace('.', '_')}polygamma_n_{n})",
            "each-input",
        ): "inexact in PyTorch near a pole"
        for module in ("", "special.")
        for n in range(5)
    },
    ("searchsorted", "vmap"): "the second example of the batch is not sorted",
    ("bucketize", "vmap"): "the second example of the batch is not sorted",
    ("argwhere", "vmap"): "the number of results differs between examples",
    **{(name, "graphs"): "there is one operation where PyTorch writes parts of a new tensor" for name in _WRITTEN},
    **{(name, "graphs"): "decimals=0 is what is not given" for name in _ROUNDED},
    **{(name, "graphs"): "PyTorch's chunked form is an operator written in Python" for name in _CHUNKED},
    **{(name, "graphs"): "results without a gradient have numbers too" for name in ("lu_unpack", "linalg.lu")},
    ("native_group_norm", "graphs"): "mean and deviation have the gradients that PyTorch's node leaves out",
    ("stft", "graphs"): "frames are windows of the signal, not of its memory, so that vmap can follow",
    ("linalg.norm (subgradients_at_zero)", "graphs"): "a norm of nothing keeps its history",
}

VMAP_LIMITS: dict[str, str] = {
    "forward AD with": "no tangent there",
    "Batching rule not implemented": "no batching rule there",
    "does not yet have a batching rule": "no batching rule there",
    "we do not yet support": "no batching rule there",
    "NYI": "not made for that layout there",
    "INTERNAL ASSERT FAILED": "an assertion of PyTorch itself",
    "derivative for": "no derivative there",
    "must override the setup_context": "PyTorch's chunked form is no function of transforms",
    "data-dependent control flow": "a check or a gradient reads values there; batches need no branch",
    "can support dynamic shape": "writing to the places of a mask gives every example the same shape",
    "MKL FFT error": "transforms of no examples' elements fail in its library",
    "doesn't have storage": "parts are counted in memory there",
    "Expected X.is_contiguous": "examples must lie one after the other there",
    "detach views in-place": "examples are views of the batch there",
    "is not differentiable with respect to": "no derivative there",
    "they cannot have forward grad defined": "no tangent there",
    "itself has a forward gradient at the same level": "no tangent there",
}
"""Words with which PyTorch refuses under vmap what works here: why."""

INEXACT_IN_PYTORCH: dict[str, str] = {
    "special.bessel_j0": "off by 2e-7 between 4 and 10 in float64",
    "special.bessel_y1": "off by 3e-7 between 4 and 10 in float64",
    "nn.functional.ctc_loss": "float32 gradients are sums of exponentials of large numbers",
    "native_layer_norm": "rounding in the mean of one float32",
    "logcumsumexp": "the tangent is off by 2e-7 in float64, the gradient by cancellation in float32",
}

_FACTORS = (
    "cholesky cholesky_inverse cholesky_solve linalg.cholesky linalg.cholesky_ex lu lu_solve linalg.lu linalg.lu_factor "
    "linalg.lu_factor_ex linalg.lu_solve det linalg.det logdet slogdet linalg.slogdet qr linalg.qr svd linalg.svd "
    "linalg.svdvals linalg.eigh linalg.eigvalsh linalg.solve_triangular triangular_solve linalg.lstsq "
    "linalg.matrix_norm linalg.cond norm"
).split()
_DEGREES = [
    f"special.{name}"
    for name in (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h "
        "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"
    ).split()
]
_ITERATED = (
    "igamma igammac special.gammainc special.gammaincc special.airy_ai lgamma special.gammaln mvlgamma special.multigammaln "
    "special.zeta"
).split()
READ_ON_THE_HOST: dict[str, str] = {
    **dict.fromkeys(_FACTORS, "looks for factorizations that failed, or for zeros on a diagonal"),
    **dict.fromkeys(_DEGREES, "follows a recurrence as far as the highest degree"),
    **dict.fromkeys(_ITERATED, "takes as many steps as the slowest element needs"),
    **dict.fromkeys(("median", "nanmedian", "quantile", "nanquantile"), "counts NaNs"),
    **dict.fromkeys(("searchsorted", "bucketize"), "looks for NaNs"),
    **dict.fromkeys(("histc", "histogram", "histogramdd"), "reads the range of its values"),
    **dict.fromkeys(
        ("index_reduce", "scatter_reduce"), "takes as many rounds as a place has values, or looks for overflow"
    ),
    **dict.fromkeys(("setitem.mask", "setitem.row", "setitem.empty", "setitem.getitem"), "makes positions of masks"),
    **dict.fromkeys(("unique", "unique_consecutive", "masked.median", "repeat_interleave"), "counts values"),
    **dict.fromkeys(("multinomial", "bernoulli", "nn.functional.one_hot"), "checks its values"),
    **dict.fromkeys(("nn.functional.embedding_bag", "nn.functional.pdist", "nonzero_static"), "reads positions"),
    **dict.fromkeys(("linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve"), "computes on the CPU"),
    "cov": "checks the weights",
    "istft": "checks that windows do not vanish",
}
"""Operations, of any variant, that wait for the device where PyTorch does not, and why."""

NOT_ON_DEVICES: dict[str, str] = {
    "chalf": "CuPy has no complex32",
    "nn.functional.rrelu": "slopes are drawn in another order",
    "nn.functional.rrelu_": "slopes are drawn in another order",
    "nn.functional.scaled_dot_product_attention": "dropout is drawn in another order",
    "nn.functional.multi_head_attention_forward": "dropout is drawn in another order",
    "nn.functional.max_unpool3d": "which of several values for one place is kept is open",
}
"""Operations, of any variant, that are not compared on devices, and why."""

_UNREAD = "backward reads no element of it, so its memory is not kept"
NOT_SHOWN: dict[str, tuple[str, str]] = {
    "CholeskySolveBackward0": ("self", _UNREAD),
    "ComplexBackward0": ("imag real", _UNREAD),
    "CummaxBackward0": ("self", _UNREAD),
    "CumminBackward0": ("self", _UNREAD),
    "DivBackward2": ("other self", _UNREAD),
    "FftR2CBackward0": ("self", _UNREAD),
    "GatherBackward0": ("self", _UNREAD),
    "IndexAddBackward0": ("source", _UNREAD),
    "IndexCopyBackward0": ("source", _UNREAD),
    "MaskedSelectBackward0": ("self", _UNREAD),
    "NativeBatchNormBackward0": ("running_mean running_var", "running statistics are updated beside the operation"),
    "NativeLayerNormBackward0": ("bias", _UNREAD),
    "PutBackward0": ("source", _UNREAD),
    "RreluWithNoiseBackward0": ("lower training upper", "the slopes are kept, not what they were drawn from"),
    "TakeBackward0": ("self", _UNREAD),
    "TriangularSolveBackward0": ("self", _UNREAD),
}
"""By node: what PyTorch shows as `_saved_...` and we do not, and why."""
