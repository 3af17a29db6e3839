"""Comparisons, logic on bits and truth values, tests of elements."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pullback

F: Any = pullback


def test_comparisons_give_bools_without_history() -> None:
    x = F.tensor([1.0, 2.0], requires_grad=True)
    result = x > 1.5
    assert (result.dtype, result.requires_grad, result.tolist()) == (F.bool, False, [False, True])


def test_a_number_is_compared_in_the_dtype_of_the_tensor() -> None:
    assert (F.tensor([0.1]) == 0.1).item()


def test_in_place_comparison_cuts_the_gradient_to_zero() -> None:
    base = F.tensor([1.0, 2.0], requires_grad=True)
    x = base * 1
    x.gt_(1.5).sum().backward()
    assert (x.tolist(), base.grad.tolist()) == ([0.0, 1.0], [0.0, 0.0])


def test_complex_numbers_have_no_order() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        F.tensor([1j]) < 1


def test_isclose_uses_both_tolerances() -> None:
    x, y = F.tensor([1.0, 1.0, math.nan]), F.tensor([1.05, 1.2, math.nan])
    assert F.isclose(x, y, rtol=0.05, atol=0.01).tolist() == [True, False, False]
    assert F.isclose(x, y, equal_nan=True).tolist() == [False, False, True]
    assert not F.allclose(x, y)


def test_equal_wants_the_same_shape_and_no_nan() -> None:
    x = F.tensor([1.0, 2.0])
    assert F.equal(x, F.tensor([1.0, 2.0]))
    assert not F.equal(x, F.tensor([[1.0, 2.0]]))
    assert not F.equal(F.tensor([math.nan]), F.tensor([math.nan]))


def test_shifts_beyond_the_width_leave_nothing_or_the_sign() -> None:
    x = F.tensor([5, -5])
    assert (x << 64).tolist() == [0, 0]
    assert (x >> 64).tolist() == [0, -1]
    assert (1 << F.tensor([3])).tolist() == [8]


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="bitwise_and_cpu"):
        F.tensor([1.0]) & 1


def test_logic_treats_nonzero_as_true() -> None:
    assert F.logical_xor(F.tensor([0.0, 2.0]), F.tensor([3, 4])).tolist() == [True, False]
    assert (~F.tensor([True, False])).tolist() == [False, True]


def test_signed_zero_has_a_sign_bit() -> None:
    assert F.signbit(F.tensor([-0.0, 0.0, -1.0])).tolist() == [True, False, True]
