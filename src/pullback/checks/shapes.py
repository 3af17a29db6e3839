"""What kernels ask of shapes, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.typing import Array, Dims, Shape


def check_broadcastable(shape: Shape, other: Shape) -> None:
    """Refuse two shapes that do not go together."""
    length = max(len(shape), len(other))
    first, second = (1,) * (length - len(shape)) + shape, (1,) * (length - len(other)) + other
    for dim in range(length - 1, -1, -1):
        if first[dim] != second[dim] and 1 not in (first[dim], second[dim]):
            raise RuntimeError(
                f"The size of tensor a ({second[dim]}) must match the size of tensor b ({first[dim]}) at non-singleton "
                f"dimension {dim}"
            )


def require_elements(name: str, input: Array, dim: Dims) -> None:
    """Refuse to reduce nothing to something that has no neutral element."""
    if input.size:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for axis in dim:
        if input.ndim and input.shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def infer_shape(count: int, shape: Sequence[int]) -> Shape:
    """`shape` with its -1 replaced, refused unless it holds `count` elements."""
    if len(shape) == 1 and shape[0] in (count, -1):
        return (count,)
    known, unknown = 1, -1
    for position, size in enumerate(shape):
        if size == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = position
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {position} of shape {list(shape)}")
        else:
            known *= size
    if unknown < 0:
        if known != count:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
        return tuple(shape)
    if known == 0:
        if count:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if count % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return (*shape[:unknown], count // known, *shape[unknown + 1 :])


def check_windows(sizes: Shape, kernel: Shape, stride: Shape, dilation: Shape, counts: Shape) -> None:
    """Refuse windows that reach beyond the padded sizes. (NumPy's own check overflows for huge numbers.)"""
    for size, k, d, c, s in zip(sizes, kernel, dilation, counts, stride, strict=True):
        if k > 0 and c > 0 and (k - 1) * d + (c - 1) * s >= size:
            raise RuntimeError(
                f"Kernel size can't be greater than actual input size: {c} windows of {k} elements, with stride {s} and "
                f"dilation {d}, do not lie in {size} elements"
            )


def joint_shape(first: Shape, second: Shape) -> Shape:
    """The shape that two shapes broadcast to."""
    try:
        return tuple(np.broadcast_shapes(first, second))
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a {list(first)} must match the size of tensor b {list(second)} at each dimension that is "
            "not 1"
        ) from None


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    """How many elements the diagonal of a matrix has."""
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def can_view(shape: Shape, strides: Shape, wanted: Shape) -> bool:
    """Whether elements of `shape` that lie `strides` apart can be seen in the (complete) shape `wanted` without a copy.

    Dimensions that lie in one piece, each where the next one ends, must hold whole dimensions of `wanted`.
    """
    if 0 in shape:
        return True
    place = len(wanted)
    count, end = 1, 0  # elements of the piece, from the last on, and how far the piece reaches in memory
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if stride != end:
            if count != 1:  # another piece begins
                return False
            end = stride
        count *= size
        end *= size
        while place and count % wanted[place - 1] == 0 and count != 1:
            place -= 1
            count //= wanted[place]
    return count == 1


def nothing_to_pool(function: str, shape: Shape) -> RuntimeError:
    """The error of a pool over a dimension without elements."""
    return RuntimeError(
        f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)}"
    )
