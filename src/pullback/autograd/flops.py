"""Counting the floating-point operations of one call from the shapes of its arguments and its result."""

from __future__ import annotations

import math
from typing import Any

from pullback.tensor.tensor import Tensor

_PRODUCTS = {
    "mm": 0, "bmm": 0, "matmul": 0, "matmul_batched": 0, "matmul_flipped": 0, "mv": 0, "dot": 0, "inner": 0,
    "linear_bias": 0, "linear_bias_folded": 0, "linear_bias_added": 0, "linear_product": 0, "linear_product_folded": 0,
    "linear": 0, "addmm": 1, "baddbmm": 1, "addmv": 1,
}  # fmt: skip
"""Matrix products, and which argument's last dimension is summed over."""

_ELEMENTWISE = {"add", "add_scalar", "mul", "mul_scalar"}


def is_product(name: str) -> bool:
    """Whether each gradient of the operation costs as much as the operation."""
    name = name.removeprefix("aten::")
    return name in _PRODUCTS or "conv" in name


def count_flops(name: str, args: tuple[Any, ...], result: Any) -> int:
    """How many multiplications and additions a call took; 0 for what is not counted.

    >>> import pullback
    >>> a, b = pullback.ones(2, 3), pullback.ones(3, 4)
    >>> count_flops("mm", (a, b), a @ b)
    48
    """
    out = result[0] if isinstance(result, tuple) and result else result
    if not isinstance(out, Tensor):
        return 0
    shapes = [a._array.shape if isinstance(a, Tensor) else None for a in args]
    size = int(out._array.size)
    if name in _PRODUCTS:
        shape = shapes[_PRODUCTS[name]]
        return 2 * size * (shape[-1] if shape else 1)
    if "conv" in name and len(shapes) > 1 and shapes[0] is not None and shapes[1] is not None:
        transposed = "transpose" in name
        windows = math.prod(shapes[0]) if transposed else size
        return 2 * windows * math.prod(shapes[1][1:])
    return size if name.removesuffix("_") in _ELEMENTWISE else 0
