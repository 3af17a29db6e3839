"""Writing to sparse tensors: what stays sparse is stored, everything else is refused and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback


def _eye() -> Any:
    return pullback.eye(2).to_sparse()


@pytest.mark.parametrize(
    ("write", "diagonal"),
    [
        (lambda s: s.mul_(0.5), 0.5),
        (lambda s: s.mul_(pullback.tensor(0.5)), 0.5),
        (lambda s: s.div_(2), 0.5),
        (lambda s: s.neg_(), -1.0),
        (lambda s: s.add_(s, alpha=2), 3.0),
        (lambda s: s.sub_(s * 2), -1.0),
        (lambda s: s.sin_(), 0.84147098),
        (lambda s: s.pow_(2), 1.0),
        (lambda s: s.mul_(pullback.full((2, 2), 3.0)), 3.0),
        (lambda s: s.copy_(s * 3), 3.0),
        (lambda s: s.zero_(), 0.0),
    ],
)
def test_the_tensor_holds_what_was_written(write: Callable[[Any], Any], diagonal: float) -> None:
    s = _eye()
    assert write(s) is s
    assert s.to_dense().reshape(4).tolist() == pytest.approx([diagonal, 0.0, 0.0, diagonal])
    assert s._version == 1
    assert s.is_sparse


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda s: s.exp_(), NotImplementedError, "Could not run 'aten::exp_' with arguments from the 'SparseCPU'"),
        (lambda s: s.fill_(2), NotImplementedError, "Could not run 'aten::fill_' with arguments from the 'SparseCPU'"),
        (lambda s: s.add_(pullback.ones(2, 2)), RuntimeError, "add\\(sparse, dense\\) is not supported"),
        (lambda s: s.copy_(pullback.ones(2, 2)), RuntimeError, "copy_\\(\\) between dense and sparse"),
        (lambda s: s.__setitem__(0, 5.0), TypeError, "Cannot assign to a sparse tensor"),
        (lambda s: pullback.sin(pullback.ones(2, 2), out=s), ValueError, "read-only"),
        (lambda s: pullback.relu_(s), ValueError, "read-only"),
    ],
)
def test_what_would_be_lost_is_refused(write: Callable[[Any], Any], error: type, words: str) -> None:
    s = _eye()
    with pytest.raises(error, match=words):
        write(s)
    assert s.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_leaf_is_written_to_under_no_grad_alone() -> None:
    s = _eye().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        s.mul_(2)
    with pullback.no_grad():
        s.mul_(2)
    assert s.requires_grad
    assert s.is_leaf
    pullback.sparse.mm(s, pullback.ones(2, 1)).sum().backward()
    assert s.grad.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_gradients_pass_through_functions_that_keep_zero() -> None:
    values = pullback.tensor([1.0, 2.0], requires_grad=True)
    s = pullback.sparse_coo_tensor([[0, 0], [1, 1]], values, (2, 2))
    assert s.square().is_sparse
    assert s.square().to_dense().tolist() == [[0.0, 9.0], [0.0, 0.0]]
    pullback.sparse.sum(s.square()).backward()
    assert values.grad is not None
    assert values.grad.tolist() == [6.0, 6.0]
    assert not s.exp().is_sparse


def test_clipping_scales_sparse_gradients() -> None:
    table = pullback.nn.Embedding(4, 2, sparse=True)
    table(pullback.tensor([1, 1, 2])).sum().backward()
    norm = pullback.nn.utils.clip_grad_norm_(table.parameters(), 1.0)
    assert table.weight.grad is not None
    assert table.weight.grad.is_sparse
    assert pullback.linalg.vector_norm(table.weight.grad.to_dense()).item() == pytest.approx(1.0, abs=1e-5)
    assert norm.item() == pytest.approx(10**0.5)


def test_gradients_that_are_kept_are_zeroed() -> None:
    table = pullback.nn.Embedding(4, 2, sparse=True)
    optimizer = pullback.optim.SGD(table.parameters(), lr=1.0)
    table(pullback.tensor([1])).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    before = table.weight.detach().clone()
    optimizer.step()
    assert pullback.equal(before, table.weight)


@pytest.mark.parametrize(
    "name", ["Adam", "AdamW", "RMSprop", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "Adadelta", "Adafactor"]
)
def test_optimizers_that_move_everything_refuse_sparse_gradients(name: str) -> None:
    table = pullback.nn.Embedding(4, 2, sparse=True)
    table(pullback.tensor([1])).sum().backward()
    before = table.weight.detach().clone()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        getattr(pullback.optim, name)(table.parameters(), lr=0.1).step()
    assert pullback.equal(before, table.weight)


def test_adagrad_takes_sparse_gradients_without_weight_decay_alone() -> None:
    table = pullback.nn.Embedding(4, 2, sparse=True)
    table(pullback.tensor([1])).sum().backward()
    pullback.optim.Adagrad(table.parameters()).step()
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        pullback.optim.Adagrad(table.parameters(), weight_decay=0.1).step()


@pytest.mark.parametrize(
    ("place", "message"),
    [(5, "size is inconsistent with indices: for dim 1, size is 3 but found index 5"), (-1, "found negative index -1")],
)
def test_places_outside_of_the_size_are_refused_where_asked_for(place: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        pullback.sparse_coo_tensor([[0], [place]], [1.0], (3, 3), check_invariants=True)
