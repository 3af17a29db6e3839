"""where, clamp, maximum and their relatives: overloads, ties, nan."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pullback

F: Any = pullback


def leaf(*values: float) -> Any:
    return F.tensor(list(values), requires_grad=True)


def test_where_takes_numbers_and_keeps_the_condition_out_of_promotion() -> None:
    condition = F.tensor([True, False])
    assert F.where(condition, 1, 2).dtype is F.int64
    assert F.where(condition, 1.0, F.tensor([3, 4])).tolist() == [1.0, 4.0]


def test_where_with_a_condition_alone_gives_positions() -> None:
    assert [p.tolist() for p in F.where(F.tensor([[True, False], [False, True]]))] == [[0, 1], [0, 1]]


def test_where_refuses_a_condition_of_numbers() -> None:
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        F.where(F.ones(2), 1, 2)


def test_clamp_needs_a_bound() -> None:
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        F.clamp(F.ones(2))


def test_clamp_gives_max_where_the_bounds_cross() -> None:
    assert F.clamp(F.tensor([0.0, 5.0]), 2, 1).tolist() == [1.0, 1.0]


def test_clamp_promotes_integers_beside_a_float_bound() -> None:
    assert F.clamp(F.tensor([1, 5]), max=2.5).tolist() == [1.0, 2.5]


def test_a_met_bound_lets_the_gradient_pass() -> None:
    x = leaf(-1.0, 0.0, 2.0)
    x.clamp(min=0).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0]


def test_bounds_get_the_gradient_where_they_were_applied() -> None:
    x, low, high = leaf(-1.0, 0.5, 2.0), leaf(0.0, 0.0, 0.0), leaf(1.0, 1.0, 1.0)
    F.clamp(x, low, high).sum().backward()
    assert (x.grad.tolist(), low.grad.tolist(), high.grad.tolist()) == ([0, 1, 0], [1, 0, 0], [0, 0, 1])


def test_maximum_shares_the_gradient_at_a_tie() -> None:
    x, y = leaf(1.0, 2.0, 3.0), leaf(1.0, 3.0, 2.0)
    F.maximum(x, y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0.5, 0.0, 1.0], [0.5, 1.0, 0.0])


def test_maximum_keeps_nan_and_fmax_drops_it() -> None:
    x, y = F.tensor([math.nan, 1.0]), F.tensor([2.0, math.nan])
    assert F.maximum(x, y).isnan().all()
    assert F.fmax(x, y).tolist() == [2.0, 1.0]


def test_lerp_refuses_other_dtypes() -> None:
    with pytest.raises(RuntimeError, match="expected dtype float for `end` but got dtype double"):
        F.lerp(F.ones(2), F.ones(2, dtype=F.float64), 0.5)


def test_nan_to_num_replaces_what_is_not_finite() -> None:
    x = F.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert F.nan_to_num(x, 0.5, 2.0, -2.0).tolist() == [0.5, 2.0, -2.0, 1.0]
    assert F.nan_to_num(x).tolist()[1] == F.finfo(F.float32).max


def test_large_masked_gradients_equal_small_ones() -> None:
    x = F.linspace(-1, 1, 5001).requires_grad_()
    F.relu(x).backward(F.full((5001,), -2.0))
    assert x.grad[:2500].eq(0).all()
    assert x.grad[2501:].eq(-2).all()
    assert not x.grad[0].signbit()
