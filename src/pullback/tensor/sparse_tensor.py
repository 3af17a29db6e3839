"""SparseTensor: a tensor stored as indices and values, as the gradient of `embedding(sparse=True)` is.

Its own methods see the storage (those that compute are in functions/sparse_algebra.py); every other operation sees the
dense array, made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from pullback.backend import layout as layouts
from pullback.backend.dtype import get_default_dtype
from pullback.backend.sparse_array import SparseArray, checked_sparse_array, indices_of_starts
from pullback.modes.switches import switches
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl, new_tensor
from pullback.tensor.tensor_base import TensorBase


class SparseTensor(Tensor):
    """A tensor in coordinate format."""

    __torch_function__ = _disabled_torch_function_impl
    _sparse: SparseArray
    _dense: Any = None
    _recorded: Any = None
    """The values with their history, where they have one. See Note [Gradients of sparse tensors]."""

    @property
    def _array(self) -> Any:
        if self._dense is None:
            self._dense = self._sparse.dense()
            self._dense.flags.writeable = False  # what is written there would be lost
        return self._dense

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is stored sparsely."""
        return True

    _layout_name = "sparse_coo"

    @property
    def layout(self) -> Any:
        """The layout: coordinates, rows or columns."""
        return getattr(layouts, self._layout_name)

    def _indices(self) -> Tensor:
        return new_tensor(self._sparse.indices)

    def _values(self) -> Tensor:
        return new_tensor(self._sparse.values)

    def indices(self) -> Tensor:
        """The indices, each once."""
        self._require_coalesced("indices")
        return self._indices()

    def _require_coalesced(self, name: str) -> None:
        if not self._sparse.coalesced:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    def _nnz(self) -> int:
        return int(self._sparse.values.shape[0])

    def sparse_dim(self) -> int:
        """How many leading dimensions the indices name."""
        return self._sparse.sparse_dim

    def dense_dim(self) -> int:
        """How many dimensions each value has."""
        return self._sparse.ndim - self._sparse.sparse_dim

    def is_coalesced(self) -> bool:
        """Whether no index stands twice."""
        return self._sparse.coalesced

    def _parts(self) -> list[tuple[str, Any]]:
        """The arrays that store it, by the names that are printed."""
        return [("indices", self._sparse.indices), ("values", self._sparse.values)]

    def _stored(self) -> tuple[Any, ...]:
        """What `sparse_from_stored` makes the tensor of again, as PyTorch's files have it."""
        return self._indices(), self._values(), Size(self._sparse.shape), self._sparse.coalesced

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) in memo:
            copied: SparseTensor = memo[id(self)]
            return copied
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        array = self._sparse
        made = new_sparse_tensor(
            SparseArray(array.indices.copy(), array.values.copy(), array.shape, array.coalesced), type(self)
        )
        memo[id(self)] = made
        made._requires_grad = self._requires_grad
        if self._grad is not None:
            made._grad = deepcopy(self._grad, memo)
        return made

    def __repr__(self, **options: Any) -> str:
        from pullback.tensor.formatting import format_sparse  # only who prints pays for it

        history = f"grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else None
        return format_sparse(
            self._parts(),
            facts=[f"size={tuple(self._sparse.shape)}", f"nnz={self._nnz()}"],
            layout_name=self.layout.name,
            dtype_name=self.dtype.name,
            default_dtype_name=get_default_dtype().name,
            history=history or ("requires_grad=True" if self.requires_grad else None),
        )


class CompressedTensor(SparseTensor):
    """A matrix whose values lie row by row (CSR) or column by column (CSC)."""

    major: int
    """The dimension along which indices are compressed to starts: 0 for rows, 1 for columns."""

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is stored in coordinate format."""
        return False

    def _compressed(self, asked: str, major: int) -> Tensor:
        self._refuse_other(asked, major)
        return new_tensor(self._sparse.starts(major))

    def _plain(self, asked: str, major: int) -> Tensor:
        self._refuse_other(asked, major)
        return new_tensor(self._sparse.indices[1 - major])

    def _refuse_other(self, asked: str, major: int) -> None:
        if major != self.major:
            wanted, got = ("row", "SparseCsc") if major == 0 else ("column", "SparseCsr")
            raise RuntimeError(f"{asked} expected sparse {wanted} compressed tensor layout but got {got}")

    def crow_indices(self) -> Tensor:
        """Where each row's columns begin, and where the last row's end."""
        return self._compressed("crow_indices", 0)

    def col_indices(self) -> Tensor:
        """The columns of the values."""
        return self._plain("col_indices", 0)

    def ccol_indices(self) -> Tensor:
        """Where each column's rows begin, and where the last column's end."""
        return self._compressed("ccol_indices", 1)

    def row_indices(self) -> Tensor:
        """The rows of the values."""
        return self._plain("row_indices", 1)

    def _parts(self) -> list[tuple[str, Any]]:
        starts, places = ("crow_indices", "col_indices") if self.major == 0 else ("ccol_indices", "row_indices")
        array = self._sparse
        return [(starts, array.starts(self.major)), (places, array.indices[1 - self.major]), ("values", array.values)]

    def _stored(self) -> tuple[Any, ...]:
        return *(new_tensor(part) for _, part in self._parts()), Size(self._sparse.shape)


class SparseCsrTensor(CompressedTensor):
    """A matrix as rows of columns and values; its indices are in order."""

    major, _layout_name = 0, "sparse_csr"
    is_sparse_csr = True


class SparseCscTensor(CompressedTensor):
    """A matrix as columns of rows and values; its indices are in the order of columns."""

    major, _layout_name = 1, "sparse_csc"


class SparseMethods:
    """What the layers above lend: the methods that compute, which SparseTensor gets when the first one is made."""

    attach: Callable[[], None] | None = None


def new_sparse_tensor(array: SparseArray, kind: Any = SparseTensor) -> SparseTensor:
    """A SparseTensor around `array`, without history."""
    if SparseMethods.attach is not None:
        attach, SparseMethods.attach = SparseMethods.attach, None
        attach()
    tensor: SparseTensor = TensorBase.__new__(kind)
    tensor._sparse = array
    tensor._made_in = switches.transform
    return tensor


_KINDS: dict[str, Any] = {
    "sparse_coo": SparseTensor,
    "sparse_csr": SparseCsrTensor,
    "sparse_csc": SparseCscTensor,
}


def sparse_from_stored(layout_name: str, stored: Any) -> SparseTensor:
    """Make the tensor that `_stored` described. A description of no tensor, as in a damaged file, raises a ValueError."""
    kind = _KINDS.get(layout_name)
    if kind is None or not isinstance(stored, tuple):
        raise ValueError(f"no sparse tensor is stored as a {type(stored).__name__} in the layout {layout_name!r}")
    parts = stored[:2] if kind is SparseTensor else stored[:3]
    if len(stored) not in ((3, 4) if kind is SparseTensor else (4,)) or not all(
        isinstance(part, Tensor) and not isinstance(part, SparseTensor) for part in parts
    ):
        raise ValueError("a sparse tensor consists of tensors of indices and of values, and a size")
    shape = tuple(stored[len(parts)])
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"a sparse tensor cannot have the size {list(shape)}")
    arrays = [part._array for part in parts]
    if kind is SparseTensor:
        is_coalesced = len(stored) == 4 and bool(stored[3])
        return new_sparse_tensor(checked_sparse_array(arrays[0], arrays[1], shape, is_coalesced), kind)
    starts, places, values = arrays
    indices = indices_of_starts(starts, places, shape, kind.major)
    return new_sparse_tensor(checked_sparse_array(indices, values, shape, True), kind)
