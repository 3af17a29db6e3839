"""Finding and counting values: PyTorch's overloads."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_number
from pullback.backend.dtype import promote_arrays
from pullback.checks import searching as checks
from pullback.errors import not_a_tensor
from pullback.facts import declare
from pullback.functions.grids import broadcast_tensors
from pullback.graph.basic_nodes import attach_unimplemented
from pullback.graph.in_place import write_out
from pullback.graph.renamed_node import renamed
from pullback.kernels import histograms
from pullback.kernels import searching as kernels
from pullback.modes.cuts import note_cut
from pullback.modes.interception import interceptable
from pullback.tensor.arguments import as_int, plain_number
from pullback.tensor.dims import wrap_dim
from pullback.tensor.return_types import RETURN_TYPES
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor


@declare(found="torch and method")
def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: a row for each, or a tensor for each dimension.

    >>> import pullback
    >>> pullback.nonzero(pullback.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return G.unbind(G.nonzero(input if input._array.ndim else G.unsqueeze(input, 0)), 1)
    return G.nonzero(input, out=out)


@declare(found="torch and method")
@interceptable
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, a row for each.

    For an input of d dimensions with n such elements the result has the shape (n, d), in int64.

    >>> import pullback
    >>> pullback.argwhere(pullback.tensor([[0, 7], [8, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return G.nonzero(input)


@interceptable
@declare(
    out_dtype=(
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        "whether out_int32 flag is True, but we got output tensor's dtype {1}"
    ),
    gives="positions",
    found="torch",
)
def searchsorted(
    sorted_sequence: Tensor, input: Any = None, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None, out: Any = None, values: Any = None,
) -> Tensor:  # fmt: skip
    """Where each value would be inserted into the last dimension of a sorted sequence.

    The result has the shape of the values, in int64 (int32 with `out_int32`): how many elements of the sequence are
    smaller, or with `right`=True (`side`="right") not greater. `sorter` sorts a sequence that is not.

    >>> import pullback
    >>> pullback.searchsorted(pullback.tensor([1, 3, 5]), pullback.tensor([3, 4]))
    tensor([1, 2])
    """
    given = input if values is None else values
    if given is None or isinstance(given, (list, tuple)):
        raise not_a_tensor("searchsorted", "input", 2, given)
    array = given._array if isinstance(given, TensorBase) else kernels.as_value(given, sorted_sequence._array.dtype)
    order = None if sorter is None else sorter._array
    rows, array = promote_arrays(sorted_sequence._array, array)
    checks.searchsorted(rows, array, right=right, side=side, sorter=order)
    made = new_tensor(kernels.searchsorted(rows, array, out_int32=out_int32, right=right, side=side, sorter=order))
    _note("searchsorted", made, sorted_sequence, given)
    return made if out is None else write_out("searchsorted", out, made)


@declare(gives="positions", found="torch")
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """Which interval between sorted boundaries each value lies in.

    `boundaries` is a sorted vector; the result has the shape of `input`. y is the i with boundaries[i - 1] < input <=
    boundaries[i], or with `right` boundaries[i - 1] <= input < boundaries[i].

    >>> import pullback
    >>> pullback.bucketize(pullback.tensor([3, 6]), pullback.tensor([1, 3, 5]))
    tensor([1, 3])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@declare(found="torch and method")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct values, or the distinct slices along a dimension, in order.

    A vector of the values, or their slices along `dim`; with `return_inverse` also the index into it of every
    element, with `return_counts` how often each occurs.
    """
    at = None if dim is None else wrap_dim(dim, input._array.ndim)
    results = G.unique(input, sorted, return_inverse, return_counts, at)
    if at is not None and results[0]._edge is not None:
        results[0]._edge = (renamed(results[0]._edge[0], "UniqueDimBackward0"), 0)
    return _chosen(results, return_inverse, return_counts)


@declare(found="torch and method")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The values, or slices, without repetitions that follow each other.

    With `return_inverse` also where each element of the input went, with `return_counts` how often each was repeated.

    >>> import pullback
    >>> pullback.unique_consecutive(pullback.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    at = None if dim is None else wrap_dim(dim, input._array.ndim)
    return _chosen(G.unique_consecutive(input, return_inverse, return_counts, at), return_inverse, return_counts)


def _chosen(results: Any, inverse: bool, counts: bool) -> Any:
    """The results that were asked for: one alone, several as a tuple."""
    kept = [results[0], *([results[1]] if inverse else []), *([results[2]] if counts else [])]
    return kept[0] if len(kept) == 1 else tuple(kept)


@declare(found="torch and method")
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None, axis: Any = None
) -> Tensor:
    """The elements at positions along a dimension; the other dimensions are broadcast.

    `indices` (int64) come from `argsort` or `argmax`, for example; without `dim` both are flattened. For dim=1: y[i, j]
    = input[i, indices[i, j]].

    >>> import pullback
    >>> pullback.take_along_dim(pullback.tensor([[10, 20]]), pullback.tensor([[1]]), 1)
    tensor([[20]])
    """
    dim = dim if axis is None else axis
    if indices._array.dtype.kind != "i" or indices._array.itemsize != 8:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        flat = G.gather(
            G.reshape(input, (-1,)), 0, G.positive_index(G.reshape(indices, (-1,)), (input._array.size,), 0)
        )
        return flat if out is None else write_out("take_along_dim", out, flat)
    if input._array.ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._array.ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    at = wrap_dim(dim, input._array.ndim)
    own, other = list(input._array.shape), list(indices._array.shape)
    common = [max(a, b) if 1 in (a, b) else a for a, b in zip(own, other, strict=True)]
    broadcast_tensors(_without(input, at), _without(indices, at))
    wide = G.expand(input, (*common[:at], own[at], *common[at + 1 :]))
    places = G.expand(G.positive_index(indices, tuple(own), at), (*common[:at], other[at], *common[at + 1 :]))
    return G.gather(wide, at, places, out=out)


def _without(tensor: Tensor, dim: int) -> Tensor:
    """Something of the shape of the tensor without a dimension, for the check that shapes go together."""
    shape = tensor._array.shape
    return G.expand(G.zeros_in_shape(tensor, ()), (*shape[:dim], *shape[dim + 1 :]))


@interceptable
@declare(out_dtype="c_types", gives="truth", found="torch")
def isin(
    elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False,
    out: Any = None, element: Any = None, test_element: Any = None,
) -> Tensor:  # fmt: skip
    """Whether each element is among the test elements.

    A tensor of bools in the shape of `elements`; `invert` gives the opposite. One of the two may be a number.

    >>> import pullback
    >>> pullback.isin(pullback.tensor([1, 2, 3]), pullback.tensor([2, 9]))
    tensor([False,  True, False])
    """
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    elements, test_elements = [plain_number(v) if is_number(v) else v for v in (elements, test_elements)]
    for position, (name, value) in enumerate((("elements", elements), ("test_elements", test_elements)), 1):
        if not isinstance(value, (TensorBase, int, float, complex)):
            raise not_a_tensor("isin", name, position, value)
    values = [t._array if isinstance(t, TensorBase) else t for t in (elements, test_elements)]
    made = new_tensor(kernels.isin(values[0], values[1], assume_unique, invert))
    _note("isin", made, elements, test_elements)
    return made if out is None else write_out("isin", out, made)


def _note(name: str, made: Tensor, *given: Any) -> None:
    """Note that the gradients of what requires grad end here."""
    for value in given:
        if isinstance(value, TensorBase) and value._requires_grad:
            note_cut(name, made, value)


@declare(found="torch and method")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs, or the sum of its weights.

    `input` is a vector of integers that are not negative; the result is (max(input) + 1,), or (minlength,) if that is
    longer. y[v] = sum of weights[i] (or 1) where input[i] == v.
    """
    result = G.bincount(input, weights, minlength)
    attach_unimplemented("bincount", (result,), (weights,))
    return result


@interceptable
@declare(out_dtype="histogram", returns="hist bin_edges", found="torch and method")
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """How many elements lie in each interval, and the edges of the intervals.

    `bins` is a number of intervals of equal width over `range` (of the elements, if not given), or their edges in order.
    `weight` counts elements by more than 1 each; with `density` the integral is 1. Gives a pair named `hist`, `bin_edges`.

    >>> import pullback
    >>> pullback.histogram(pullback.tensor([0.0, 1.0, 1.5, 4.0]), bins=2).hist
    tensor([3., 1.])
    """
    given: Any = bins._array if isinstance(bins, TensorBase) else as_int(bins)
    weights = None if weight is None else weight._array
    hist, edges = histograms.histogramdd(input._array.reshape(-1, 1), [given], range, weights, density)
    edge = edges[0].copy() if edges[0] is given else edges[0]
    made = RETURN_TYPES["histogram"]((new_tensor(hist), new_tensor(edge)))
    attach_unimplemented("histogram", made, (input, bins, weight))
    return made if out is None else write_out("histogram", out, made)


@interceptable
@declare(returns="hist bin_edges", count_of_values=True, found="torch")
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """How many points (rows) lie in each box, and the edges of the boxes."""
    shape = input._array.shape
    points = input._array.reshape(math.prod(shape[:-1]), shape[-1])
    bins = plain_number(bins)
    given = [bins] * points.shape[1] if isinstance(bins, int) else [plain_number(b) for b in bins]
    known = [b._array if isinstance(b, TensorBase) else as_int(b) for b in given]
    weights = None if weight is None else weight._array
    hist, edges = histograms.histogramdd(points, known, range, weights, density)
    kept = [b if isinstance(b, TensorBase) else new_tensor(e) for b, e in zip(given, edges, strict=True)]
    counts = new_tensor(hist)
    has_edges = any(isinstance(b, TensorBase) for b in given)
    if not has_edges:
        attach_unimplemented("_histogramdd_bin_edges", kept, (input, weight))
    attach_unimplemented(
        f"_histogramdd_from_bin_{'tensors' if has_edges else 'cts'}", (counts,), (input, *given, weight)
    )
    return RETURN_TYPES["histogramdd"]((counts, tuple(kept)))
