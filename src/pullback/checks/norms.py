"""What the kernels of kernels/norms.py ask of their arguments."""

from __future__ import annotations

import math

from pullback.backend.dtype import is_float_or_complex, promote_dtypes, scalar_type_name
from pullback.typing import Array, Dim, Dims, DType, Scalar


def _check_dtype(given: DType, wanted: DType) -> None:
    if not is_float_or_complex(wanted):
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be floating point or complex, but got {scalar_type_name(wanted)}"
        )
    if (wanted.kind == "c") != (given.kind == "c"):
        kind = "complex" if given.kind == "c" else "real"
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {scalar_type_name(wanted)}"
        )


def linalg_vector_norm(
    input: Array, ord: Scalar = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> None:
    if not is_float_or_complex(input.dtype):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {scalar_type_name(input.dtype)}"
        )
    wanted = input.dtype if dtype is None else dtype
    _check_dtype(input.dtype, wanted)
    if not input.size and (ord < 0 or ord == math.inf):  # type: ignore[operator]
        _require_elements(input, ord, dim)


def _require_elements(input: Array, ord: Scalar, dim: Dims) -> None:
    """Refuse norms without a neutral element along dimensions without elements."""
    failure = f"linalg.vector_norm cannot compute the {ord:g} norm on"
    if not dim:
        raise RuntimeError(f"{failure} an empty tensor because the operation does not have an identity")
    for axis in dim:
        if input.shape[axis] == 0:
            raise RuntimeError(
                f"{failure} the dimension {axis}because this dimension is empty and the operation does not have an "
                "identity"
            )


def dist(input: Array, other: Array, p: Scalar = 2) -> None:
    dtype = promote_dtypes(input.dtype, other.dtype)
    if not is_float_or_complex(dtype):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {scalar_type_name(dtype)} instead."
        )


def renorm(input: Array, p: Scalar, dim: Dim, maxnorm: Scalar) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if p <= 0:  # type: ignore[operator]
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:  # type: ignore[operator]
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
