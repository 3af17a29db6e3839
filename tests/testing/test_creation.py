"""make_tensor: shapes, ranges, options."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.testing import make_tensor

ALL_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]


def make(*shape: Any, dtype: str = "float32", **options: Any) -> Any:
    return make_tensor(*shape, dtype=getattr(pullback, dtype), device="cpu", **options)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_values_lie_in_the_default_range(dtype: str) -> None:
    made = make(500, dtype=dtype)
    values = pullback.view_as_real(made) if made.dtype.is_complex else made
    lowest, highest = values.to(pullback.float64).min().item(), values.to(pullback.float64).max().item()
    assert (made.dtype, made.shape) == (getattr(pullback, dtype), (500,))
    assert -9 <= lowest < highest <= 9


@pytest.mark.parametrize(("dtype", "expected"), [("int64", {3, 4}), ("uint8", {3, 4}), ("int8", {3, 4})])
def test_integers_end_before_high(dtype: str, expected: set[int]) -> None:
    assert set(make(200, dtype=dtype, low=2.5, high=5).tolist()) == expected


@pytest.mark.parametrize("shape", [(2, 3), [2, 3]])
def test_a_shape_can_be_one_argument_or_several(shape: Any) -> None:
    assert make(shape).shape == make(*shape).shape == (2, 3)


def test_no_shape_is_a_scalar() -> None:
    assert make().shape == make(()).shape == ()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 1)])
def test_noncontiguous_tensors_have_gaps(shape: tuple[int, ...]) -> None:
    made = make(shape, noncontiguous=True)
    assert (tuple(made.shape), made.is_contiguous()) == (shape, False)


@pytest.mark.parametrize(("dtype", "values"), [("int8", {-1, 1}), ("uint8", {1}), ("bool", {True})])
def test_zero_can_be_excluded(dtype: str, values: set[int]) -> None:
    low = None if dtype == "bool" else -1
    high = None if dtype == "bool" else 2
    assert set(make(100, dtype=dtype, low=low, high=high, exclude_zero=True).tolist()) == values


def test_requires_grad_makes_a_leaf() -> None:
    made = make(3, requires_grad=True)
    assert (made.requires_grad, made.is_leaf) == (True, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int64", "requires_grad": True}, "`requires_grad=True` is not supported for boolean and integral"),
        ({"low": 5, "high": 4}, "`low` must be less than `high`, but got 5 >= 4"),
        ({"dtype": "int64", "low": 5, "high": 5}, "`low` must be less than `high`, but got 5 >= 5"),
        ({"low": float("nan")}, "`low` and `high` cannot be NaN"),
        ({"dtype": "bool", "low": 2.5, "high": 7}, r"is \[2.5, 7\), but .*bool only supports \[0, 2\)"),
        ({"noncontiguous": True, "memory_format": "any"}, "`noncontiguous` and `memory_format` are mutually exclusive"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(3, **options)


def test_infinite_bounds_mean_the_whole_range() -> None:
    assert make(100, low=float("-inf"), high=float("inf")).abs().max().item() > 1e37
