"""All kernels of the GPU's own, by the names of the operations. See Note [Kernels by device]."""

from __future__ import annotations

from typing import Any

from pullback.devices.cuda.convolutions import Convolutions
from pullback.devices.cuda.elementwise import fused_kernels
from pullback.devices.cuda.images import Images
from pullback.devices.cuda.losses import Losses
from pullback.devices.cuda.position_checks import PositionChecks
from pullback.devices.cuda.products import Products
from pullback.devices.cuda.recurrent import Recurrent
from pullback.devices.cuda.rows import RowKernels
from pullback.kernels.index_arrays import check_index

_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
    "exp": "exp", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "absolute": "abs", "maximum": "maximum",
    "minimum": "minimum", "reciprocal": "reciprocal", "sin": "sin", "cos": "cos", "expm1": "expm1", "log1p": "log1p",
}  # fmt: skip
"""Functions of NumPy, and the kernels that compute the same."""


def own_kernels(library: Any) -> dict[str, Any]:
    """The kernels for a library with `pending`, `compiled` and `gemm`."""
    fused = fused_kernels(library)
    library.ufuncs |= {name: fused[kernel] for name, kernel in _UFUNCS.items()}
    products = Products(library)
    library.overrides["matmul"] = products.matmul
    rows = RowKernels(library, fused)
    families = (
        rows,
        products,
        Convolutions(library, products, rows),
        Images(library),
        Recurrent(library, products, rows),
        Losses(library, rows),
    )
    for family in families:
        fused |= family.kernels()
    library.functions["kernels.index_arrays"] = {"check_index": PositionChecks(library, check_index).check_index}
    return fused
