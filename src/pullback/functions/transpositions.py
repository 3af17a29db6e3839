"""Views with the dimensions in another order: PyTorch's overloads and composites."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.functions.shape import sizes, sizes_by_name
from pullback.modes.user_warnings import warn_once
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor


@declare(found="torch and method")
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """A view with the dimensions in another order.

    `dims` names every dimension once: the result's dimension k is the input's dimension dims[k]. It shares the
    memory.
    """
    given = sizes(sizes_by_name("permute", "dims", named, dims) if named else dims, "permute", "dims")
    ndim = input._array.ndim
    if len(given) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(given)}"
        )
    wrapped = tuple([wrap_dim(d, ndim) for d in given])
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return G.permute(input, wrapped)


@declare(found="torch and method")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """A view with two dimensions exchanged.

    As `transpose`, under NumPy's name.

    >>> import pullback
    >>> pullback.swapaxes(pullback.ones(2, 3, 4), 0, 2).shape
    pullback.Size([4, 3, 2])
    """
    return G.transpose(input, axis0, axis1)


@declare(found="torch and method")
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged.

    NumPy's name of `transpose`.

    >>> import pullback
    >>> pullback.swapdims(pullback.zeros(2, 3, 4), 0, 2).size(0)
    4
    """
    return G.transpose(input, dim0, dim1)


@declare(found="torch and method")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with dimensions moved to other places, the rest in order.

    `source` and `destination` are a dimension each, or as many in both.

    >>> import pullback
    >>> pullback.movedim(pullback.ones(2, 3, 4), 0, -1).shape
    pullback.Size([3, 4, 2])
    """
    ndim = input._array.ndim
    start = source if isinstance(source, (tuple, list)) else (source,)
    end = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(start) != len(end):
        if not all(type(d) is int for d in (*start, *end)):
            raise no_signature_fits("movedim", [type(source).__name__, type(destination).__name__])
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(start)} dims) should contain the same "
            "number of "
            f"dims as destination ({list(end)} dims)"
        )
    origins, targets = [wrap_dim(d, ndim) for d in start], [wrap_dim(d, ndim) for d in end]
    for name, dims, given in (("source", origins, start), ("destination", targets, end)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return G.alias(input)
    order = [-1] * ndim
    for origin, target in zip(origins, targets, strict=True):
        order[target] = origin
    rest = iter([d for d in range(ndim) if d not in origins])
    return G.permute(input, tuple([next(rest) if d < 0 else d for d in order]))


moveaxis = movedim


def tensor_T(input: Tensor) -> Tensor:
    """A view with the dimensions reversed."""
    if input._array.ndim not in (0, 2):
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: `x.mT` transposes "
            "batches of matrices, `x.permute(*range(x.ndim)[::-1])` reverses all dimensions."
        )
    return G.permute(input, tuple(range(input._array.ndim - 1, -1, -1)))


def tensor_mT(input: Tensor) -> Tensor:
    """A view of a batch of matrices with each one transposed."""
    if input._array.ndim == 0:
        return input
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    return G.transpose(input, -2, -1)


def tensor_H(input: Tensor) -> Tensor:
    """A matrix, transposed and conjugated."""
    if input._array.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input._array.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if input._array.ndim > 2 else "")
        )
    return _adjoint(input) if input._array.ndim else _conjugate(input)


def tensor_mH(input: Tensor) -> Tensor:
    """A batch of matrices, each transposed and conjugated."""
    if input._array.ndim == 0:
        return _conjugate(input)
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mH is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    return _adjoint(input)


@declare(masked=True, found="torch and method")
def adjoint(input: Tensor) -> Tensor:
    """A batch of matrices, each transposed and conjugated."""
    if input._array.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return _adjoint(input) if input._array.ndim else _conjugate(input)


def _adjoint(input: Tensor) -> Tensor:
    return _conjugate(G.transpose(input, -2, -1))


def _conjugate(input: Tensor) -> Tensor:
    return input.conj() if input._array.dtype.kind in "cW" else input
