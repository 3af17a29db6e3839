"""A tensor that is given another shape without a record: gradients of what was recorded before have the former one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import Tensor
from pullback.autograd import grad


def by_data(tensor: Any, other: Tensor) -> None:
    tensor.data = other


def by_set(tensor: Any, other: Tensor) -> None:
    with pullback.no_grad():
        tensor.set_(other)


def by_out(tensor: Any, other: Tensor) -> None:
    with pullback.no_grad():
        pullback.mul(other, 1, out=tensor)


def leaf_in_use() -> tuple[Any, Any]:
    leaf = pullback.tensor([1.0, 2.0], requires_grad=True)
    return leaf, leaf * 2


pytestmark = pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")


@pytest.mark.parametrize("change", [by_data, by_set, by_out])
@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3,), [2.0, 2.0]),
        ((1, 2), [[2.0, 2.0]]),
        ((2, 2), [[2.0, 2.0], [2.0, 2.0]]),
        ((1,), [2.0, 2.0]),
        ((), [2.0, 2.0]),
    ],
)
def test_recorded_gradients_arrive_in_the_former_shape_and_are_laid_out_as_the_leaf(
    change: Callable[..., None], shape: tuple[int, ...], expected: list[Any]
) -> None:
    leaf, product = leaf_in_use()
    change(leaf, pullback.ones(shape))
    product.sum().backward()
    assert leaf.grad.tolist() == expected


@pytest.mark.parametrize("change", [by_data, by_out])
def test_an_accumulator_in_use_takes_gradients_of_its_former_shape(change: Callable[..., None]) -> None:
    leaf, _product = leaf_in_use()
    change(leaf, pullback.ones(2, 2))
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_other_memory_by_set_brings_an_accumulator_of_its_own() -> None:
    leaf, _product = leaf_in_use()
    by_set(leaf, pullback.ones(2, 2))
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("change", [by_data, by_out])
def test_a_gradient_that_does_not_fit_the_former_shape_is_refused(change: Callable[..., None]) -> None:
    leaf, _product = leaf_in_use()
    change(leaf, pullback.ones(3))
    with pytest.raises(
        RuntimeError, match=r"^Function MulBackward0 returned an invalid gradient at index 0 - got \[3\]"
    ):
        (leaf * 3).sum().backward()
    with pytest.raises(RuntimeError, match=r"^invalid gradient at index 0 - got \[3\]"):
        leaf.backward(pullback.ones(3))


def test_wanted_gradients_have_the_former_shape() -> None:
    leaf, _product = leaf_in_use()
    by_data(leaf, pullback.ones(2, 2))
    assert grad((leaf * 2).sum(), leaf)[0].tolist() == [4.0, 4.0]


def test_a_second_gradient_is_added_to_an_expanded_first_one() -> None:
    leaf, product = leaf_in_use()
    by_data(leaf, pullback.ones(1, 2))
    product.sum().backward()
    leaf.backward(pullback.ones(1, 2))
    assert leaf.grad.tolist() == [[3.0, 3.0]]


def test_a_gradient_that_fits_neither_the_leaf_nor_its_grad_is_refused() -> None:
    leaf, product = leaf_in_use()
    by_set(leaf, pullback.ones(3))
    product.sum().backward()
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        leaf.backward(pullback.ones(3))


@pytest.mark.parametrize(("shape", "expected"), [((1, 2), [2.0, 2.0]), ((2, 2), [4.0, 4.0])])
def test_a_recorded_result_that_out_resized_has_gradients_of_its_former_shape(
    shape: tuple[int, ...], expected: list[float]
) -> None:
    leaf, product = leaf_in_use()
    by_out(product, pullback.ones(shape))
    product.sum().backward()
    assert leaf.grad.tolist() == expected


def test_a_recorded_result_that_out_resized_refuses_what_does_not_fit() -> None:
    _leaf, product = leaf_in_use()
    by_out(product, pullback.ones(3))
    with pytest.raises(RuntimeError, match=r"^Function SumBackward0 returned an invalid gradient"):
        product.sum().backward()


def test_a_leaf_of_another_dtype_takes_recorded_gradients_in_the_former_one() -> None:
    leaf, product = leaf_in_use()
    by_data(leaf, pullback.ones(2, dtype=pullback.float64))
    product.sum().backward()
    assert leaf.grad.dtype is pullback.float32
