"""Views and copies in another shape.

A kernel of a view returns an array on the same memory, always an ndarray (NumPy would give a scalar for one element),
always writable, and with non-negative strides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import as_array, cast_array, copy_array, inverse_order, memory_order, parts, restride
from pullback.backend.array_module import as_strided as strided_window
from pullback.backend.device import move_array
from pullback.backend.dtype import complex_of, real_of
from pullback.checks import checked
from pullback.checks.shapes import diagonal_length, infer_shape
from pullback.native import by_device, native
from pullback.typing import Array, Dim, DType, Shape


def clone(input: Array) -> Array:
    """A copy."""
    return copy_array(input if type(input) is np.ndarray else as_array(input))


def copy_to(input: Array, order: str = "preserve_format") -> Array:
    """A copy, as `to(copy=True)` makes it, its memory in the order that PyTorch's memory format names."""
    return copy_array(as_array(input)) if order == "preserve_format" else contiguous_copy(input, order)


@native
def contiguous_copy(input: Array, order: str = "contiguous_format") -> Array:
    """A copy in row-major order, or with the channels (dimension 1) next to each other."""
    if order in ("channels_last", "channels_last_3d"):
        return np.moveaxis(np.array(np.moveaxis(input, 1, -1), copy=True, order="C"), -1, 1)
    return np.array(input, copy=True, order="C")


def to_dtype(input: Array, dtype: DType) -> Array:
    """The same values in another dtype; complex to real keeps the real part."""
    return cast_array(input, dtype)


def to_copy(input: Array, dtype: DType) -> Array:
    """The same values in another dtype, as an operation of its own."""
    return cast_array(input, dtype)


def to_device(input: Array, place: Any, origin: Any) -> Array:
    """The same values in the memory of the device `place`; those of `input` are in that of `origin`."""
    return move_array(input, place)


def to_integer(input: Array, dtype: DType) -> Array:
    """The same values in an integer or bool dtype."""
    return cast_array(input, dtype)


@by_device
def copy(input: Array, src: Array) -> Array:
    """The values of `src` in the shape and dtype of `input`."""
    return np.array(np.broadcast_to(cast_array(np.asarray(src), input.dtype), input.shape))


def alias(input: Array) -> Array:
    """The same array."""
    return input


@by_device
def zeros_in_shape(input: Array, shape: Shape) -> Array:
    """Zeros of another shape in the dtype of `input`."""
    return np.zeros(shape, input.dtype)


@by_device
def zeros_in_shape_of(input: Array) -> Array:
    """Zeros in the shape and dtype of `input`."""
    return np.zeros(input.shape, input.dtype)


@native
def reshape(input: Array, shape: Shape) -> Array:
    """The same elements in another shape, on the same memory where that is possible."""
    return input.reshape(infer_shape(input.size, shape) if -1 in shape else shape)


@native
@checked
def view(input: Array, size: Shape) -> Array:
    """The same memory in another shape."""
    return input.reshape(infer_shape(input.size, size))


@native
def unsafe_view(input: Array, size: Shape) -> Array:
    """A fresh array in another shape: nobody else knows its memory, so it is not a view."""
    return input.reshape(infer_shape(input.size, size))


@by_device
@checked
def view_dtype(input: Array, dtype: DType) -> Array:
    """The same memory, its bytes read as another dtype."""
    ratio = input.itemsize / dtype.itemsize
    if ratio == 1:
        return input.view(dtype)
    size = input.shape[-1] * input.itemsize // dtype.itemsize
    if input.size == 0:
        return np.empty((*input.shape[:-1], size), dtype)
    if input.flags.c_contiguous:
        return input.view(dtype)
    return restride(input, (*input.shape[:-1], size), (*input.strides[:-1], dtype.itemsize), dtype)


@native
@checked
def expand(input: Array, size: Shape) -> Array:
    """A view with dimensions of size 1 repeated without copying."""
    input = np.asarray(input)
    shape, strides = input.shape, input.strides
    if shape == size:
        return input[...]
    lead = len(size) - len(shape)
    new_shape, new_strides = list(size), [0] * len(size)
    for position in range(len(size) - 1, -1, -1):
        wanted = size[position]
        if position >= lead:
            have, stride = shape[position - lead], strides[position - lead]
        else:
            have = 1
            last = position + 1 == len(size)
            stride = input.itemsize if last else new_shape[position + 1] * new_strides[position + 1]
        if wanted == -1 and position >= lead:
            new_shape[position] = wanted = have
        new_strides[position] = stride if have == wanted else 0
    return restride(input, tuple(new_shape), tuple(new_strides))


@native
def transpose(input: Array, dim0: Dim, dim1: Dim) -> Array:
    """A view with two dimensions exchanged.

    The result has the sizes of `dim0` and `dim1` exchanged and shares the memory. For a matrix y[i, j] = input[j, i].
    """
    return input.swapaxes(dim0, dim1) if input.ndim else input


@native
def permute(input: Array, dims: Shape) -> Array:
    """A view with the dimensions in another order."""
    return input.transpose(dims) if dims else input


@native
@checked
def t(input: Array) -> Array:
    """A view of a matrix with its dimensions exchanged.

    (n, m) becomes (m, n); vectors and tensors without dimensions stay as they are, more dimensions raise.

    >>> import pullback
    >>> pullback.t(pullback.tensor([[1, 2, 3], [4, 5, 6]]))
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    return input.transpose()


@native
def unsqueeze(input: Array, dim: int) -> Array:
    """A view with a dimension of size 1 inserted."""
    if dim < 0:
        dim += input.ndim + 1
    shape, strides = input.shape, input.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else input.itemsize
    if input.flags.c_contiguous:
        return input.reshape((*shape[:dim], 1, *shape[dim:]))
    return restride(input, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


def squeeze(input: Array) -> Array:
    """A view without the dimensions of size 1."""
    return input.squeeze()


def squeeze_dim(input: Array, dim: Dim) -> Array:
    """A view without this dimension, if its size is 1."""
    return input.squeeze(dim) if input.ndim and input.shape[dim] == 1 else input


def squeeze_dims(input: Array, dim: Shape) -> Array:
    """A view without those of these dimensions whose size is 1."""
    return input.squeeze(tuple([d for d in dim if input.ndim and input.shape[d] == 1]))


def diagonal(input: Array, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Array:
    """A view of the diagonal of two dimensions, which becomes the last dimension.

    `dim1` and `dim2` are left out, and the last dimension of the result runs along their diagonal. `offset` counts
    diagonals above it (or below, if negative). y[..., i] = input[..., i, i + offset].
    """
    length = diagonal_length(input.shape[dim1], input.shape[dim2], offset)
    rest = [d for d in range(input.ndim) if d not in (dim1, dim2)]
    shape = (*[input.shape[d] for d in rest], length)
    strides = (*[input.strides[d] for d in rest], input.strides[dim1] + input.strides[dim2])
    at = [slice(None)] * input.ndim
    at[dim1], at[dim2] = slice(max(-offset, 0), None), slice(max(offset, 0), None)
    return restride(input[tuple(at)], shape, strides)


def unfold(input: Array, dimension: Dim, size: int, step: int) -> Array:
    """A view of all slices of `size` along a dimension, `step` apart; the slices lie along a new last dimension.

    `size` at `dimension` becomes floor((n - size) / step) + 1, and a last dimension of `size` is added.
    """
    if input.ndim == 0:
        return restride(input, (size,), (input.itemsize,))
    shape, strides = list(input.shape), list(input.strides)
    stride = strides[dimension]
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] = stride * step
    return restride(input, (*shape, size), (*strides, stride))


def as_strided(
    input: Array, size: Shape, stride: Shape, storage_offset: int | None = None, input_stride: Shape = (),
    input_offset: int = 0, examples: int = 0,
) -> Array:  # fmt: skip
    """A view of the storage with the given geometry; that of `input` itself, and how many of its first dimensions count
    examples, are for the derivative."""
    return strided_window(input, size, stride, storage_offset)


def view_as_real(input: Array) -> Array:
    """A view of complex elements as pairs of real ones, in a new last dimension."""
    if input.dtype.kind == "c":
        return input[..., None].view(real_of(input.dtype))  # 25 times faster than stride tricks
    real = parts(input)[0]
    return restride(real, (*input.shape, 2), (*input.strides, real.itemsize))


@by_device
def view_as_complex(input: Array) -> Array:
    """A view of the pairs in the last dimension as complex elements.

    A float tensor (..., 2) becomes a complex one (...): real parts first.

    >>> import pullback
    >>> pullback.view_as_complex(pullback.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    wanted = complex_of(input.dtype)
    pairs = input.view(wanted) if input.size and wanted.kind == "c" else view_dtype(input, wanted)
    return pairs[..., 0]


@native
def select_part(input: Array, dim: int, index: int) -> Array:
    """A view at one position of a dimension, which is known to exist."""
    return input[(*[slice(None)] * dim, index, ...)]


@by_device
def zeros_of(input: Array) -> Array:
    """Zeros of the shape, dtype and order in memory of `input`: the gradient of a step function."""
    if input.flags.c_contiguous:
        return np.zeros(input.shape, input.dtype)
    order = memory_order(input)
    return np.zeros([input.shape[dim] for dim in order], input.dtype).transpose(inverse_order(order))
