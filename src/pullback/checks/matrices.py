"""What kernels of linear algebra ask of their matrices, in PyTorch's words."""

from __future__ import annotations

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.checks.dtypes import not_implemented
from pullback.typing import Array, Shape


def require_matrix(function: str, A: Array, name: str = "A") -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def require_dimensions(function: str, A: Array, name: str) -> None:
    """What older functions say of an array that is not a matrix."""
    if A.ndim < 2:
        raise RuntimeError(
            f"{function}: Expected {name} to have at least 2 dimensions, but it has {A.ndim} dimensions instead"
        )


def require_rows(function: str, A: Array, B: Array) -> None:
    """What older functions say of right-hand sides that have not as many rows as A has columns."""
    if B.shape[-2] != A.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {A.shape[-1]} by {A.shape[-1]} but each b matrix "
            f"is {B.shape[-2]} by {B.shape[-1]}"
        )


def require_square(function: str, A: Array, name: str = "A") -> None:
    require_matrix(function, A, name)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


def require_floating(function: str, A: Array, *, low_precision: bool = True) -> None:
    if not is_float_or_complex(A.dtype):
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {scalar_type_name(A.dtype)}"
        )
    if not low_precision and A.dtype.itemsize == 2:
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {scalar_type_name(A.dtype)}")


def is_vector(A_shape: Shape, B_shape: Shape) -> bool:
    """Whether the right-hand side is one vector per matrix: PyTorch decides it by the shapes alone."""
    return len(B_shape) == 1 or (len(A_shape) - 1 == len(B_shape) and tuple(B_shape) == tuple(A_shape[:-1]))


def refuse_half(A: Array, function: str) -> None:
    """Refuse what the LAPACK routine has no version of: integers and 16-bit floats."""
    if A.dtype.itemsize == 2 or A.dtype.kind not in "fc":
        raise not_implemented(function, A)


def require_same_dtype(function: str, A: Array, B: Array) -> None:
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{function}: Expected A and B to have the same dtype, but found A of type {scalar_type_name(A.dtype)} and B "
            f"of type {scalar_type_name(B.dtype)} instead"
        )


def require_fitting(function: str, A: Array, B: Array, *, left: bool, columns: bool = True) -> None:
    """Refuse right-hand sides whose rows (columns, for XA = B) are not as many as those of A."""
    rows, width = (B.shape[-2], B.shape[-1]) if columns else (B.shape[-1], 1)
    if (rows if left else width) != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{rows}x{width})"
        )
