"""Adjacency matrices in coordinate format."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_slices_of_a_sparse_tensor_are_sparse() -> None:
    matrix = pullback.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse().requires_grad_()
    row, chosen = matrix[1], matrix.index_select(0, pullback.tensor([1, 1, 0]))
    assert (row.indices().tolist(), row.values().tolist(), list(row.shape)) == ([[0]], [2.0], [2])
    assert (chosen.indices().tolist(), chosen.values().tolist()) == ([[0, 1, 2], [0, 0, 1]], [2.0, 2.0, 1.0])
    assert (matrix[1, 0].item(), matrix[:, 0].tolist()) == (2.0, [0.0, 2.0])
    (row.sum() + chosen.sum()).backward()
    assert matrix.grad is not None
    assert matrix.grad.to_dense().tolist() == [[0.0, 1.0], [3.0, 0.0]]
    with pytest.raises(IndexError, match="index 2 out of range"):
        matrix[2]


def test_a_sparse_tensor_of_a_size_alone_has_no_values() -> None:
    for made in (pullback.sparse_coo_tensor((2, 3)), pullback.sparse_coo_tensor(size=(2, 3))):
        assert (list(made.shape), made._nnz(), made.to_dense().tolist()) == ([2, 3], 0, [[0.0] * 3] * 2)


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (([0, 1], [1.0, 2.0]), r"indices must be sparse_dim x nnz, but got: \[2\]"),
        (([[0, 0]], [1.0]), "got nnz from indices: 2, nnz from values: 1"),
        (([[0]], [1.0], (1, 1)), r"len\(size\) = 2, sparse_dim = 1, dense_dim = 0"),
        (([[5]], [1.0], (2,)), "for dim 0, size is 2 but found index 5"),
        (([[-1]], [1.0]), "found negative index -1 for dim 0"),
    ],
)
def test_parts_of_a_sparse_tensor_that_do_not_fit_are_refused(arguments: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        pullback.sparse_coo_tensor(*arguments)


def test_a_sparse_tensor_has_no_memory_to_share() -> None:
    matrix = pullback.tensor([[0.0, 1.0]]).to_sparse()
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        matrix.numpy()
    with pytest.raises(RuntimeError, match="Cannot access data pointer"):
        matrix.tolist()
