"""Elementwise operations: ranks are aligned, so that the examples stay along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.dtype import from_numpy_dtype, result_dtype
from pullback.func.batching_rules.table import aligned, ndim_of, tensors_among
from pullback.func.vmap_level import VmapLevel
from pullback.functions.conversion import convert
from pullback.generated.registry import OPERATIONS

_OTHERS = (
    "gcd lcm airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 heaviside signbit "
    "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor logical_and logical_not "
    "logical_or logical_xor eq ge gt le lt ne isclose isfinite isinf isnan isneginf isposinf isreal not_nan is_false is_one "
    "is_zero both equal_as conj _neg_view imaginary_part real_part zeros_of zero fill refill clone copy_to to_dtype "
    "to_integer view_as_real alias ones_in_shape_of zeros_in_shape_of chebyshev_polynomial_t "
    "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
    "laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
    "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w masked_fill copy"
)
_UNPROMOTED = {"copy", "masked_fill"}
ELEMENTWISE = {name for name, op in OPERATIONS.items() if op.kind == "elementwise"} | set(_OTHERS.split())


def elementwise(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Align the ranks, after promoting as the examples' numbers of dimensions demand."""
    name = function.__name__
    tensors = tensors_among((*args, *kwargs.values()))
    rank = max(ndim_of(t) for t in tensors)
    promoted = tensors[1:] if name == "where" else tensors
    common = None if name in _UNPROMOTED else promoted_dtype(promoted)

    def prepare(value: Any) -> Any:
        physical = aligned(level, value, rank)
        if common is None or not any(value is t for t in promoted):
            return physical
        return convert(physical, common)

    result = function(*[prepare(a) for a in args], **{k: prepare(v) for k, v in kwargs.items()})
    return level.wrap(result)


def promoted_dtype(tensors: list[Any]) -> Any:
    """The common dtype of the examples where the batches' would differ: numbers of dimensions decide. None if the same."""
    arrays = [t._array for t in tensors]
    if len({a.dtype for a in arrays}) == 1 or all(a.ndim for a in arrays):
        return None
    return from_numpy_dtype(result_dtype(arrays))
