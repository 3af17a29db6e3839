"""Gradients of sparse tensors: to their values, to sparse leaves, to dense tensors made sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import gradcheck, gradgradcheck

INDICES = pullback.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 1, 1]])
SIZE = (3, 3)


def numbers(*shape: int, seed: int = 0) -> Any:
    pullback.manual_seed(seed)
    return pullback.randn(*shape, dtype=pullback.float64, requires_grad=True)


def matrix(values: Any, size: tuple[int, int] = SIZE) -> Any:
    return pullback.sparse_coo_tensor(INDICES, values, size)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda values, _: matrix(values).to_dense(),
    "coalesce": lambda values, _: matrix(values).coalesce().values(),
    "product": lambda values, dense: pullback.sparse.mm(matrix(values), dense),
    "operator": lambda values, dense: matrix(values) @ dense,
    "function": lambda values, dense: pullback.mm(matrix(values), dense),
    "vector": lambda values, dense: matrix(values) @ dense[:, 0],
    "transposed": lambda values, dense: matrix(values).t() @ dense,
    "from_the_right": lambda values, dense: dense.t() @ matrix(values),
    "very_sparse": lambda values, dense: pullback.spmm(matrix(values, (30, 3)), dense),
    "very_sparse_from_the_right": lambda values, dense: dense.t() @ matrix(values, (3, 30)),
    "very_sparse_vector": lambda values, dense: matrix(values, (30, 3)) @ dense[:, 0],
    "two_sparse": lambda values, _: pullback.sparse.mm(matrix(values), matrix(values * 2)).to_dense(),
    "sum": lambda values, _: matrix(values).sum(),
    "sum_of_rows": lambda values, _: pullback.sparse.sum(matrix(values), 1).to_dense(),
    "added_product": lambda values, dense: pullback.sparse.addmm(dense, matrix(values), dense, beta=2.0, alpha=0.5),
    "scaled": lambda values, _: (-(matrix(values) * 3.0) / 2.0).to_dense(),
    "added": lambda values, _: (matrix(values) + matrix(values)).to_dense(),
    "softmax": lambda values, _: pullback.sparse.softmax(matrix(values), 1).to_dense(),
    "log_softmax": lambda values, _: pullback.sparse.log_softmax(matrix(values), 0).to_dense(),
    "seen_as_dense": lambda values, _: pullback.tanh(matrix(values)),
    "rows": lambda values, dense: pullback.sparse_csr_tensor([0, 2, 3, 5], [0, 1, 2, 0, 1], values, SIZE) @ dense,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_values_and_dense_operands(name: str) -> None:
    values, dense = numbers(5), numbers(3, 4, seed=1)
    assert gradcheck(FUNCTIONS[name], (values, dense))


@pytest.mark.parametrize("name", ["to_dense", "very_sparse", "softmax", "seen_as_dense"])
def test_second_gradients(name: str) -> None:
    assert gradgradcheck(FUNCTIONS[name], (numbers(5), numbers(3, 4, seed=1)))


def test_products_agree_with_dense_ones() -> None:
    values, dense = numbers(5), numbers(3, 4, seed=1)
    for size in ((3, 3), (30, 3)):
        sparse = matrix(values, size)
        pullback.testing.assert_close(sparse @ dense, sparse.to_dense() @ dense)


def test_the_gradient_of_a_sparse_leaf_is_sparse() -> None:
    leaf = matrix(pullback.arange(5.0)).coalesce().requires_grad_()
    dense = pullback.ones(3, 2)
    (leaf @ dense).sum().backward()
    assert leaf.grad.is_sparse
    assert leaf.grad.to_dense().tolist() == [[0, 2, 0], [2, 0, 2], [0, 2, 0]]


def test_a_tensor_made_sparse_has_all_gradients_of_a_product() -> None:
    dense = pullback.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    (dense.to_sparse() @ pullback.ones(2, 1)).sum().backward()
    assert dense.grad is not None
    assert dense.grad.tolist() == [[1, 1], [1, 1]]
    dense.grad = None
    dense.to_sparse().to_dense().sum().backward()
    assert dense.grad is not None
    assert dense.grad.tolist() == [[0, 1], [1, 0]]


def test_history_is_shown_and_cut() -> None:
    sparse = matrix(numbers(5))
    assert (sparse.requires_grad, sparse.is_leaf) == (True, False)
    assert "grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>" in repr(sparse)
    assert not sparse.detach().requires_grad
    assert sparse.detach().is_sparse
    with pullback.no_grad():
        assert not matrix(numbers(5)).requires_grad


def test_rows_of_columns_and_values() -> None:
    rows = pullback.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse_csr()
    assert (rows.is_sparse, rows.is_sparse_csr, rows.layout) == (False, True, pullback.sparse_csr)
    assert (rows.crow_indices().tolist(), rows.col_indices().tolist(), rows.values().tolist()) == (
        [0, 1, 3],
        [1, 0, 1],
        [1, 2, 3],
    )
    assert rows.to_sparse().is_sparse
    assert repr(rows).startswith("tensor(crow_indices=tensor([0, 1, 3]),\n       col_indices=tensor([1, 0, 1]),")
    assert pullback.ones(2, 2).sparse_mask(rows.to_sparse()).to_dense().tolist() == [[0, 1], [1, 1]]


def test_an_adjacency_matrix_without_edges() -> None:
    empty = pullback.sparse_coo_tensor(pullback.zeros(2, 0, dtype=pullback.int64), pullback.zeros(0), (3, 3))
    assert (empty.coalesce() @ pullback.ones(3, 2)).tolist() == [[0, 0]] * 3
