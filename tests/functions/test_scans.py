"""Running sums and products, differences and integrals."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch: Any = pullback


def test_cumsum_of_integers_is_int64() -> None:
    assert torch.tensor([True, True]).cumsum(0).tolist() == [1, 2]


def test_cumsum_in_place_is_recorded() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.clone().cumsum_(0)
    y.sum().backward()
    assert x.grad.tolist() == [3, 2, 1]


def test_the_gradient_of_cumprod_is_right_with_zeros() -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1.0, 8.0, 0.0]


def test_cummax_names_the_last_of_equals() -> None:
    assert torch.tensor([1, 3, 3, 2]).cummax(0).indices.tolist() == [0, 1, 2, 2]


def test_cummax_gathers_gradients_of_one_element() -> None:
    x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    x.cummax(0).values.sum().backward()
    assert x.grad.tolist() == [1, 2, 0]


def test_logcumsumexp_does_not_overflow() -> None:
    x = torch.tensor([1000.0, 1000.0], requires_grad=True)
    y = x.logcumsumexp(0)
    y[1].backward()
    assert y.tolist() == pytest.approx([1000, 1000.6931])
    assert x.grad.tolist() == pytest.approx([0.5, 0.5], abs=1e-4)


def test_diff_of_bools_is_where_they_change() -> None:
    assert torch.tensor([True, False, False]).diff().tolist() == [True, False]


def test_diff_takes_what_stands_before_and_after() -> None:
    actual = torch.diff(torch.tensor([1, 3]), prepend=torch.tensor([0]), append=torch.tensor([10]))
    assert actual.tolist() == [1, 2, 7]


def test_trapezoid_integrates_at_points_or_at_a_distance() -> None:
    y = torch.tensor([1.0, 2.0, 3.0])
    assert torch.trapezoid(y).item() == 4
    assert torch.trapezoid(y, dx=0.5).item() == 2
    assert torch.trapezoid(y, torch.tensor([0.0, 1.0, 3.0])).item() == 6.5
    assert torch.cumulative_trapezoid(y).tolist() == [1.5, 4]


def test_trapezoid_wants_a_point_for_each_value() -> None:
    with pytest.raises(RuntimeError, match="There must be one `x` value for each sample point"):
        torch.trapezoid(torch.ones(3), torch.ones(2))


@pytest.mark.parametrize(("edge_order", "expected"), [(1, [1.0, 2.0, 4.0, 5.0]), (2, [0.0, 2.0, 4.0, 6.0])])
def test_gradient_is_central_inside_and_of_an_order_at_the_edges(edge_order: int, expected: list[float]) -> None:
    (actual,) = torch.gradient(torch.tensor([0.0, 1.0, 4.0, 9.0]), edge_order=edge_order)
    assert actual.tolist() == expected


def test_gradient_takes_coordinates() -> None:
    x = torch.tensor([0.0, 1.0, 3.0, 4.0])
    (actual,) = torch.gradient(x * x, spacing=(x,), edge_order=2)
    assert actual.tolist() == pytest.approx([0.0, 2.0, 6.0, 8.0])


def test_gradient_needs_points_enough() -> None:
    with pytest.raises(RuntimeError, match="expected each dimension size to be at least"):
        torch.gradient(torch.ones(1))
