"""Joining and splitting: PyTorch's overloads and checks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.functions.shape import wrap_new_dim
from pullback.modes.function_modes import is_told
from pullback.modes.switches import process
from pullback.tensor.arguments import as_int, as_tensor_list
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import answers, any_foreign, ask_foreign
from pullback.tensor.sparse_tensor import SparseMethods, SparseTensor
from pullback.tensor.tensor import Tensor


@declare(found="torch")
def cat(tensors: Any, dim: int = 0, *, out: Any = None, axis: Any = None) -> Tensor:
    """The tensors one after another along a dimension.

    The tensors have the same sizes except along `dim`, where the result has the sum of their sizes.

    >>> import pullback
    >>> pullback.cat([pullback.tensor([1]), pullback.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    if process.modes and is_told(by_itself=True):
        return ask_foreign(cat, (tensors, dim), {"out": out})
    dim = dim if axis is None else axis
    if isinstance(tensors, (tuple, list)) and not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    try:
        tensors = as_tensor_list("cat", "tensors", 1, tensors)
    except TypeError:
        if any_foreign((tensors,)):
            return ask_foreign(cat, (tensors, dim), {"out": out})
        raise
    if _has_sparse(tensors):
        from pullback.functions.sparse_joining import sparse_cat  # lazy: few programs have sparse tensors

        return sparse_cat(tensors, as_int(dim))
    return G.cat(tensors, _checked_cat_dim(tensors, as_int(dim)), out=out)


def _has_sparse(tensors: Any) -> bool:
    """Whether one of them is sparse; where nobody made a sparse tensor yet, none is looked at."""
    return SparseMethods.attach is None and any(isinstance(tensor, SparseTensor) for tensor in tensors)


def _checked_cat_dim(tensors: Any, dim: int) -> int:
    """The wrapped dimension, after PyTorch's checks of the shapes; of tensors that are all skipped it may be any."""
    first: tuple[int, ...] | None = None
    for position, tensor in enumerate(tensors):
        shape = tensor._array.shape
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
        if shape == (0,):
            continue
        if first is None:
            first = shape
            dim = wrap_dim(dim, len(shape))
        elif shape != first:
            _check_cat_shape(first, shape, dim, position)
    return 0 if first is None else dim


def _check_cat_shape(first: tuple[int, ...], shape: tuple[int, ...], dim: int, position: int) -> None:
    if len(shape) != len(first):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    for d, (expected, actual) in enumerate(zip(first, shape, strict=True)):
        if d != dim and expected != actual:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size "
                f"{actual} "
                f"for tensor number {position} in the list."
            )


@declare(found="torch")
def concat(tensors: Any, dim: int = 0, *, out: Any = None, axis: Any = None) -> Tensor:
    """As `cat`.

    The tensors have the same sizes except along `dim`, where the result has the sum of their sizes.

    >>> import pullback
    >>> pullback.concat([pullback.tensor([1]), pullback.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    return cat(tensors, dim, out=out, axis=axis)


concatenate = concat


@declare(found="torch")
def stack(tensors: Any, dim: int = 0, *, out: Any = None, axis: Any = None) -> Tensor:
    """The tensors, all of one shape, along a new dimension.

    n tensors of one shape give a tensor with size n at the new dimension `dim`: y[i] = tensors[i] for dim=0.
    """
    if process.modes and is_told(by_itself=True):
        return ask_foreign(stack, (tensors, dim), {"out": out})
    dim = dim if axis is None else axis
    if isinstance(tensors, (tuple, list)) and not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    try:
        tensors = as_tensor_list("stack", "tensors", 1, tensors)
    except TypeError:
        if any_foreign((tensors,)):
            return ask_foreign(stack, (tensors, dim), {"out": out})
        raise
    if _has_sparse(tensors):
        from pullback.functions.sparse_joining import sparse_stack  # lazy: as in cat

        return sparse_stack(tensors, as_int(dim))
    shape = tensors[0]._array.shape
    for position, tensor in enumerate(tensors):
        if tensor._array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(tensor._array.shape)} at entry {position}"
            )
    return G.stack(tensors, wrap_new_dim(dim, len(shape)), out=out)


@declare(found="torch and method")
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    """Views of one size, or of the given sizes, along a dimension.

    A tuple of views: with a number, each of that size along `dim` and the last perhaps smaller; with a list, of these
    sizes, which sum up to the whole.
    """
    if (process.modes or type(tensor) is not Tensor) and answers("split", "tensor", tensor):
        return ask_foreign(split, (tensor, split_size_or_sections, dim))
    if tensor._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    sections = split_size if split_size_or_sections is None else split_size_or_sections
    if sections is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'")
    if isinstance(sections, (tuple, list)):
        return G.split_with_sizes(tensor, tuple([as_int(n) for n in sections]), dim)
    return G.split(tensor, sections if type(sections) is int else _sections_of(sections), dim)


@declare(found="torch and method")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """Views of the given sizes along a dimension."""
    dim = dim if axis is None else axis
    if input._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    return G.split_with_sizes(input, tuple([as_int(n) for n in split_sizes]), dim)


@declare(asks=True, bare=True, found="torch and method")
def chunk(input: Tensor, chunks: int, dim: int = 0, *, axis: Any = None) -> Any:
    """At most `chunks` views of one size along a dimension; the last may be smaller.

    A tuple of views, each of size ceil(n / chunks) along `dim` and the last perhaps smaller: there may be fewer than
    `chunks`.
    """
    if (process.modes or type(input) is not Tensor) and answers("chunk", "input", input):
        return ask_foreign(chunk, (input, chunks, dim))
    dim = dim if axis is None else axis
    if input._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if type(chunks) is not int:
        chunks = _count_of(chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    extent = input._array.shape[wrap_dim(dim, input._array.ndim)]
    size = (extent + chunks - 1) // chunks
    if size == 0:
        return G.split_with_sizes(input, (0,) * chunks, dim)
    return G.split(input, size, dim)


def _count_of(chunks: Any) -> int:
    try:
        return as_int(chunks)
    except TypeError:
        raise wrong_type("chunk", "chunks", 1, "int", chunks) from None


def _sections_of(sections: Any) -> int:
    try:
        return as_int(sections)
    except TypeError:
        raise wrong_type("split_with_sizes", "split_sizes", 2, "tuple of ints", sections) from None


@declare(found="torch and method")
def unbind(input: Tensor, dim: int = 0, *, axis: Any = None) -> Any:
    """A view of each slice along a dimension.

    A tuple with as many tensors as `dim` is long, each without that dimension; writing to one writes to `input`.

    >>> import pullback
    >>> pullback.unbind(pullback.tensor([[1, 2], [3, 4]]), dim=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    if process.modes and is_told(by_itself=True):
        return ask_foreign(unbind, (input, dim))
    dim = dim if axis is None else axis
    return G.unbind(input, dim)


@declare(found="torch and method")
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
    axis: Any = None,
) -> Any:
    """Views between the given positions along a dimension, or a number of views of nearly one size.

    A number n gives n views, the first ones larger by one where the size cannot be divided; a list says where views begin.

    >>> import pullback
    >>> pullback.tensor_split(pullback.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> pullback.tensor_split(pullback.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3]), tensor([4]))
    """
    dim = dim if axis is None else axis
    named = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    given = next(g for g in named if g is not None)
    if input._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = wrap_dim(dim, input._array.ndim)
    if isinstance(given, Tensor):
        if given._array.dtype.name != "int64":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{scalar_type_name(given._array.dtype)}"
            )
        if given._array.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
                f"got a tensor with {given._array.ndim} dims"
            )
        given = given.tolist()
    extent = input._array.shape[at]
    if isinstance(given, (tuple, list)):
        bounds = [0, *[as_int(n) for n in given], extent]
    else:
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        size, larger = divmod(extent, given)
        bounds = [0]
        for part in range(given):
            bounds.append(bounds[-1] + size + (part < larger))
    return tuple([_between(input, at, a, b, extent) for a, b in pairwise(bounds)])


def _between(input: Tensor, dim: int, start: int, end: int, extent: int) -> Tensor:
    first, last, _ = slice(start, end).indices(extent)
    return G.slice_view(input, dim, first, max(last, first), 1)
