"""Adjacency matrices in coordinate format."""

from __future__ import annotations

import pullback


def test_a_dense_tensor_becomes_sparse_and_dense_again() -> None:
    dense = pullback.tensor([[0.0, 1.0], [2.0, 0.0]])
    sparse = dense.to_sparse()
    assert (sparse.is_sparse, sparse.indices().tolist(), sparse.values().tolist()) == (
        True,
        [[0, 1], [1, 0]],
        [1.0, 2.0],
    )
    assert sparse.to_dense().tolist() == dense.tolist()
    rows = pullback.tensor([[0, 0], [3, 4]]).to_sparse(1)
    assert (rows.indices().tolist(), rows.values().tolist()) == ([[1]], [[3, 4]])


def test_products_with_a_sparse_matrix_have_gradients() -> None:
    adjacency = pullback.sparse.FloatTensor(pullback.tensor([[0, 1], [1, 0]]), pullback.tensor([1.0, 2.0]), (2, 2))
    assert isinstance(adjacency, pullback.sparse.FloatTensor)
    x = pullback.ones(2, 1, requires_grad=True)
    (pullback.spmm(adjacency, x) + pullback.sparse.mm(adjacency, x)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[4.0], [2.0]]


def test_sums_and_added_products() -> None:
    adjacency = pullback.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()
    assert pullback.sparse.sum(adjacency).item() == 3.0
    assert pullback.sparse.sum(adjacency, 0).to_dense().tolist() == [2.0, 1.0]
    assert pullback.sparse.addmm(pullback.ones(2, 1), adjacency, pullback.ones(2, 1)).tolist() == [[2.0], [3.0]]
