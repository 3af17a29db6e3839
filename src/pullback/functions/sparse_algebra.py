"""What sparse tensors do without becoming dense: products with dense matrices, sums, softmaxes, transposition.

All is written with recorded operations on the values. See Note [Gradients of sparse tensors].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pullback.generated as G
from pullback import functions
from pullback.backend.sparse_array import SparseArray
from pullback.creation import as_tensor
from pullback.facts import declare, names_with
from pullback.graph.sparse_nodes import is_made_of_dense, record_dense, record_values, recorded_values, shown_as
from pullback.graph.tangents import forward_not_implemented, tangents_flow
from pullback.modes.switches import process, switches
from pullback.tensor.arguments import refuse_unknown
from pullback.tensor.assignment import describe_type
from pullback.tensor.dims import wrap_dim
from pullback.tensor.sparse_tensor import (
    CompressedTensor,
    SparseCscTensor,
    SparseCsrTensor,
    SparseTensor,
    new_sparse_tensor,
)
from pullback.tensor.tensor import Tensor, new_tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])
SPARSE_ENOUGH = 8
"""A product is done value by value where so many times the values still are fewer than the elements."""


def _records() -> bool:
    return not process.changed or switches.grad_mode


def values_of(sparse: SparseTensor) -> Tensor:
    """The values with their history."""
    return recorded_values(sparse, _records())


def sparse_of(
    indices: Any, values: Tensor, shape: tuple[int, ...], coalesced: bool = False, kind: Any = SparseTensor
) -> Any:
    """A sparse tensor of values at indices, an array; gradients reach the values."""
    sparse = new_sparse_tensor(SparseArray(indices, values._array, shape, coalesced), kind)
    if values._requires_grad and _records():
        record_values(sparse, values)
    return sparse


def with_values(sparse: SparseTensor, values: Tensor) -> Any:
    """Other values at the same indices."""
    array = sparse._sparse
    result = sparse_of(array.indices, values, array.shape, array.coalesced, type(sparse))
    return result if values._edge is None else shown_as(result, values._edge[0].name())


_methods: dict[str, Any] = {}


def _method(names: str) -> Callable[[_Function], _Function]:
    """Decorate a function that SparseTensor has as a method, under these names."""

    def register(function: _Function) -> _Function:
        _methods.update(dict.fromkeys(names.split(), function))
        return function

    return register


@_method("values")
def sparse_values(input: SparseTensor) -> Tensor:
    """The values at the indices."""
    input._require_coalesced("values")
    return values_of(input)


@_method("coalesce")
def sparse_coalesce(input: SparseTensor) -> SparseTensor:
    """The same numbers with every index once."""
    array = input._sparse
    if array.coalesced:
        return input
    if not input._requires_grad or not _records():
        return new_sparse_tensor(array.coalesce())
    indices, inverse = array.merged_indices()
    given = values_of(input)
    sums = given.new_zeros((indices.shape[1], *array.values.shape[1:])).index_add(0, new_tensor(inverse), given)
    return shown_as(sparse_of(indices, sums, array.shape, True), "CoalesceBackward0")


@_method("to_dense")
def sparse_to_dense(input: SparseTensor, dtype: Any = None, **options: Any) -> Tensor:
    """The same numbers in a dense tensor."""
    refuse_unknown("to_dense", options, ("masked_grad",))
    array = input._sparse
    if not input._requires_grad or not _records():
        dense = new_tensor(array.dense())
    else:
        given = values_of(input)
        places = tuple(new_tensor(row) for row in array.indices)
        dense = given.new_zeros(array.shape).index_put(places, given, accumulate=True)
        dense = shown_as(dense, "ToDenseBackward0")
    return dense if dtype is None else dense.to(dtype)


@declare(found="method")
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Any = None, **options: Any) -> SparseTensor:
    """The tensor's values that are not zero, with their indices in the leading `sparse_dim` dimensions.

    >>> import pullback
    >>> pullback.tensor([0.0, 3.0]).to_sparse().indices()
    tensor([[1]])
    """
    refuse_unknown("to_sparse", options, ("blocksize", "dense_dim"))
    if layout is not None and layout.name in _COMPRESSED:
        return _compress(input, _COMPRESSED[layout.name])
    if isinstance(input, SparseTensor):
        return to_sparse_coo(input) if isinstance(input, CompressedTensor) else input
    if process.changed and tangents_flow(input):
        raise forward_not_implemented("_to_sparse")
    filled = input._array != 0
    leading = filled.ndim if sparse_dim is None else sparse_dim
    if leading < filled.ndim:
        filled = filled.any(axis=tuple(range(leading, filled.ndim)))
    indices = new_tensor(filled).nonzero().t().contiguous()
    sparse = sparse_of(indices._array, input[tuple(indices)], input._array.shape, True)
    if sparse._requires_grad:
        record_dense(sparse, input)
    return sparse if sparse_dim is None else shown_as(sparse, "ToSparseBackward0")


_COMPRESSED: dict[str, type[CompressedTensor]] = {"sparse_csr": SparseCsrTensor, "sparse_csc": SparseCscTensor}


@declare(found="method")
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> SparseCsrTensor:
    """A matrix as rows of columns and values."""
    return _compress(input, SparseCsrTensor)


@declare(found="method")
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> SparseCscTensor:
    """A matrix as columns of rows and values.

    >>> import pullback
    >>> pullback.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse_csc().values()
    tensor([2., 1., 3.])
    """
    return _compress(input, SparseCscTensor)


def _compress(input: Tensor, kind: type[CompressedTensor]) -> Any:
    """A matrix whose values lie row by row or column by column."""
    if isinstance(input, kind):
        return input
    sparse = sparse_coalesce(to_sparse(input))
    array, values = sparse._sparse, values_of(sparse)
    if array.ndim != 2:
        raise RuntimeError(f"to_{kind._layout_name}: a matrix was expected, got {array.ndim} dimensions")
    indices = array.indices
    if kind.major == 1:
        order = array.order_by_column()
        indices, values = indices[:, order], values[new_tensor(order)]
    matrix = sparse_of(indices, values, array.shape, True, kind)
    if is_made_of_dense(sparse) and _records():
        record_dense(matrix, input)
    return shown_as(matrix, "ToSparseCsrBackward0" if kind.major == 0 else "ToSparseCscBackward0")


@declare(found="method")
def to_sparse_coo(input: Tensor) -> SparseTensor:
    """The tensor in coordinate format."""
    if not isinstance(input, CompressedTensor):
        return to_sparse(input)
    in_order = input.major == 0
    sparse = sparse_of(input._sparse.indices, values_of(input), input._sparse.shape, in_order)
    return shown_as(sparse, "ToSparseBackward1")


@declare(found="torch")
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseCsrTensor:
    """A matrix of `values` in the columns `col_indices`; row i has those from crow_indices[i] to crow_indices[i + 1].

    >>> import pullback
    >>> pullback.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 1.],
            [2., 3.]])
    """
    return _compressed_of(SparseCsrTensor, crow_indices, col_indices, values, size, options)


@declare(found="torch")
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseCscTensor:
    """A matrix of `values` in the rows `row_indices`; column i has those from ccol_indices[i] to ccol_indices[i + 1].

    >>> import pullback
    >>> pullback.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 2.],
            [1., 3.]])
    """
    return _compressed_of(SparseCscTensor, ccol_indices, row_indices, values, size, options)


@declare(found="torch")
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, layout: Any = None, **options: Any
) -> Any:
    """As `sparse_csr_tensor` or `sparse_csc_tensor`, by the layout."""
    kind = _COMPRESSED.get(getattr(layout, "name", ""))
    if kind is None:
        raise RuntimeError(f"expected sparse compressed tensor layout but got {layout}: sparse_csr or sparse_csc")
    return _compressed_of(kind, compressed_indices, plain_indices, values, size, options)


WORDS_OF_SPARSE_TENSORS = frozenset(("dtype", "layout", "device", "pin_memory", "requires_grad", "check_invariants"))


def _compressed_of(
    kind: type[CompressedTensor], starts: Any, places: Any, values: Any, size: Any, options: dict[str, Any]
) -> Any:
    refuse_unknown(f"sparse_{kind._layout_name[7:]}_tensor", options, WORDS_OF_SPARSE_TENSORS)
    starts, places = as_tensor(starts), as_tensor(places)
    given = as_tensor(values, dtype=options.get("dtype"))
    majors = functions.repeat_interleave(starts[1:] - starts[:-1])
    both = [majors, places.to(majors.dtype)]
    sizes = [starts.numel() - 1, int(places.max()) + 1 if places.numel() else 0]
    if kind.major == 1:
        both, sizes = both[::-1], sizes[::-1]
    shape = tuple(sizes) if size is None else tuple(size)
    matrix = sparse_of(functions.stack(both)._array, given, shape, True, kind)
    return matrix.detach().requires_grad_() if options.get("requires_grad") else matrix


@declare(found="method")
def sparse_mask(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the indices of a sparse one."""
    masked = with_values(mask, input[tuple(new_tensor(row) for row in mask._sparse.indices)])
    return shown_as(masked, "SparseMaskBackward0")


@_method("mm mv matmul __matmul__")
def sparse_product(input: Any, other: Any) -> Tensor:
    """`input @ other`; a sparse matrix times a dense one or a vector value by value, anything else as dense tensors."""
    if isinstance(other, SparseTensor):
        if isinstance(input, SparseTensor):
            return shown_as(to_sparse(sparse_to_dense(input) @ sparse_to_dense(other)), "SparseSparseMatmulBackward0")
        if not _is_worthwhile(other):
            return functions.matmul(input, other)
        return sparse_product(sparse_t(other), input.t()).t()
    array = input._sparse
    if (
        not _is_worthwhile(input)
        or other.ndim > 2
        or other.shape[:1] != array.shape[1:]
        or other.dtype is not input.dtype
    ):
        return functions.matmul(input, other)
    given = values_of(input)
    terms = G.index_select(other, 0, new_tensor(array.indices[1])) * (given if other.ndim == 1 else given.unsqueeze(1))
    product = other.new_zeros((array.shape[0], *other.shape[1:])).index_add(0, new_tensor(array.indices[0]), terms)
    return shown_as(product, "MvBackward0" if other.ndim == 1 else "MmBackward0")


def _is_worthwhile(input: SparseTensor) -> bool:
    """Whether a matrix is so sparse that products are faster value by value, and no other gradients are wanted."""
    array = input._sparse
    if array.ndim != 2 or array.sparse_dim != 2 or is_made_of_dense(input):
        return False
    is_leaf = input._requires_grad and input._edge is None  # its gradient is sparse
    return is_leaf or bool(array.values.shape[0] * SPARSE_ENOUGH <= array.shape[0] * array.shape[1])


@_method("__rmatmul__")
def _reflected_product(input: SparseTensor, other: Any) -> Tensor:
    """`other @ input`."""
    return sparse_product(other, input)


@_method("index_select")
def sparse_index_select(input: SparseTensor, dim: int, index: Tensor) -> Any:
    """The slices along a dimension that `index` names, in its order."""
    array = input._sparse
    along = wrap_dim(dim, array.ndim)
    if isinstance(input, CompressedTensor) or along >= array.sparse_dim:
        return to_sparse(sparse_to_dense(input).index_select(along, index), array.sparse_dim)
    wanted, size = index._array, array.shape[along]
    if wanted.size and not (wanted.min() >= -size and wanted.max() < size):
        raise IndexError(
            f"index_select(): index contains a number that is out of range for dimension {dim} of size {size}"
        )
    merged = sparse_coalesce(input)
    indices = merged._sparse.indices
    matches = (wanted.reshape(-1, 1) % max(size, 1)) == indices[along]
    places, values = matches.nonzero()
    chosen = indices[:, values]
    chosen[along] = places
    shape = (*array.shape[:along], wanted.size, *array.shape[along + 1 :])
    result = sparse_of(chosen, values_of(merged)[new_tensor(values)], shape, along == 0)
    return shown_as(result, "IndexSelectBackward0")


@_method("select")
def sparse_select(input: SparseTensor, dim: int, index: int) -> Any:
    """One slice along a dimension: sparse where other sparse dimensions are left."""
    array = input._sparse
    along = wrap_dim(dim, array.ndim)
    if isinstance(input, CompressedTensor) or along >= array.sparse_dim or array.sparse_dim == 1:
        return sparse_to_dense(input).select(along, index)
    size = array.shape[along]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    merged = sparse_coalesce(input)
    indices = merged._sparse.indices
    places = (indices[along] == index % size).nonzero()[0]
    others = [d for d in range(array.sparse_dim) if d != along]
    shape = (*array.shape[:along], *array.shape[along + 1 :])
    result = sparse_of(indices[others][:, places], values_of(merged)[new_tensor(places)], shape, True)
    return shown_as(result, "SelectBackward0")


@_method("__getitem__")
def _sparse_item(input: SparseTensor, index: Any) -> Any:
    chosen: Any = input
    for number in index if isinstance(index, tuple) else (index,):
        if type(number) is not int or chosen.ndim == 0:
            return Tensor.__getitem__(sparse_to_dense(input), index)
        chosen = sparse_select(chosen, 0, number) if isinstance(chosen, SparseTensor) else chosen[number]
    return chosen


@_method("transpose")
def sparse_transpose(input: SparseTensor, dim0: int, dim1: int) -> Any:
    """The tensor with two dimensions exchanged; a matrix of rows becomes one of columns."""
    array = input._sparse
    first, second = wrap_dim(dim0, array.ndim), wrap_dim(dim1, array.ndim)
    if max(first, second) >= array.sparse_dim:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {array.sparse_dim}, d0: {first}, "
            f"d1: {second}"
        )
    order = list(range(array.ndim))
    order[first], order[second] = second, first
    return shown_as(sparse_permute(input, order), "TransposeBackward0")


@_method("permute")
def sparse_permute(input: SparseTensor, *dims: Any) -> Any:
    """The tensor with its dimensions in another order; those that indices name stay before the others."""
    array = input._sparse
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [wrap_dim(dim, array.ndim) for dim in given]
    leading, trailing = order[: array.sparse_dim], order[array.sparse_dim :]
    if sorted(order) != list(range(array.ndim)) or any(dim < array.sparse_dim for dim in trailing):
        raise RuntimeError(f"permute(sparse): the dimensions {tuple(given)} mix sparse and dense ones, or repeat one")
    kind: Any = SparseTensor
    if isinstance(input, CompressedTensor) and order == [1, 0]:
        kind = SparseCscTensor if input.major == 0 else SparseCsrTensor
    values = values_of(input).permute(0, *(dim - array.sparse_dim + 1 for dim in trailing))
    shape = tuple(array.shape[dim] for dim in order)
    result = sparse_of(array.indices[leading], values, shape, kind is not SparseTensor, kind)
    return shown_as(result, "PermuteBackward0")


@_method("t")
def sparse_t(input: SparseTensor) -> Any:
    """The transposed matrix; what has fewer dimensions stays as it is."""
    array = input._sparse
    if array.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {array.sparse_dim} sparse and "
            f"{array.ndim - array.sparse_dim} dense dimensions"
        )
    return shown_as(sparse_transpose(input, 0, 1), "TBackward0") if array.ndim == 2 else input


def sparse_mT(input: SparseTensor) -> Any:
    """The matrices of the last two dimensions, transposed."""
    return sparse_transpose(input, -2, -1)


@_method("adjoint")
def sparse_mH(input: SparseTensor) -> Any:
    """The matrices of the last two dimensions, transposed and conjugated."""
    transposed = sparse_mT(input)
    return with_values(transposed, values_of(transposed).conj()) if input.is_complex() else transposed


def _sparse_T(input: SparseTensor) -> Any:
    return sparse_permute(input, list(range(input._sparse.ndim))[::-1])


@_method("sum")
def sparse_sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over all elements or over dimensions; sparse where dimensions are left that indices name."""
    array = input._sparse
    given = values_of(input) if dtype is None else values_of(input).to(dtype)
    if dim is None:
        return given.sum()
    dims = {wrap_dim(d, array.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    kept = [d for d in range(array.sparse_dim) if d not in dims]
    if keepdim or not kept or max(dims) >= array.sparse_dim:
        return sparse_to_dense(input).sum(dim, keepdim, dtype=dtype)
    shape = tuple(size for d, size in enumerate(array.shape) if d not in dims)
    return shown_as(sparse_coalesce(sparse_of(array.indices[kept], given, shape)), "SumBackward1")


@_method("softmax")
def sparse_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the values along a dimension; what is not stored counts as minus infinity."""
    return shown_as(_normalized(input, dim, dtype, logarithmic=False), "SparseSoftmaxBackward0")


@_method("log_softmax")
def sparse_log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of the softmax of the values along a dimension."""
    return shown_as(_normalized(input, dim, dtype, logarithmic=True), "SparseLogSoftmaxBackward0")


def _normalized(input: SparseTensor, dim: int, dtype: Any, *, logarithmic: bool) -> SparseTensor:
    input = sparse_coalesce(input)
    array, given = input._sparse, values_of(input)
    if dtype is not None:
        given = given.to(dtype)
    along = wrap_dim(dim, array.ndim)
    if along >= array.sparse_dim:
        place = along - array.sparse_dim + 1
        return with_values(input, given.log_softmax(place) if logarithmic else given.softmax(place))
    others = [d for d in range(array.sparse_dim) if d != along]
    groups = SparseArray(array.indices[others], array.values, tuple(array.shape[d] for d in others))
    indices, inverse = groups.merged_indices()
    group, shape = new_tensor(inverse), (indices.shape[1], *array.values.shape[1:])
    largest = given.detach().new_zeros(shape).index_reduce(0, group, given.detach(), "amax", include_self=False)
    shifted = given - largest[group]
    sums = given.new_zeros(shape).index_add(0, group, shifted.exp())
    return with_values(input, shifted - sums.log()[group] if logarithmic else shifted.exp() / sums[group])


def _of_values(name: str) -> Any:
    """A method that works on the values alone: one that keeps zero, and is linear where indices may repeat."""

    def on_values(input: SparseTensor, *args: Any, **options: Any) -> Any:
        result = getattr(values_of(input), name)(*args, **options)
        return with_values(input, result) if isinstance(result, Tensor) else describe_type(input)

    on_values.__name__ = name
    return on_values


def _scaled(name: str) -> Any:
    """Multiplication or division of the values: by a number, or by what a tensor of the same shape has in their places."""

    def scaled(input: SparseTensor, other: Any) -> Any:
        if isinstance(other, Tensor) and other.ndim:
            if isinstance(other, SparseTensor):
                product = getattr(sparse_to_dense(input), name)(sparse_to_dense(other))
                sparse = to_sparse(product)
                return sparse if product._edge is None else shown_as(sparse, product._edge[0].name())
            if other.shape != input._sparse.shape:
                return getattr(sparse_to_dense(input), name)(other)
            merged = sparse_coalesce(input)
            there = other[tuple(new_tensor(row) for row in merged._sparse.indices)]
            return with_values(merged, getattr(values_of(merged), name)(there))
        return with_values(input, getattr(values_of(input), name)(other))

    scaled.__name__ = name
    return scaled


def _elementwise(name: str) -> Any:
    """A method that works on the values, each index once, where it leaves zeros zero; else as on a dense tensor."""
    of_dense = getattr(Tensor, name)

    def on_values(input: SparseTensor, *args: Any, **options: Any) -> Any:
        if any(isinstance(value, Tensor) for value in (*args, *options.values())):
            return of_dense(input, *args, **options)
        of_zero = of_dense(input._values().new_zeros(()), *args, **options)
        if not isinstance(of_zero, Tensor) or of_zero._array:
            return of_dense(input, *args, **options)
        merged = sparse_coalesce(input)
        return with_values(merged, of_dense(values_of(merged), *args, **options))

    on_values.__name__ = name
    return on_values


def joined(input: SparseTensor, other: SparseTensor) -> Any:
    """The sum of two tensors as the values of both; None where they do not fit each other."""
    a, b = input._sparse, other._sparse
    if not _fit(a, b):
        return None
    indices = G.cat([new_tensor(a.indices), new_tensor(b.indices)], 1)._array
    return sparse_of(indices, G.cat([values_of(input), values_of(other)], 0), a.shape)


def _fit(a: SparseArray, b: SparseArray) -> bool:
    return a.sparse_dim == b.sparse_dim and a.shape == b.shape and a.dtype == b.dtype


def _sum(input: SparseTensor, other: SparseTensor) -> Any:
    """The sum; where indices are in order, those that both have meet in it."""
    a, b = input._sparse, other._sparse
    merged = a.indices_of_sum(b)
    if merged is None:
        return joined(input, other)
    indices, inverse = merged
    values = G.cat([values_of(input), values_of(other)], 0)
    sums = values.new_zeros((indices.shape[1], *a.values.shape[1:])).index_add(0, new_tensor(inverse), values)
    return sparse_of(indices, sums, a.shape, a.coalesced and b.coalesced)


@_method("__add__ __radd__ add")
def _add(input: SparseTensor, other: Any, *, alpha: Any = 1) -> Any:
    if alpha != 1:
        other = other * alpha
    if isinstance(other, SparseTensor) and _fit(input._sparse, other._sparse):
        return shown_as(_sum(input, other), "AddBackward0")
    return sparse_to_dense(input) + other


@_method("__sub__ sub subtract")
def _subtract(input: SparseTensor, other: Any, *, alpha: Any = 1) -> Any:
    return shown_as(_add(input, -other, alpha=alpha), "SubBackward0")


_OPERATORS = {"__abs__": "abs", "__pow__": "pow"}


def attach_sparse_methods() -> None:
    """Let the methods of sparse tensors be the functions here."""
    for name, structure in names_with("structure").items():
        if structure == "elementwise" and callable(getattr(Tensor, name, None)):  # `real` is a property
            setattr(SparseTensor, name, _elementwise(name))
    for operator, name in _OPERATORS.items():
        setattr(SparseTensor, operator, getattr(SparseTensor, name))
    for name, method in _methods.items():
        setattr(SparseTensor, name, method)
    for name, reader in {"T": _sparse_T, "mT": sparse_mT, "H": sparse_mH, "mH": sparse_mH}.items():
        setattr(SparseTensor, name, property(reader))
    for name in ("neg", "__neg__", "clone", "detach", "to", "double", "float", "half", "bfloat16", "type"):
        setattr(SparseTensor, name, _of_values(name))
    for name in ("mul", "multiply", "__mul__", "__rmul__", "div", "divide", "__truediv__"):
        setattr(SparseTensor, name, _scaled(name))
