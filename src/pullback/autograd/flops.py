"""Counting the floating-point operations of one call from the shapes of its arguments and its result."""

from __future__ import annotations

import math
from typing import Any

from pullback.facts import fact_of
from pullback.tensor.tensor import Tensor

_ELEMENTWISE = {"add", "add_scalar", "mul", "mul_scalar"}


def is_product(name: str) -> bool:
    """Whether each gradient of the operation costs as much as the operation."""
    name = name.removeprefix("aten::")
    return fact_of(name, "product") is not None or "conv" in name or _is_recurrent(name)


def _is_recurrent(shown: str) -> bool:
    """Whether a profile means a recurrent layer by a name, as `aten::lstm`."""
    return fact_of(f"{shown.removesuffix('_layer')}_layer", "recurrent") is not None


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
    weights = fact_of(name, "recurrent")
    if weights is not None and shapes[0] is not None:
        return 2 * math.prod(shapes[0][:-1]) * sum(math.prod(shape or ()) for shape in shapes[weights : weights + 2])
    factor = fact_of(name, "product")
    if factor is not None:
        shape = shapes[factor]
        return 2 * size * (shape[-1] if shape else 1)
    if "conv" in name and len(shapes) > 1 and shapes[0] is not None and shapes[1] is not None:
        transposed = "transpose" in name
        windows = math.prod(shapes[0]) if transposed else size
        return 2 * windows * math.prod(shapes[1][1:])
    return size if name.removesuffix("_") in _ELEMENTWISE else 0
