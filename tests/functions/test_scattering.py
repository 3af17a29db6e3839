"""Writing at positions: repeated ones, every reduction, masks, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

PLACES = pullback.tensor([0, 0, 2])


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("sum", True, [7.0, 2.0, 7.0]),
        ("sum", False, [6.0, 2.0, 4.0]),
        ("prod", True, [8.0, 2.0, 12.0]),
        ("prod", False, [8.0, 2.0, 4.0]),
        ("mean", True, [7.0 / 3, 2.0, 3.5]),
        ("mean", False, [3.0, 2.0, 4.0]),
        ("amax", True, [4.0, 2.0, 4.0]),
        ("amin", False, [2.0, 2.0, 4.0]),
    ],
)
def test_scatter_reduce(reduce: str, include_self: bool, expected: list[float]) -> None:
    source = pullback.tensor([2.0, 4.0, 4.0])
    result = pullback.tensor([1.0, 2.0, 3.0]).scatter_reduce(0, PLACES, source, reduce, include_self=include_self)
    assert result.tolist() == pytest.approx(expected)


def test_product_with_one_zero_has_the_product_of_the_others_as_gradient() -> None:
    source = pullback.tensor([0.0, 3.0], requires_grad=True)
    result = pullback.ones(1).scatter_reduce(0, pullback.tensor([0, 0]), source, "prod")
    (gradient,) = pullback.autograd.grad(result.sum(), source)
    assert gradient.tolist() == [3.0, 0.0]


def test_maximum_shares_its_gradient_among_ties() -> None:
    source = pullback.tensor([2.0, 2.0], requires_grad=True)
    result = pullback.zeros(1).scatter_reduce(0, pullback.tensor([0, 0]), source, "amax")
    (gradient,) = pullback.autograd.grad(result.sum(), source)
    assert gradient.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.scatter(0, pullback.tensor([7]), 1.0), "index 7 is out of bounds for dimension 0 with size 3"),
        (lambda x: x.scatter(0, PLACES, pullback.ones(3).double()), "Expected self.dtype to be equal to src.dtype"),
        (
            lambda x: x.scatter_reduce(0, PLACES, x, "median"),
            "reduce argument must be either sum, prod",
        ),
        (lambda x: x.index_add(0, PLACES, pullback.ones(2)), "Number of indices .* should be equal to source.size"),
        (lambda x: x.masked_fill(x, 1), "only supports boolean masks"),
        (lambda x: x.masked_fill(x > 0, pullback.ones(2)), "only supports a 0-dimensional value tensor"),
        (lambda x: x.masked_scatter(x > -1, pullback.ones(1)), "Number of elements of source < number of ones in mask"),
    ],
)
def test_impossible_scatter_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(pullback.zeros(3))


def test_index_put_adds_at_repeated_positions() -> None:
    result = pullback.zeros(3).index_put((PLACES,), pullback.ones(3), accumulate=True)
    assert result.tolist() == [2.0, 0.0, 1.0]


def test_index_add_scales_by_alpha() -> None:
    assert pullback.zeros(3).index_add(0, PLACES, pullback.ones(3), alpha=3).tolist() == [6.0, 0.0, 3.0]


def test_in_place_form_writes_into_the_tensor() -> None:
    tensor = pullback.zeros(3)
    assert tensor.scatter_add_(0, PLACES, pullback.ones(3)) is tensor
    assert (tensor.tolist(), tensor._version) == ([2.0, 0.0, 1.0], 1)


def test_expanded_memory_may_be_filled_but_not_copied_to() -> None:
    expanded = pullback.zeros(3).expand(2, 3)
    expanded.fill_(2.0)
    assert expanded.tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        expanded.copy_(pullback.ones(3))


@pytest.mark.parametrize("value", [300, float("nan"), 1j])
def test_fill_refuses_what_the_dtype_cannot_hold(value: Any) -> None:
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        pullback.zeros(2, dtype=pullback.uint8).fill_(value)


def test_as_strided_scatter_passes_the_gradient_around_the_window() -> None:
    leaf = pullback.zeros(4, requires_grad=True)
    result = pullback.as_strided_scatter(leaf, pullback.ones(2), (2,), (1,), 1)
    (gradient,) = pullback.autograd.grad(result.sum(), leaf)
    assert gradient.tolist() == [1.0, 0.0, 0.0, 1.0]


WRITES: dict[str, Any] = {
    "index_put_": lambda x: x.index_put_((PLACES[:1],), pullback.ones(1)),
    "index_fill_": lambda x: x.index_fill_(0, PLACES[:1], 1.0),
    "masked_fill_": lambda x: x.masked_fill_(pullback.tensor([True, False, False]), 1.0),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_write_at_positions_of_an_expanded_tensor_warns_and_is_seen_everywhere(
    name: str, requires_grad: bool
) -> None:
    base = pullback.zeros(1, requires_grad=requires_grad) * 1
    expanded = base.expand(3)

    with pytest.warns(UserWarning, match=f"Use of {name} on expanded tensors is deprecated"):
        WRITES[name](expanded)

    assert expanded.tolist() == [1.0, 1.0, 1.0]
    assert base.tolist() == [1.0]


def test_an_assignment_to_positions_of_an_expanded_tensor_warns() -> None:
    expanded = pullback.zeros(2).expand(2, 2)

    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated"):
        expanded[pullback.tensor([1])] = pullback.tensor([[3.0, 4.0]])

    assert expanded.tolist() == [[3.0, 4.0], [3.0, 4.0]]


def test_nothing_is_copied_into_a_single_number() -> None:
    result = pullback.index_copy(
        pullback.tensor(1.0), 0, pullback.tensor([], dtype=pullback.int64), pullback.tensor([])
    )
    assert result.item() == 1.0


@pytest.mark.parametrize(
    ("operation", "phrase"),
    [
        (pullback.index_copy, "When source is scalar, index should have one element"),
        (pullback.index_add, "Dimension specified as 0 but tensor has no dimensions"),
    ],
)
def test_a_number_as_source_takes_one_index(operation: Any, phrase: str) -> None:
    with pytest.raises(IndexError, match=phrase):
        operation(pullback.tensor(1.0), 0, pullback.tensor([], dtype=pullback.int64), pullback.tensor(2.0))
