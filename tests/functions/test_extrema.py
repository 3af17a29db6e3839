"""max, min and relatives: overloads, ties, NaN, empty tensors."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch: Any = pullback


def test_max_has_three_forms() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert torch.max(x).item() == 7
    assert torch.max(x, 1).indices.tolist() == [1, 0]
    assert torch.max(x, torch.full((2, 2), 4.0)).tolist() == [[4, 5], [7, 4]]


def test_results_have_names_and_show_them() -> None:
    result = torch.tensor([1.0, 3.0]).max(0)
    assert repr(result) == "pullback.return_types.max(\nvalues=tensor(3.),\nindices=tensor(1))"
    assert type(result) is torch.return_types.max
    values, indices = result
    assert (values.item(), indices.item()) == (3.0, 1)


def test_the_gradient_of_max_is_shared_among_ties() -> None:
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_the_gradient_of_amax_is_shared_within_each_row() -> None:
    x = torch.tensor([[2.0, 2.0], [1.0, 3.0]], requires_grad=True)
    x.amax(1).sum().backward()
    assert x.grad.tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_the_gradient_of_max_along_a_dim_goes_to_the_first() -> None:
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    x.max(0).values.backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]


def test_nan_is_the_extremum_and_takes_the_gradient() -> None:
    x = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    largest = x.max()
    largest.backward()
    assert largest.isnan().item()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    assert x.min(0).indices.item() == 1


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_nothing_has_no_extremum(name: str) -> None:
    message = (
        rf"{name}\(\): Expected reduction dim to be specified for input.numel\(\) == 0. "
        "Specify the reduction dim with the 'dim' argument."
    )
    with pytest.raises(RuntimeError, match=message):
        getattr(torch, name)(torch.empty(0))


def test_an_empty_dim_has_no_extremum() -> None:
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero size."):
        torch.empty(0, 3).max(0)
    assert torch.empty(0, 3).max(1).values.shape == (0,)


def test_argmax_of_everything_counts_flat() -> None:
    x = torch.tensor([[1.0, 2.0], [4.0, 3.0]])
    assert x.argmax().item() == 2
    assert x.argmax(keepdim=True).shape == (1, 1)
    assert x.argmin(1).tolist() == [0, 1]


def test_complex_numbers_have_no_order() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        torch.tensor([1 + 1j]).max()


def test_out_takes_a_pair() -> None:
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    result = torch.max(torch.tensor([[1.0, 2.0]]), 1, out=(values, indices))
    assert values.tolist() == [2.0]
    assert indices.tolist() == [1]
    assert type(result).__name__ == "max_out"
    with pytest.raises(TypeError, match=r"bool keepdim = False, \*, tuple of Tensors out = None\)"):
        torch.max(torch.ones(2), 0, out=values)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int"):
        torch.max(torch.ones(2), 0, out=(values, torch.empty(0, dtype=torch.int32)))


def test_aminmax_names_its_results() -> None:
    result = torch.tensor([3.0, 1.0]).aminmax()
    assert (result.min.item(), result.max.item()) == (1.0, 3.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.amax(1),
        lambda x: x.amin(1),
        lambda x: x.mode(1)[0],
        lambda x: x.cummax(0)[0],
        lambda x: x.cummin(0)[0],
        lambda x: x.softmax(1),
        lambda x: x.log_softmax(1),
    ],
)
def test_complex_numbers_are_not_refused_where_there_are_none(function: Any) -> None:
    result = function(pullback.zeros(0, 2, dtype=pullback.complex64))
    assert result.numel() == 0
    assert result.dtype is pullback.complex64


@pytest.mark.parametrize("dtype", [pullback.bool, pullback.complex64])
def test_argmax_of_nothing_is_refused_by_dtype_first(dtype: Any) -> None:
    with pytest.raises(RuntimeError, match=r"argmax\(\): does not support"):
        pullback.zeros(0, 2, dtype=dtype).argmax()
