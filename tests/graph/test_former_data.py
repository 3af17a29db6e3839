"""A tensor that is given other data between forward and backward. See Note [Former data]."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import Tensor
from pullback.autograd import grad
from pullback.nn.functional import linear


def numbers(*shape: int) -> Any:
    count = pullback.Size(shape).numel()
    return (pullback.arange(count, dtype=pullback.float32) + 1).reshape(shape).requires_grad_()


PRODUCTS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]], list[str]]] = {
    "linear": (linear, [(2, 3), (4, 3)], ["new", "old"]),
    "linear with bias": (lambda x, w: linear(x, w, pullback.ones(4)), [(2, 3), (4, 3)], ["new", "old"]),
    "linear of batches": (linear, [(2, 2, 3), (4, 3)], ["old", "old"]),
    "linear of batches with bias": (lambda x, w: linear(x, w, pullback.ones(4)), [(2, 2, 3), (4, 3)], ["old", "old"]),
    "matrices": (pullback.matmul, [(2, 3), (3, 4)], ["new", "new"]),
    "batches and a matrix": (pullback.matmul, [(2, 2, 3), (3, 4)], ["old", "new"]),
    "a matrix and batches": (pullback.matmul, [(2, 3), (2, 3, 4)], ["old", "old"]),
    "batches of batches": (pullback.matmul, [(2, 1, 2, 3), (2, 3, 4)], ["old", "old"]),
    "outer": (pullback.outer, [(2,), (3,)], ["old", "new"]),
    "einsum": (lambda *factors: pullback.einsum("ij,jk->ik", *factors), [(2, 3), (3, 4)], ["old", "old"]),
    "elementwise": (pullback.mul, [(2, 3), (2, 3)], ["new", "new"]),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("is_leaf", [False, True])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_node_reads_the_data_that_pytorch_has_saved(name: str, place: int, is_leaf: bool, create_graph: bool) -> None:
    function, shapes, kinds = PRODUCTS[name]
    leaves = [numbers(*shape) for shape in shapes]
    factors = leaves if is_leaf else [leaf.clone() for leaf in leaves]
    meant = [leaf.detach().requires_grad_() for leaf in leaves]
    if kinds[place] == "new":
        meant[place] = pullback.full_like(leaves[place], 9.0).requires_grad_()
    expected = grad(function(*meant).sum(), meant[1 - place])[0]

    result = function(*factors)
    factors[place].data = pullback.full_like(leaves[place], 9.0)
    actual = grad(result.sum(), leaves[1 - place], create_graph=create_graph)[0]

    assert actual.tolist() == expected.tolist()


def test_what_is_recorded_afterwards_reads_the_new_data() -> None:
    x, weight = numbers(2, 3), numbers(4, 3)
    before = linear(x, weight)
    weight.data = pullback.zeros(4, 3)
    after = linear(x, weight)

    assert grad(after.sum(), x)[0].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert grad(before.sum(), x)[0].tolist() == [[22.0, 26.0, 30.0], [22.0, 26.0, 30.0]]


def test_a_shown_step_holds_the_former_data() -> None:
    x, weight = numbers(2, 3), numbers(4, 3)
    result = linear(x, weight)
    weight.data = pullback.zeros(4, 3)
    x.data = pullback.zeros(2, 3)

    assert result.grad_fn is not None
    assert result.grad_fn._saved_mat2.tolist() == [[1.0, 4.0, 7.0, 10.0], [2.0, 5.0, 8.0, 11.0], [3.0, 6.0, 9.0, 12.0]]
    assert result.grad_fn._saved_self.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_other_data_is_not_a_modification() -> None:
    x = numbers(2)
    squares = x * x
    x.data = pullback.tensor([5.0, 6.0])

    assert x._version == 0
    assert grad(squares.sum(), x)[0].tolist() == [10.0, 12.0]


def test_a_write_after_other_data_is_a_modification() -> None:
    x, weight = numbers(2, 3), numbers(4, 3)
    result = linear(x, weight)
    weight.data = pullback.zeros(4, 3)
    with pullback.no_grad():
        weight.add_(1)

    assert weight._version == 1
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
        result.sum().backward()


def test_a_view_goes_on_as_one_after_other_data() -> None:
    base, source = pullback.ones(3), numbers(1, 3)
    view: Any = base.view(1, 3)
    view[0:] = source
    view.data = source.detach().clone()
    view.squeeze_(-1)

    assert view.grad_fn.name() == "SqueezeBackward4"


def test_former_memory_is_released_with_the_graph() -> None:
    x, weight = numbers(2, 3), numbers(4, 3)
    result = linear(x, weight)
    former = weakref.ref(weight._array)
    weight.data = pullback.zeros(4, 3)
    assert former() is not None

    del result
    gc.collect()

    assert former() is None


def test_former_memory_is_not_kept_without_a_graph() -> None:
    weight = numbers(4, 3)
    former = weakref.ref(weight._array)
    weight.data = pullback.zeros(4, 3)

    assert former() is None
