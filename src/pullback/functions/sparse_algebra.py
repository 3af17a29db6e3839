"""What sparse tensors do without becoming dense: products with dense matrices, sums, softmaxes, transposition.

All is written with recorded operations on the values. See Note [Gradients of sparse tensors].
"""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.backend.sparse_array import SparseArray
from pullback.creation import as_tensor
from pullback.graph.sparse_nodes import is_made_of_dense, record_dense, record_values, recorded_values
from pullback.modes.switches import process, switches
from pullback.tensor.sparse_tensor import SparseCsrTensor, SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor, wrap_dim

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
    return sparse_of(array.indices, values, array.shape, array.coalesced, type(sparse))


def sparse_values(input: SparseTensor) -> Tensor:
    """The values at the indices."""
    input._require_coalesced("values")
    return values_of(input)


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
    return sparse_of(indices, sums, array.shape, True)


def sparse_to_dense(input: SparseTensor, dtype: Any = None, **options: Any) -> Tensor:
    """The same numbers in a dense tensor."""
    array = input._sparse
    if not input._requires_grad or not _records():
        dense = new_tensor(array.dense())
    else:
        given = values_of(input)
        places = tuple(new_tensor(row) for row in array.indices)
        dense = given.new_zeros(array.shape).index_put(places, given, accumulate=True)
    return dense if dtype is None else dense.to(dtype)


def to_sparse(input: Tensor, sparse_dim: int | None = None, **options: Any) -> SparseTensor:
    """The tensor's values that are not zero, with their indices in the leading `sparse_dim` dimensions.

    >>> import pullback
    >>> pullback.tensor([0.0, 3.0]).to_sparse().indices()
    tensor([[1]])
    """
    if isinstance(input, SparseTensor):
        return to_sparse_coo(input) if isinstance(input, SparseCsrTensor) else input
    filled = input._array != 0
    leading = filled.ndim if sparse_dim is None else sparse_dim
    if leading < filled.ndim:
        filled = filled.any(axis=tuple(range(leading, filled.ndim)))
    indices = new_tensor(filled).nonzero().t().contiguous()
    sparse = sparse_of(indices._array, input[tuple(indices)], input._array.shape, True)
    if sparse._requires_grad:
        record_dense(sparse, input)
    return sparse


def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> SparseCsrTensor:
    """A matrix as rows of columns and values."""
    sparse = sparse_coalesce(to_sparse(input))
    if sparse._sparse.ndim != 2:
        raise RuntimeError(f"to_sparse_csr: a matrix was expected, got {sparse._sparse.ndim} dimensions")
    rows = sparse_of(sparse._sparse.indices, values_of(sparse), sparse._sparse.shape, True, SparseCsrTensor)
    if is_made_of_dense(sparse) and _records():
        record_dense(rows, input)
    return rows


def to_sparse_coo(input: Tensor) -> SparseTensor:
    """The tensor in coordinate format."""
    if not isinstance(input, SparseCsrTensor):
        return to_sparse(input)
    return sparse_of(input._sparse.indices, values_of(input), input._sparse.shape, True)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseCsrTensor:
    """A matrix of `values` in the columns `col_indices`; row i has those from crow_indices[i] to crow_indices[i + 1].

    >>> import pullback
    >>> pullback.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 1.],
            [2., 3.]])
    """
    starts, columns = as_tensor(crow_indices), as_tensor(col_indices)
    given = as_tensor(values, dtype=options.get("dtype"))
    rows = functions.repeat_interleave(starts[1:] - starts[:-1])
    shape = (starts.numel() - 1, int(columns.max()) + 1 if columns.numel() else 0) if size is None else tuple(size)
    indices = functions.stack([rows, columns.to(rows.dtype)])._array
    matrix = sparse_of(indices, given, shape, True, SparseCsrTensor)
    return matrix.detach().requires_grad_() if options.get("requires_grad") else matrix


def sparse_mask(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the indices of a sparse one."""
    return with_values(mask, input[tuple(new_tensor(row) for row in mask._sparse.indices)])


def sparse_product(input: Any, other: Any) -> Tensor:
    """`input @ other`; a sparse matrix times a dense one or a vector value by value, anything else as dense tensors."""
    if isinstance(other, SparseTensor):
        if isinstance(input, SparseTensor):
            return to_sparse(sparse_to_dense(input) @ sparse_to_dense(other))
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
    return other.new_zeros((array.shape[0], *other.shape[1:])).index_add(0, new_tensor(array.indices[0]), terms)


def _is_worthwhile(input: SparseTensor) -> bool:
    """Whether a matrix is so sparse that products are faster value by value, and no other gradients are wanted."""
    array = input._sparse
    if array.ndim != 2 or array.sparse_dim != 2 or is_made_of_dense(input):
        return False
    is_leaf = input._requires_grad and input._edge is None  # its gradient is sparse
    return is_leaf or bool(array.values.shape[0] * SPARSE_ENOUGH <= array.shape[0] * array.shape[1])


def _reflected_product(input: SparseTensor, other: Any) -> Tensor:
    """`other @ input`."""
    return sparse_product(other, input)


def sparse_transpose(input: SparseTensor, dim0: int, dim1: int) -> Any:
    """The tensor with two dimensions exchanged."""
    array = input._sparse
    first, second = wrap_dim(dim0, array.ndim), wrap_dim(dim1, array.ndim)
    if max(first, second) >= array.sparse_dim:
        return sparse_to_dense(input).transpose(dim0, dim1)
    order = list(range(array.sparse_dim))
    order[first], order[second] = second, first
    shape = list(array.shape)
    shape[first], shape[second] = shape[second], shape[first]
    return sparse_of(array.indices[order], values_of(input), tuple(shape))


def sparse_t(input: SparseTensor) -> Any:
    """The transposed matrix."""
    return sparse_transpose(input, 0, 1) if input._sparse.ndim == 2 else input


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
    return sparse_coalesce(sparse_of(array.indices[kept], given, shape))


def sparse_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the values along a dimension; what is not stored counts as minus infinity."""
    return _normalized(input, dim, dtype, logarithmic=False)


def sparse_log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of the softmax of the values along a dimension."""
    return _normalized(input, dim, dtype, logarithmic=True)


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
        return with_values(input, getattr(values_of(input), name)(*args, **options))

    on_values.__name__ = name
    return on_values


def _scaled(name: str) -> Any:
    """Multiplication or division by a number; by a tensor as dense tensors."""

    def scaled(input: SparseTensor, other: Any) -> Any:
        if isinstance(other, Tensor) and other.ndim:
            return getattr(sparse_to_dense(input), name)(
                sparse_to_dense(other) if isinstance(other, SparseTensor) else other
            )
        return with_values(input, getattr(values_of(input), name)(other))

    scaled.__name__ = name
    return scaled


def _add(input: SparseTensor, other: Any) -> Any:
    if isinstance(other, SparseTensor) and other._sparse.sparse_dim == input._sparse.sparse_dim:
        a, b = input._sparse, other._sparse
        if a.shape == b.shape and a.dtype == b.dtype:
            indices = G.cat([new_tensor(a.indices), new_tensor(b.indices)], 1)._array
            return sparse_of(indices, G.cat([values_of(input), values_of(other)], 0), a.shape)
    return sparse_to_dense(input) + other


def attach_sparse_methods() -> None:
    """Let the methods of sparse tensors be the functions here."""
    methods = {
        "values": sparse_values, "coalesce": sparse_coalesce, "to_dense": sparse_to_dense, "sum": sparse_sum,
        "transpose": sparse_transpose, "t": sparse_t, "T": property(sparse_t), "mT": property(sparse_t),
        "softmax": sparse_softmax, "log_softmax": sparse_log_softmax, "mm": sparse_product, "mv": sparse_product,
        "matmul": sparse_product, "__matmul__": sparse_product, "__rmatmul__": _reflected_product, "__add__": _add,
        "add": _add,
    }  # fmt: skip
    for name, method in methods.items():
        setattr(SparseTensor, name, method)
    for name in ("neg", "__neg__", "clone", "detach", "to", "double", "float", "half", "bfloat16", "type"):
        setattr(SparseTensor, name, _of_values(name))
    for name in ("mul", "__mul__", "__rmul__", "div", "__truediv__"):
        setattr(SparseTensor, name, _scaled(name))
