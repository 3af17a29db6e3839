"""vmap: mapped dimensions, errors, randomness, in-place operations, what each example may not do."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback
from pullback.func import grad, vmap


def equal(actual: Any, expected: Any) -> bool:
    return bool(pullback.equal(actual, pullback.tensor(expected)))


def test_in_dims_and_out_dims_follow_the_structure() -> None:
    x = pullback.arange(6.0).reshape(2, 3)
    result = vmap(lambda d, y: {"sum": d["a"] + y, "all": (y,)}, ({"a": 1}, None), {"sum": 1, "all": (None,)})(
        {"a": x}, pullback.ones(2)
    )
    assert equal(result["sum"], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert equal(result["all"][0], [1.0, 1.0])


def test_chunks_give_what_the_whole_gives() -> None:
    x = pullback.arange(10.0).reshape(5, 2)
    assert pullback.equal(vmap(lambda a: a * 2, out_dims=1, chunk_size=2)(x), (x * 2).T)


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda x: vmap(pullback.sum, in_dims="a")(x), "expected `in_dims` to be int or a"),
        (lambda x: vmap(pullback.sum)(), "got no inputs"),
        (lambda x: vmap(pullback.sum, in_dims=(0, 0))(x), "in_dims is not compatible with the structure of `inputs`"),
        (lambda x: vmap(pullback.sum, in_dims=(0.5,))(x), "in_dim must be either an integer dimension or None"),
        (lambda x: vmap(pullback.sum)(2), "We cannot vmap over non-Tensor arguments"),
        (lambda x: vmap(pullback.sum, in_dims=5)(x), "expected in_dim to satisfy -2 <= in_dim < 2"),
        (lambda x: vmap(pullback.add)(x, x.T), "Expected all tensors to have the same size in the mapped dimension"),
        (lambda x: vmap(lambda a: 3)(x), "must only return Tensors"),
        (lambda x: vmap(lambda a: a, out_dims=(0, 1))(x), "out_dims is not compatible with the structure of `outputs`"),
        (lambda x: vmap(lambda a: a, out_dims=None)(x), "can not return a BatchedTensor when out_dim is None"),
        (lambda x: vmap(lambda a: a, chunk_size=0)(x), "chunk_size should be None or greater than 0"),
    ],
)
def test_wrong_arguments_are_named(call: Any, phrase: str) -> None:
    with pytest.raises(ValueError) as error:
        call(pullback.ones(3, 4))
    assert phrase in str(error.value)


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        (lambda a: a if a.sum() > 0 else -a, "data-dependent control flow"),
        (lambda a: a.sum().item(), "calling .item()"),
        (lambda a: float(a.sum()), "calling .item()"),
        (lambda a: a.tolist(), "Cannot access data pointer"),
        (lambda a: a.numpy(), "Cannot access data pointer"),
        (lambda a: a.nonzero(), "dynamic shape"),
        (lambda a: a.unique(), "dynamic shape"),
        (lambda a: a[a > 0], "indexing with a boolean mask"),
        (lambda a: a.masked_select(a > 0), "Attempted to vmap over `mask`"),
        (lambda a: pullback.rand(2), "randomness error mode"),
        (lambda a: pullback.ones(4).add_(a), "doesn't match the broadcast shape"),
        (lambda a: pullback.add(a, 1, out=a), "doesn't work on out="),
        (lambda a: a.requires_grad_(), "You are attempting to call Tensor.requires_grad_()"),
        (lambda a: a.sum().backward(), "backward() called inside a functorch transform."),
        (lambda a: pullback.equal(a, a), "We could not generate a fallback"),
    ],
)
def test_what_examples_may_not_do(function: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError) as error:
        vmap(function)(pullback.ones(3, 4))
    assert phrase in str(error.value)


def test_a_tensor_that_escaped_gives_no_values_away() -> None:
    escaped: list[Any] = []

    def keep(a: Any) -> Any:
        escaped.append(a)
        return a

    vmap(keep)(pullback.ones(2, 3))
    assert repr(escaped[0]).startswith("BatchedTensor(lvl=1, ")
    with pytest.raises(RuntimeError):
        escaped[0] + 1


def test_same_and_different_random_numbers() -> None:
    zeros = pullback.zeros(2, 4)
    pullback.manual_seed(0)
    same = vmap(lambda a: a + pullback.randn(4), randomness="same")(zeros)
    pullback.manual_seed(0)
    different = vmap(lambda a: a + pullback.randn(4), randomness="different")(zeros)
    pullback.manual_seed(0)
    assert pullback.equal(same[0], same[1])
    assert pullback.equal(different, pullback.randn(2, 4))


def test_dropout_drops_for_each_example() -> None:
    pullback.manual_seed(0)
    dropped = vmap(lambda a: pullback.dropout(a, 0.5, True), randomness="different")(pullback.ones(2, 50))
    assert not pullback.equal(dropped[0], dropped[1])
    dropped = vmap(lambda a: pullback.dropout(a, 0.5, True), randomness="same")(pullback.ones(2, 50))
    assert pullback.equal(dropped[0], dropped[1])


def test_writing_into_new_zeros() -> None:
    def place(a: Any, i: Any) -> Any:
        result = a.new_zeros(3)
        result[i] = a
        return result

    placed = vmap(place)(pullback.tensor([1.0, 2.0]), pullback.tensor([0, 2]))
    assert equal(placed, [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])


def test_writing_where_a_mask_is_true() -> None:
    def clip(a: Any) -> Any:
        b = a.clone()
        b[b < 0] = 0.0
        return b

    assert equal(vmap(clip)(pullback.tensor([[1.0, -1.0], [-2.0, 2.0]])), [[1.0, 0.0], [0.0, 2.0]])


def test_in_place_operations_reach_the_argument() -> None:
    x = pullback.ones(2, 3)
    vmap(lambda a: a.mul_(2))(x)
    assert pullback.equal(x, pullback.full((2, 3), 2.0))


def test_numbers_of_dimensions_decide_dtypes_as_for_one_example() -> None:
    product = vmap(lambda a, b: a * b)(pullback.ones(2, 3), pullback.ones(2, dtype=pullback.float64))
    assert product.dtype is pullback.float32


def test_gradients_flow_through_vmap() -> None:
    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    vmap(lambda a: (a**2).sum())(x).sum().backward()
    assert equal(x.grad, [[2.0, 4.0], [6.0, 8.0]])


def test_the_loop_warns_that_it_is_slow() -> None:
    x = pullback.rand(2, 3, 3)
    with pytest.warns(UserWarning, match="There is a performance drop"):
        vmap(lambda a: pullback.renorm(a, 2, 0, 1.0))(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda a: (a @ a).softmax(0).sum())(x)


def test_grad_of_a_shared_tensor_inside_of_vmap_is_refused() -> None:
    w = pullback.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="the same for all examples"):
        vmap(lambda a: pullback.autograd.grad((a * w).sum(), w)[0])(pullback.ones(3, 2))


def test_per_sample_gradients() -> None:
    w, x = pullback.tensor([1.0, 2.0]), pullback.tensor([[1.0, 0.0], [0.0, 3.0]])
    gradients = vmap(grad(lambda w, a: (w * a).sum() ** 2), in_dims=(None, 0))(w, x)
    assert equal(gradients, [[2.0, 0.0], [0.0, 36.0]])


def test_no_examples() -> None:
    assert vmap(lambda a: a.sin().sum(0))(pullback.ones(0, 3, 2)).shape == (0, 2)


@pytest.mark.parametrize("number", [int, float, complex])
@pytest.mark.parametrize("count", [0, 3])
def test_numbers_of_examples_with_other_than_one_element_are_refused_as_such(number: Any, count: int) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        vmap(number)(pullback.ones(2, count))


def test_a_tensor_with_a_tangent_is_not_resized() -> None:
    x = pullback.ones(3)
    with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
        pullback.func.jvp(lambda a: a.resize_(2), (x,), (x,))
