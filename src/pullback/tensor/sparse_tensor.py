"""SparseTensor: a tensor stored as indices and values, as the gradient of `embedding(sparse=True)` is.

Its own methods see the storage (those that compute are in functions/sparse_algebra.py); every other operation sees the
dense array, made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend import layout as layouts
from pullback.backend.dtype import get_default_dtype
from pullback.backend.sparse_array import SparseArray
from pullback.modes.switches import switches
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
        """Whether every index stands once."""
        return self._sparse.coalesced

    def _parts(self) -> list[tuple[str, Any]]:
        """The arrays it is stored as, by the names that are printed."""
        return [("indices", self._sparse.indices), ("values", self._sparse.values)]

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
        """Where each row's columns begin, and where the last one's end."""
        return self._compressed("crow_indices", 0)

    def col_indices(self) -> Tensor:
        """The columns of the values."""
        return self._plain("col_indices", 0)

    def ccol_indices(self) -> Tensor:
        """Where each column's rows begin, and where the last one's end."""
        return self._compressed("ccol_indices", 1)

    def row_indices(self) -> Tensor:
        """The rows of the values."""
        return self._plain("row_indices", 1)

    def _parts(self) -> list[tuple[str, Any]]:
        starts, places = ("crow_indices", "col_indices") if self.major == 0 else ("ccol_indices", "row_indices")
        array = self._sparse
        return [(starts, array.starts(self.major)), (places, array.indices[1 - self.major]), ("values", array.values)]


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
