"""Common shapes, grids of coordinates, and stacking along named directions."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_number
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.functions.joining import cat, stack, tensor_split
from pullback.kernels.index_arrays import broadcast_shape
from pullback.modes.interception import interceptable
from pullback.modes.user_warnings import warn_user
from pullback.tensor.arguments import as_tensor_list, plain_number
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, new_tensor


@declare(written_in="functional", found="torch")
def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape of tensors of these shapes.

    Sizes are compared from the last on; they are equal, or one of them is 1 or missing.

    >>> import pullback
    >>> list(pullback.broadcast_shapes((3, 1), (4,), ()))
    [3, 4]
    """
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    for shape in given:
        for n in shape:
            if n < 0:
                raise ValueError(f"Attempting to broadcast a dimension with negative length: {n} in {list(shape)}")
    try:
        return Size(broadcast_shape(*given)) if given else Size(())
    except ValueError:
        raise _not_broadcastable(given) from None


def _not_broadcastable(shapes: list[tuple[int, ...]]) -> RuntimeError:
    known: tuple[int, ...] = ()
    for position, shape in enumerate(shapes):
        try:
            known = broadcast_shape(known, shape)
        except ValueError:
            pairs = list(zip(reversed(known), reversed(shape), strict=False))
            wrong = next(d for d, (a, b) in enumerate(pairs, 1) if a != b and 1 not in (a, b))
            return RuntimeError(
                f"Attempting to broadcast a dimension of length {shape[-wrong]} at -{wrong}! Mismatching argument "
                "at index "
                f"{position} had {shape}; but expected shape should be broadcastable to {list(known)}"
            )
    return RuntimeError("the shapes cannot be broadcast together")


@declare(written_in="functional", found="torch")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each expanded to their common shape.

    Sizes are compared from the last dimension on; 1 goes with every size.

    >>> import pullback
    >>> [t.shape for t in pullback.broadcast_tensors(pullback.ones(2, 1), pullback.ones(3))]
    [pullback.Size([2, 3]), pullback.Size([2, 3])]
    """
    given = _flat(tensors)
    try:
        shape = broadcast_shape(*[t._array.shape for t in given])
    except ValueError:
        raise _size_mismatch([t._array.shape for t in given]) from None
    return tuple([t if t._array.shape == shape else G.expand(t, shape) for t in given])


def _flat(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def _size_mismatch(shapes: list[tuple[int, ...]]) -> RuntimeError:
    known: tuple[int, ...] = ()
    for shape in shapes:
        try:
            known = broadcast_shape(known, shape)
        except ValueError:
            length = max(len(known), len(shape))
            a, b = (1,) * (length - len(known)) + known, (1,) * (length - len(shape)) + shape
            wrong = max(d for d in range(length) if a[d] != b[d] and 1 not in (a[d], b[d]))
            return RuntimeError(
                f"The size of tensor a ({a[wrong]}) must match the size of tensor b ({b[wrong]}) at non-singleton "
                f"dimension {wrong}"
            )
    return RuntimeError("the tensors' shapes cannot be broadcast together")


@declare(written_in="functional", found="torch")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors.

    For vectors of n, m, ... elements, as many views of shape (n, m, ...): the i-th changes along dimension i alone. With
    `indexing="xy"` the first two dimensions are exchanged, as in NumPy's default; "ij" leaves them.

    >>> import pullback
    >>> rows, columns = pullback.meshgrid(pullback.tensor([1, 2]), pullback.tensor([3, 4, 5]), indexing="ij")
    >>> rows + columns
    tensor([[4, 5, 6],
            [5, 6, 7]])
    """
    given = _flat(tensors)
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn_user("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")  # fmt: skip
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in given:
        if tensor._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(tensor._array.shape)}"
            )
        if tensor.dtype is not given[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swapped = indexing == "xy" and len(given) >= 2
    ordered = (given[1], given[0], *given[2:]) if swapped else given
    shape = tuple([t._array.size for t in ordered])
    grids = []
    for position, tensor in enumerate(ordered):
        column = (1,) * position + (-1,) + (1,) * (len(shape) - position - 1)
        grids.append(G.expand(G.view(tensor, tuple([shape[position] if n == -1 else n for n in column])), shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@declare(written_in="functional", found="torch")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every combination of one element of each vector, a row for each.

    For vectors of n and m elements the result has the shape (n * m, 2); the last vector changes fastest.

    >>> import pullback
    >>> pullback.cartesian_prod(pullback.tensor([1, 2]), pullback.tensor([8, 9]))
    tensor([[1, 8],
            [1, 9],
            [2, 8],
            [2, 9]])
    """
    for tensor in tensors:
        if tensor._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([G.reshape(g, (-1,)) for g in meshgrid(*tensors, indexing="ij")], 1)


@declare(found="torch")
@interceptable
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every combination of `r` elements of a vector, a row for each.

    In the order of `itertools.combinations`, or of `combinations_with_replacement`; the shape is (number of them, r).

    >>> import pullback
    >>> pullback.combinations(pullback.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    count = input._array.size
    if count**r > sys.maxsize:
        raise RuntimeError("numel: integer multiplication overflow")
    places = G.reshape(G.nonzero(G.ones_in_shape_of(input.detach())), (-1,))
    grids = [g._array for g in meshgrid(*[places] * r, indexing="ij")]
    keep: Any = grids[0] >= 0
    for a, b in pairwise(grids):
        keep = keep & (a <= b if with_replacement else a < b)
    mask = new_tensor(keep)
    return stack([G.masked_select(g, mask) for g in meshgrid(*[input] * r, indexing="ij")], 1)


def _given(name: str, tensors: Any) -> Any:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


@declare(found="torch")
def hstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors side by side: along columns, vectors along their length.

    Numbers and vectors are joined along dimension 0, all else along dimension 1; the other sizes are the same in all.

    >>> import pullback
    >>> pullback.hstack([pullback.tensor([[1], [2]]), pullback.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    given = _given("hstack", atleast_1d(tensors))
    return cat(given, 0 if given and given[0]._array.ndim == 1 else 1, out=out)


@declare(found="torch")
def vstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors below each other.

    Numbers and vectors become rows first; all are joined along dimension 0.

    >>> import pullback
    >>> pullback.vstack([pullback.tensor([1, 2]), pullback.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat(_given("vstack", atleast_2d(tensors)), 0, out=out)


row_stack = vstack


@declare(found="torch")
def dstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors behind each other, along the third dimension.

    `tensors` is a sequence; each is made three-dimensional as by `atleast_3d` and joined along dimension 2.

    >>> import pullback
    >>> pullback.dstack((pullback.tensor([1, 2]), pullback.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat(_given("dstack", atleast_3d(tensors)), 2, out=out)


@declare(found="torch")
def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """Vectors as columns, matrices side by side.

    `tensors` is a sequence; a vector of n elements becomes a column (n, 1), and all are joined along dimension 1.

    >>> import pullback
    >>> pullback.column_stack((pullback.tensor([1, 2]), pullback.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    given = as_tensor_list("column_stack", "tensors", 1, tensors)
    return cat([G.reshape(t, (t._array.size, 1)) if t._array.ndim <= 1 else t for t in given], 1, out=out)


def _each(function: Any, tensors: tuple[Any, ...]) -> Any:
    """Apply to one tensor, or to each of several."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    return tuple([function(t) for t in _flat(tensors)])


@declare(written_in="functional", found="torch")
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension.

    Gives one tensor for one argument, otherwise a tuple. Only a tensor without dimensions changes: () becomes (1,).

    >>> import pullback
    >>> pullback.atleast_1d(pullback.tensor(3))
    tensor([3])
    """
    return _each(lambda t: t if t._array.ndim else G.reshape(t, (1,)), tensors)


@declare(written_in="functional", found="torch")
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions, new ones in front.

    Gives one tensor for one argument, otherwise a tuple. The shape (n,) becomes (1, n).

    >>> import pullback
    >>> pullback.atleast_2d(pullback.arange(3)).shape
    pullback.Size([1, 3])
    """
    return _each(_atleast_2d, tensors)


def _atleast_2d(tensor: Tensor) -> Tensor:
    if tensor._array.ndim == 0:
        return G.reshape(tensor, (1, 1))
    return G.unsqueeze(tensor, 0) if tensor._array.ndim == 1 else tensor


@declare(written_in="functional", found="torch")
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions; a vector lies along the second, a matrix along the first two.

    Gives one tensor for one argument, otherwise a tuple. (n,) becomes (1, n, 1), and (n, m) becomes (n, m, 1).

    >>> import pullback
    >>> pullback.atleast_3d(pullback.arange(3)).shape
    pullback.Size([1, 3, 1])
    """
    return _each(_atleast_3d, tensors)


def _atleast_3d(tensor: Tensor) -> Tensor:
    ndim = tensor._array.ndim
    if ndim == 0:
        return G.reshape(tensor, (1, 1, 1))
    if ndim == 1:
        return G.unsqueeze(G.unsqueeze(tensor, 0), 2)
    return G.unsqueeze(tensor, 2) if ndim == 2 else tensor


def _named(*given: Any) -> Any:
    """The one that was given of the names that PyTorch has for an argument."""
    return next(value for value in given if value is not None)


@declare(found="torch and method")
def hsplit(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
    """Views side by side: split along columns, vectors along their length.

    A number says into how many parts; a list says at which places. As `tensor_split` along dimension 1, or 0 of a vector.

    >>> import pullback
    >>> pullback.hsplit(pullback.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    if input._array.ndim < 1:
        raise RuntimeError(
            "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!"
        )
    return _even_split(
        "hsplit", input, _named(indices_or_sections, indices, sections), 0 if input._array.ndim == 1 else 1
    )


@declare(found="torch and method")
def vsplit(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
    """Views below each other.

    A number says into how many parts; a list says at which rows. As `tensor_split` along dimension 0.

    >>> import pullback
    >>> pullback.vsplit(pullback.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    if input._array.ndim < 2:
        raise RuntimeError(
            f"torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with {input._array.ndim} "
            "dimensions!"
        )
    return _even_split("vsplit", input, _named(indices_or_sections, indices, sections), 0)


@declare(found="torch and method")
def dsplit(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
    """Views behind each other, along the third dimension."""
    if input._array.ndim < 3:
        raise RuntimeError(
            f"torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with {input._array.ndim} "
            "dimensions!"
        )
    return _even_split("dsplit", input, _named(indices_or_sections, indices, sections), 2)


def _even_split(name: str, input: Tensor, parts: Any, dim: int) -> Any:
    parts = plain_number(parts) if is_number(parts) else parts
    if not isinstance(parts, (int, tuple, list, Tensor)):
        raise no_signature_fits(name, ["Tensor", type(parts).__name__])
    if isinstance(parts, int) and (parts <= 0 or input._array.shape[dim] % parts):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{input._array.shape[dim]} is not divisible by the split_size {parts}!"
        )
    return tensor_split(input, parts, dim)


def _one_or_all(positions: tuple[Any, ...]) -> Any:
    return positions if len(positions) > 1 else positions[0] if positions else None


def method_hsplit(input: Tensor, *positions: Any, **named: Any) -> Any:
    """As `hsplit`; indices need no tuple."""
    return hsplit(input, _one_or_all(positions), **named)


def method_vsplit(input: Tensor, *positions: Any, **named: Any) -> Any:
    """As `vsplit`; indices need no tuple."""
    return vsplit(input, _one_or_all(positions), **named)


def method_dsplit(input: Tensor, *positions: Any, **named: Any) -> Any:
    """As `dsplit`; indices need no tuple."""
    return dsplit(input, _one_or_all(positions), **named)
