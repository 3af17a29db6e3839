"""What kernels of linear algebra ask of their matrices, in PyTorch's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.errors import LinAlgError
from pullback.typing import Array, Shape


def _require_matrix(function: str, A: Array, name: str = "A") -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def _require_square(function: str, A: Array, name: str = "A") -> None:
    _require_matrix(function, A, name)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


def _require_floating(function: str, A: Array, *, low_precision: bool = True) -> None:
    if not is_float_or_complex(A.dtype):
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {scalar_type_name(A.dtype)}"
        )
    if not low_precision and A.dtype.itemsize == 2:
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {scalar_type_name(A.dtype)}")


def _refuse_half(A: Array, function: str) -> None:
    """Refuse what the LAPACK routine has no version of: integers and 16-bit floats."""
    if A.dtype.itemsize == 2 or A.dtype.kind not in "fc":
        raise NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(A.dtype)}'")


def _require_same_dtype(function: str, A: Array, B: Array) -> None:
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{function}: Expected A and B to have the same dtype, but found A of type {scalar_type_name(A.dtype)} and B "
            f"of type {scalar_type_name(B.dtype)} instead"
        )


def _require_fitting(function: str, A: Array, B: Array, *, left: bool, columns: bool = True) -> None:
    """Refuse right-hand sides whose rows (columns, for XA = B) are not as many as those of A."""
    rows, width = (B.shape[-2], B.shape[-1]) if columns else (B.shape[-1], 1)
    if (rows if left else width) != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{rows}x{width})"
        )


def _broadcast_batches(A: Array, B: Array) -> Shape:
    """The common batch shape of two batches of matrices."""
    try:
        return np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    except ValueError:
        first, second = A.shape[:-2], B.shape[:-2]
        for offset in range(1, min(len(first), len(second)) + 1):
            a, b = first[-offset], second[-offset]
            if a != b and 1 not in (a, b):
                dim = max(len(first), len(second)) - offset
                raise RuntimeError(
                    f"The size of tensor a ({b}) must match the size of tensor b ({a}) at non-singleton dimension {dim}"
                ) from None
        raise


def _raise_for_info(function: str, info: Array, message: str) -> None:
    """Raise LinAlgError if a factorization says by `info` that it failed; `{info}` in the message is its value."""
    infos = np.asarray(info).reshape(-1)
    failed = np.flatnonzero(infos)
    if failed.size:
        batch = f"(Batch element {failed[0]}): " if np.ndim(info) else ""
        raise LinAlgError(f"{function}: {batch}{message.format(info=infos[failed[0]])}")


def _as_info(infos: Any, batch: Shape) -> Array:
    return np.asarray(infos, np.int32).reshape(batch)


def _by_columns(matrices: Array) -> Array:
    """The same matrices with columns contiguous in memory, as LAPACK leaves what PyTorch returns."""
    return np.ascontiguousarray(matrices.swapaxes(-1, -2)).swapaxes(-1, -2)
