"""Joining promotes dtypes and refuses shapes that do not fit; splitting gives views."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


def test_cat_promotes_and_casts_the_gradients_back() -> None:
    single = pullback.ones(2, requires_grad=True)
    double = pullback.ones(1, dtype=pullback.float64, requires_grad=True)
    joined = pullback.cat([single, double])
    assert joined.dtype is pullback.float64
    joined.sum().backward()
    assert (single.grad.dtype, double.grad.dtype) == (pullback.float32, pullback.float64)


def test_cat_is_row_major_whatever_the_parts_are() -> None:
    part = pullback.zeros(2, 3).t()
    assert pullback.cat([part, part]).stride() == (2, 1)


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        (
            [pullback.zeros(2, 3), pullback.zeros(2, 4)],
            RuntimeError,
            "Sizes of tensors must match except in dimension 0",
        ),
        ([pullback.zeros(2, 3), pullback.zeros(2)], RuntimeError, "Tensors must have same number of dimensions"),
        ([pullback.zeros(()), pullback.zeros(())], RuntimeError, "zero-dimensional tensor .* cannot be concatenated"),
        ([], ValueError, "expected a non-empty list of Tensors"),
        (pullback.zeros(2), TypeError, "must be tuple of Tensors, not Tensor"),
    ],
)
def test_cat_refuses_what_does_not_fit(tensors: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pullback.cat(tensors)


def test_cat_skips_an_empty_vector() -> None:
    assert pullback.cat([pullback.zeros(2, 3), pullback.zeros(0)]).shape == (2, 3)


def test_stack_refuses_different_shapes() -> None:
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        pullback.stack([pullback.zeros(2), pullback.zeros(3)])


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (lambda x: x.split(2), [2, 2, 1]),
        (lambda x: x.split([1, 4]), [1, 4]),
        (lambda x: x.chunk(2), [3, 2]),
        (lambda x: x.chunk(9), [1, 1, 1, 1, 1]),
        (lambda x: x.tensor_split(3), [2, 2, 1]),
        (lambda x: x.tensor_split((1, 3)), [1, 2, 2]),
    ],
)
def test_split_sizes(call: Any, sizes: list[int]) -> None:
    parts = call(pullback.arange(5))
    assert [len(part) for part in parts] == sizes
    assert pullback.cat(parts).tolist() == [0, 1, 2, 3, 4]


def test_split_refuses_sizes_that_do_not_sum_up() -> None:
    with pytest.raises(RuntimeError, match="split_with_sizes expects split_sizes to sum exactly to 5"):
        pullback.arange(5).split([1, 2])


def test_part_of_a_split_may_not_be_modified_in_place() -> None:
    part = (pullback.zeros(4, requires_grad=True) * 1).split(2)[0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        part.add_(1)


def test_part_of_an_unsafe_split_may_be_modified_in_place() -> None:
    part = pullback.unsafe_split(pullback.zeros(4, requires_grad=True) * 1, 2)[0]
    part.add_(1)
    assert part.tolist() == [1.0, 1.0]


def test_unused_part_gets_a_zero_gradient() -> None:
    leaf = pullback.zeros(3, requires_grad=True)
    leaf.unbind()[1].backward()
    assert leaf.grad.tolist() == [0.0, 1.0, 0.0]
