"""Order statistics: conventions for ties, NaN and middles."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch: Any = pullback
NAN = float("nan")


def test_sort_is_stable_both_ways() -> None:
    x = torch.tensor([2, 1, 2, 1])
    assert x.sort().indices.tolist() == [1, 3, 0, 2]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]


def test_nan_is_the_largest() -> None:
    x = torch.tensor([NAN, 1.0, 2.0])
    assert x.argsort().tolist() == [1, 2, 0]
    assert x.argsort(descending=True).tolist() == [0, 2, 1]
    assert x.topk(1).indices.tolist() == [0]


def test_a_promise_of_stability_is_another_node() -> None:
    x = torch.ones(2, requires_grad=True)
    assert torch.sort(x).values.grad_fn.name() == "SortBackward0"
    assert torch.sort(x, stable=True).values.grad_fn.name() == "SortBackward1"


def test_topk_takes_the_largest_or_the_smallest_in_order() -> None:
    x = torch.arange(50.0)
    assert x.topk(3).values.tolist() == [49, 48, 47]
    assert x.topk(2, largest=False).indices.tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(51)


def test_the_median_of_an_even_count_is_the_lower_middle() -> None:
    x = torch.tensor([4.0, 1.0, 3.0, 2.0])
    assert x.median().item() == 2
    assert x.median(0).indices.item() == 3


def test_median_shows_nan_and_nanmedian_does_not() -> None:
    x = torch.tensor([1.0, NAN, 3.0])
    assert x.median().isnan().item()
    assert x.median(0).indices.item() == 1
    assert x.nanmedian().item() == 1
    assert x.nanmedian(0).values.item() == 1


def test_kthvalue_counts_from_one() -> None:
    assert torch.tensor([5.0, 3.0, 4.0]).kthvalue(2).values.item() == 4
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        torch.ones(2).kthvalue(3)


def test_mode_is_the_smallest_of_the_most_frequent() -> None:
    result = torch.tensor([3, 1, 3, 1, 2]).mode()
    assert (result.values.item(), result.indices.item()) == (1, 3)


@pytest.mark.parametrize(
    ("interpolation", "expected"), [("linear", 0.9), ("lower", 0), ("higher", 1), ("nearest", 1), ("midpoint", 0.5)]
)
def test_quantile_interpolates(interpolation: str, expected: float) -> None:
    actual = torch.quantile(torch.arange(4.0), 0.3, interpolation=interpolation)
    assert actual.item() == pytest.approx(expected)


def test_several_quantiles_come_first() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.quantile(x, torch.tensor([0.0, 1.0]), dim=1).tolist() == [[0, 4, 8], [3, 7, 11]]
    assert torch.quantile(x, torch.tensor([0.5]), dim=0, keepdim=True).shape == (1, 1, 4)


def test_quantile_is_nan_with_nan_and_nanquantile_is_not() -> None:
    x = torch.tensor([1.0, NAN, 3.0])
    assert x.quantile(0.5).isnan().item()
    assert x.nanquantile(0.5).item() == 2


@pytest.mark.parametrize(
    ("x", "q", "message"),
    [
        (torch.ones(2), 1.5, r"q must be in the range \[0, 1\] but got 1.5"),
        (torch.ones(2, dtype=torch.int64), 0.5, "input tensor must be either float or double dtype"),
        (torch.ones(0), 0.5, "input tensor must be non-empty"),
        (torch.ones(2), torch.ones(1, 1), "q must be a scalar or 1D tensor"),
    ],
)
def test_quantile_refuses(x: Any, q: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.quantile(x, q)
