"""Joining and adding sparse tensors gives what PyTorch stores: these indices, these values, this history."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

_sparse: Any = pullback.sparse_coo_tensor  # it takes lists, too


def _matrix(requires_grad: bool = False) -> Any:
    """0 0 3 / 4 0 5, its indices in order."""
    values = pullback.tensor([3.0, 4.0, 5.0], requires_grad=requires_grad)
    return values, _sparse([[0, 1, 1], [2, 0, 2]], values, (2, 3))


def _stored(sparse: Any) -> tuple[Any, Any, tuple[int, ...]]:
    return sparse._indices().tolist(), sparse._values().tolist(), tuple(sparse.shape)


JOINED = {
    "cat": (
        lambda s: pullback.cat([s, s]),
        [[0, 1, 1, 2, 3, 3], [2, 0, 2, 2, 0, 2]],
        (4, 3),
    ),
    "cat along columns": (
        lambda s: pullback.cat([s, s], -1),
        [[0, 1, 1, 0, 1, 1], [2, 0, 2, 5, 3, 5]],
        (2, 6),
    ),
    "vstack": (
        lambda s: pullback.vstack([s, s]),
        [[0, 1, 1, 2, 3, 3], [2, 0, 2, 2, 0, 2]],
        (4, 3),
    ),
    "stack": (
        lambda s: pullback.stack([s, s]),
        [[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 1, 1], [2, 0, 2, 2, 0, 2]],
        (2, 2, 3),
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_joined_sparse_tensors_are_sparse(name: str) -> None:
    join, indices, shape = JOINED[name]
    _, matrix = _matrix()
    assert _stored(join(matrix)) == (indices, [3.0, 4.0, 5.0, 3.0, 4.0, 5.0], shape)
    assert not join(matrix).is_coalesced()


def test_gradients_go_through_joined_sparse_tensors() -> None:
    values, matrix = _matrix(requires_grad=True)
    joined = pullback.cat([matrix, matrix * 2])
    assert joined.grad_fn.name() == "CatBackward0"
    pullback.sparse.sum(joined).backward()
    assert values.grad.tolist() == [3.0, 3.0, 3.0]


def test_a_dense_tensor_among_sparse_ones_is_refused() -> None:
    _, matrix = _matrix()
    with pytest.raises(RuntimeError, match="Concatenating sparse tensors, but a dense tensor was found at position 1"):
        pullback.cat([matrix, pullback.ones(2, 3)])


def test_sparse_tensors_of_other_shapes_are_refused() -> None:
    _, matrix = _matrix()
    with pytest.raises(RuntimeError, match="All tensors must have the same shape"):
        pullback.cat([matrix, pullback.ones(2, 2).to_sparse()])


def test_dense_dimensions_are_joined_too() -> None:
    rows = _sparse([[0, 1]], pullback.ones(2, 2), (2, 2))
    assert _stored(pullback.cat([rows, rows], 1)) == ([[0, 1]], [[1.0] * 4] * 2, (2, 4))


def test_values_at_the_same_index_meet_in_a_sum() -> None:
    _, a = _matrix()
    b = _sparse([[0, 1], [0, 2]], [1.0, 2.0], (2, 3))
    assert _stored(a + b) == ([[0, 0, 1, 1], [0, 2, 0, 2]], [1.0, 3.0, 4.0, 7.0], (2, 3))
    assert _stored(a - b) == ([[0, 0, 1, 1], [0, 2, 0, 2]], [-1.0, 3.0, 4.0, 3.0], (2, 3))
    assert not (a + b).is_coalesced()
    assert (a.coalesce() + b.coalesce()).is_coalesced()


def test_an_index_that_repeats_in_one_tensor_repeats_in_the_sum() -> None:
    a = _sparse([[0, 0, 2]], [1.0, 2.0, 3.0], (3,))
    b = _sparse([[0, 2]], [10.0, 20.0], (3,))
    assert _stored(a + b) == ([[0, 0, 2]], [11.0, 2.0, 23.0], (3,))


def test_gradients_go_through_a_sum_of_sparse_tensors() -> None:
    values, matrix = _matrix(requires_grad=True)
    total = matrix + matrix * 3
    assert total.grad_fn.name() == "AddBackward0"
    total.coalesce().values().sum().backward()
    assert values.grad.tolist() == [4.0, 4.0, 4.0]


def test_an_emptied_sparse_tensor_can_be_used_on() -> None:
    _, matrix = _matrix(requires_grad=True)
    emptied = (matrix * 1).zero_()
    assert emptied.grad_fn.name() == "ZeroBackward0"
    assert (emptied * 2).to_dense().tolist() == [[0.0] * 3] * 2


def test_operators_of_sparse_tensors_stay_sparse() -> None:
    _, matrix = _matrix()
    assert (matrix**2).layout is pullback.sparse_coo
    assert abs(-matrix)._values().tolist() == [3.0, 4.0, 5.0]
    assert isinstance(matrix.real, pullback.Tensor)


def test_the_facts_of_a_sparse_tensor_share_a_line_of_eighty_columns() -> None:
    _, matrix = _matrix(requires_grad=True)
    lines = str(-matrix).splitlines()
    assert lines[-1] == "       size=(2, 3), nnz=3, layout=pullback.sparse_coo, grad_fn=<NegBackward0>)"
