"""Reversing, rolling, repeating, diagonals: PyTorch's overloads and composites."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.errors import kind_of
from pullback.facts import declare
from pullback.functions.shape import sizes, sizes_by_name
from pullback.functions.view_copies import copy_of_view
from pullback.graph.in_place import write_out
from pullback.kernels.rearranging import repeat_interleave_counts
from pullback.modes.interception import interceptable
from pullback.tensor.arguments import as_int
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor, new_tensor


@declare(found="torch and method")
def flip(input: Tensor, dims: Any) -> Tensor:
    """A copy with the order along the dimensions reversed.

    `dims` is a tuple; the result has the shape of `input`. y[i] = input[n - 1 - i] along each of them.

    >>> import pullback
    >>> pullback.flip(pullback.arange(3), (0,))
    tensor([2, 1, 0])
    """
    return method_flip(input, dims=dims)


def method_flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """As `flip`, whose dimensions may be given one by one."""
    wrapped = tuple([wrap_dim(d, input._array.ndim) for d in sizes(axes if dims is None else (dims,), "flip", "dims")])
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return G.flip(input, wrapped if input._array.ndim else ())


@declare(found="torch and method")
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns reversed.

    As `flip` along dimension 1; needs two dimensions or more.

    >>> import pullback
    >>> pullback.fliplr(pullback.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return G.flip(input, (1,))


@declare(found="torch and method")
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows reversed.

    As `flip` along dimension 0; needs one dimension or more.

    >>> import pullback
    >>> pullback.flipud(pullback.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return G.flip(input, (0,))


@declare(found="torch and method")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """A copy shifted along dimensions, or in row-major order; what leaves at one end enters at the other.

    The result has the shape of `input`; `shifts` and `dims` are numbers or tuples of one length. y[(i + shift) % n] =
    input[i].
    """
    amounts = sizes((shifts,), "roll", "shifts")
    if not amounts:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == () or dims == []:
        if len(amounts) > 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(amounts)}, dims:0")
        return G.roll(input, amounts, ())
    if input._array.ndim == 0:
        raise IndexError(f"Dimension specified as {sizes((dims,), 'roll', 'dims')[0]} but tensor has no dimensions")
    wrapped = tuple([wrap_dim(d, input._array.ndim) for d in sizes((dims,), "roll", "dims")])
    if len(wrapped) != len(amounts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(amounts)}, dims:{len(wrapped)}")
    return G.roll(input, amounts, wrapped)


@declare(found="torch and method")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A copy turned by quarters in the plane of two dimensions.

    `k` quarters from the first of `dims` towards the second; negative `k` turns back.

    >>> import pullback
    >>> pullback.rot90(pullback.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    plane = sizes((dims,), "rot90", "dims")
    ndim = input._array.ndim
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    wrapped = (wrap_dim(plane[0], ndim), wrap_dim(plane[1], ndim))
    if wrapped[0] == wrapped[1]:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    return G.rot90(input, k, wrapped)


@declare(found="method")
def repeat(input: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """The tensor repeated along each dimension.

    As many numbers as there are dimensions, or more: (2, 3) repeated (4, 1, 2) times is (4, 2, 6).
    """
    times = sizes(sizes_by_name("repeat", "repeats", named, repeats) if named else repeats, "repeat", "repeats")
    if len(times) < input._array.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(n < 0 for n in times):
        lead = (1,) * (len(times) - input._array.ndim)
        shape = [n * times[d] for d, n in enumerate(lead + input._array.shape)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {shape}")
    return G.repeat(input, times)


@declare(found="torch and method")
def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """The tensor repeated along its last dimensions.

    Each number says how often a dimension is repeated, the last one that of the last dimension; where there are fewer
    numbers than dimensions, the first ones are not repeated.

    >>> import pullback
    >>> pullback.tile(pullback.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    times = sizes(sizes_by_name("tile", "dims", named, dims) if named else dims, "tile", "dims")
    return repeat(input, (1,) * (input._array.ndim - len(times)) + times)


@declare(found="torch and method")
def repeat_interleave(
    input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None, axis: Any = None
) -> Tensor:
    """Each element, or each slice along a dimension, repeated.

    `repeats` is a number, or one for each slice along `dim` (int64); without `dim` the input is flattened first. The
    size along `dim` becomes their sum: [a, b] becomes [a, a, b, b] for 2.
    """
    if input is None:
        input, repeats = repeats, None
    dim = dim if axis is None else axis
    if repeats is None:
        return _interleaved_positions(input)
    if dim is None:
        input, dim = G.reshape(input, (-1,)), 0
    at = wrap_dim(dim, input._array.ndim)
    if input._array.ndim == 0:
        raise IndexError(
            f"Dimension specified as {dim} but tensor has no dimensions: repeat_interleave() without dim repeats a number"
        )
    if isinstance(repeats, Tensor) and repeats._array.size == 1:
        repeats = G.reshape(G.expand(repeats, (input._array.shape[at],)), (-1,))
    if not isinstance(repeats, Tensor):
        times = as_int(repeats)
        _check_size(output_size, input._array.shape[at] * times)
        return _interleave_evenly(input, times, at)
    if repeats._array.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats._array.size != input._array.shape[at]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats._array.size} and "
            f"input.size({at}) = {input._array.shape[at]}"
        )
    places = _interleaved_positions(repeats)
    if repeats._array.size:  # PyTorch asks nothing of what has no places
        _check_size(output_size, places._array.size)
    return G.index_select(input, at, places)


def _check_size(expected: Any, size: int) -> None:
    """The size that a caller knows beforehand must be right."""
    if expected is not None and as_int(expected) != size:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {size} but got {expected}: allocated size does not match "
            "required size"
        )


@interceptable
def _interleaved_positions(repeats: Tensor) -> Tensor:
    """Position i as often as repeats[i] says."""
    counts = repeats._array
    if counts.dtype.kind != "i" or counts.itemsize < 4:
        raise NotImplementedError(f'"repeat_interleave_cpu" not implemented for {scalar_type_name(counts.dtype)!r}')
    if counts.size and int(counts.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    steps = G.nonzero(G.ones_in_shape_of(repeats.detach()))._array.reshape(-1)
    return new_tensor(repeat_interleave_counts(steps.astype(counts.dtype), counts, 0))


def _interleave_evenly(input: Tensor, times: int, dim: int) -> Tensor:
    if times < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = input._array.shape
    wide = G.expand(G.unsqueeze(input, dim + 1), (*shape[: dim + 1], times, *shape[dim + 1 :]))
    copied = G.contiguous_copy(wide)
    return G.view(copied, (*shape[:dim], shape[dim] * times, *shape[dim + 1 :]))


@declare(found="torch and method")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dimension along a diagonal of two new dimensions.

    (*, n) becomes (*, n + |offset|, n + |offset|), with the new dimensions at `dim1` and `dim2`.

    >>> import pullback
    >>> pullback.diag_embed(pullback.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    ndim = input._array.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return G.diag_embed(input, offset, first, second)


@declare(out_dtype="c_types", found="torch and method")
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """The diagonal of a matrix as a copy, or a matrix with a vector on its diagonal.

    (n,) gives (n + |k|, n + |k|) and (n, m) the vector of its `diagonal` k: 0 is the main one, positive ones lie
    above it. y[i] = input[i, i + k].
    """
    if input._array.ndim == 1:
        made = G.diag_embed(input, diagonal, 0, 1)
    elif input._array.ndim == 2:
        made = copy_of_view(G.diagonal(input, diagonal, 0, 1))
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    return made if out is None else write_out("diag", out, made)


@declare(found="torch and method")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal.

    `input` of n elements, flattened, gives a square matrix of n + |offset| rows; `offset` > 0 is above the diagonal.

    >>> import pullback
    >>> pullback.diagflat(pullback.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    return G.diag_embed(G.reshape(input, (-1,)), offset, 0, 1)


@declare(found="method")
def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one value on the main diagonal; with `wrap`, on again below a tall matrix's end."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(input.stride())
    length = min(shape)
    main = input.as_strided((length,), (step,), input.storage_offset())
    G.fill_in_place_(main, fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        block = shape[1] + 1
        count = (shape[0] - block) * shape[1] // step + ((shape[0] - block) * shape[1] % step > 0)
        offset = input.stride(0) * block
        G.fill_in_place_(input.as_strided((count,), (step,), input.storage_offset() + offset), fill_value)
    return input


@declare(found="torch")
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices along its diagonal and zeros elsewhere.

    Numbers and vectors count as matrices of one row. The shape is the sum of all rows by the sum of all columns.

    >>> import pullback
    >>> pullback.block_diag(pullback.tensor([[1, 2]]), pullback.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    given = tensors or (_empty_row(),)
    for position, tensor in enumerate(given):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {kind_of(tensor)}")
        if tensor._array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has "
                f"{tensor._array.ndim} dimensions"
            )
    return G.block_diag(given)


def _empty_row() -> Tensor:
    from pullback.creation import empty

    return empty(1, 0)
