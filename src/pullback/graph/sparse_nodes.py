"""Nodes between a sparse tensor and its values.

# Note [Gradients of sparse tensors]
A sparse tensor made of values that require grad has two faces. Functions that know its format compute with the values,
whose history they record as that of any tensor. All others see the dense array, and their gradient, which is dense, ends
in the node here that reads it at the indices. The values of a sparse leaf, the other way round, hand on their gradient
with its indices: the leaf's gradient is sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.sparse_array import SparseArray
from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.node import Node, new_node, next_sequence_nr
from pullback.graph.renamed_node import RenamedNode, renamed
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor, new_tensor


class SparseCooTensorWithDimsAndTensorsBackward0(Node):
    """From the dense gradient of a sparse tensor to that of its values."""

    __slots__ = ("__dict__",)
    indices: Any

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        grad = grads[0].dense() if isinstance(grads[0], SparseArray) else grads[0]
        return (grad[tuple(self.indices)],)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return (grads[0][tuple(new_tensor(row) for row in self.indices)],)


class ToSparseBackward1(Node):
    """From the gradient of a tensor made sparse to that of the dense one: where a product's is dense, all of it."""

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (grads[0].dense() if isinstance(grads[0], SparseArray) else grads[0],)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        return grads


class ValuesBackward0(Node):
    """From the gradient of a sparse leaf's values to that of the leaf."""

    __slots__ = ("__dict__",)
    owner: SparseArray

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (SparseArray(self.owner.indices, grads[0], self.owner.shape, self.owner.coalesced),)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        places = tuple(new_tensor(row) for row in self.owner.indices)
        return (grads[0].new_zeros(self.owner.shape).index_put(places, grads[0], accumulate=True),)


def _record(tensor: Tensor, node: Node, source: Tensor, shape: Any) -> None:
    node.next_edges = (gradient_edge(source),)
    node.sequence_nr = next_sequence_nr()
    node.shape, node.dtype = shape, source.dtype.numpy_dtype
    tensor._requires_grad = True
    tensor._edge = (node, 0)


def record_values(sparse: SparseTensor, values: Tensor) -> None:
    """Make `values`, which require grad, the source of a new sparse tensor."""
    node = new_node(SparseCooTensorWithDimsAndTensorsBackward0)
    node.indices = sparse._sparse.indices
    _record(sparse, node, values, sparse._sparse.shape)
    sparse._recorded = values


def record_dense(sparse: SparseTensor, source: Tensor) -> None:
    """Send gradients of a sparse tensor to the dense one that it was made of, also where nothing is stored."""
    _record(sparse, new_node(ToSparseBackward1), source, sparse._sparse.shape)


def is_made_of_dense(sparse: SparseTensor) -> bool:
    """Whether the gradients of its elements are wanted, also of those that are not stored."""
    node = None if sparse._edge is None else sparse._edge[0]
    return isinstance(node.inner if isinstance(node, RenamedNode) else node, ToSparseBackward1)


def shown_as(result: Tensor, name: str) -> Any:
    """Give the result of a function on sparse tensors a node of PyTorch's name: it consists of other operations here."""
    edge = result._edge
    if edge is not None and edge[0].name() != name:
        result._edge = (renamed(edge[0], name), edge[1])
    return result


def recorded_values(sparse: SparseTensor, records: bool) -> Tensor:
    """The values of a sparse tensor with their history: those it was made of, or those of a leaf."""
    if not records or not sparse._requires_grad:
        return new_tensor(sparse._sparse.values)
    if sparse._recorded is None:
        values = new_tensor(sparse._sparse.values)
        node = new_node(ValuesBackward0)
        node.owner = sparse._sparse
        _record(values, node, sparse, values._array.shape)
        return values
    return sparse._recorded
