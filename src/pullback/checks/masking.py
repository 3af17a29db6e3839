"""What the kernels of kernels/masking.py ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.backend.dtype import cpp_type_name, scalar_type_name
from pullback.checks.shape import diagonal
from pullback.checks.shapes import check_broadcastable, diagonal_length
from pullback.typing import Array, Dim, DType, Scalar, Shape


def _require_mask(name: str, mask: Array, type_name: Callable[[DType], str] = cpp_type_name) -> None:
    if mask.dtype != np.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {type_name(mask.dtype)}")


def masked_fill(input: Array, mask: Array, value: Scalar) -> None:
    _require_mask("masked_fill_", mask)
    check_broadcastable(input.shape, mask.shape)


def masked_scatter(input: Array, mask: Array, source: Array) -> None:
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {scalar_type_name(input.dtype)} and "
            f"{scalar_type_name(source.dtype)}"
        )
    check_broadcastable(input.shape, mask.shape)
    _require_mask("masked_scatter_", mask, scalar_type_name)


def masked_fill_tensor(input: Array, mask: Array, value: Array) -> None:
    if value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    check_broadcastable(input.shape, mask.shape)
    _require_mask("masked_fill_", mask)


def select_scatter(input: Array, src: Array, dim: Dim, index: int) -> None:
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    _require_shape(src, (*input.shape[:dim], *input.shape[dim + 1 :]))


def slice_scatter(
    input: Array, src: Array, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> None:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    length = len(range(*slice(start, end, step).indices(input.shape[dim])))
    _require_shape(src, (*input.shape[:dim], length, *input.shape[dim + 1 :]))


def diagonal_scatter(input: Array, src: Array, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> None:
    diagonal(input, offset, dim1, dim2)
    rest = [size for dim, size in enumerate(input.shape) if dim not in (dim1, dim2)]
    _require_shape(src, (*rest, diagonal_length(input.shape[dim1], input.shape[dim2], offset)))


def as_strided_scatter(input: Array, src: Array, size: Shape, stride: Shape, storage_offset: int | None = None) -> None:
    _require_shape(src, tuple(size))


def _require_shape(src: Array, shape: Shape) -> None:
    if src.shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(shape)}"
        )


def fill_tensor(input: Array, value: Array) -> None:
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")


def fill_in_place_tensor(input: Array, value: Array) -> None:
    fill_tensor(input, value)
