"""SparseTensor: a tensor stored as indices and values, as the gradient of `embedding(sparse=True)` is.

Its own methods see the storage (those that compute are in functions/sparse_algebra.py); every other operation sees the
dense array, made when it is first asked for.
"""

from __future__ import annotations

from typing import Any

from pullback.backend.naming import display_namespace
from pullback.backend.sparse_array import SparseArray
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
        return self._dense

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is stored sparsely."""
        return True

    @property
    def layout(self) -> Any:
        """The coordinate layout."""
        from pullback.environment import sparse_coo  # lazy: the constants are above

        return sparse_coo

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

    def __repr__(self, **options: Any) -> str:
        indent = " " * 7
        parts = [
            "indices=" + _indented(repr(self._indices()), 15),
            indent + "values=" + _indented(repr(self._values()), 14),
            f"{indent}size={tuple(self._sparse.shape)}, nnz={self._nnz()}, layout={display_namespace()}.sparse_coo",
        ]
        return "tensor(" + ",\n".join(parts) + self._history("\n" + indent) + ")"

    def _history(self, gap: str) -> str:
        if self.grad_fn is not None:
            return f",{gap or ' '}grad_fn=<{self.grad_fn.name()}>"
        return f",{gap or ' '}requires_grad=True" if self.requires_grad else ""


class SparseCsrTensor(SparseTensor):
    """A matrix as rows of columns and values; its indices are in order."""

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is stored in coordinate format."""
        return False

    is_sparse_csr = True

    @property
    def layout(self) -> Any:
        """The layout of rows."""
        from pullback.environment import sparse_csr  # lazy: the constants are above

        return sparse_csr

    def crow_indices(self) -> Tensor:
        """Where each row's columns begin, and where the last one's end."""
        return new_tensor(self._sparse.row_starts())

    def col_indices(self) -> Tensor:
        """The columns of the values."""
        return new_tensor(self._sparse.indices[1])

    def __repr__(self, **options: Any) -> str:
        indent = " " * 7
        parts = [
            "crow_indices=" + _indented(repr(self.crow_indices()), 20),
            indent + "col_indices=" + _indented(repr(self.col_indices()), 19),
            indent + "values=" + _indented(repr(self._values()), 14),
            f"size={tuple(self._sparse.shape)}, nnz={self._nnz()}, layout={display_namespace()}.sparse_csr",
        ]
        return "tensor(" + ",\n".join(parts[:3]) + ", " + parts[3] + self._history("") + ")"


def _indented(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def new_sparse_tensor(array: SparseArray, kind: Any = SparseTensor) -> SparseTensor:
    """A SparseTensor around `array`, without history."""
    tensor: SparseTensor = TensorBase.__new__(kind)
    tensor._sparse = array
    return tensor
