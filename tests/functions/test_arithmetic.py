"""Arithmetic: overloads, promotion, operators, in-place and out= forms, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

F: Any = pullback


def leaf(*values: float) -> Any:
    return F.tensor(list(values), requires_grad=True)


@pytest.mark.parametrize(
    ("call", "node"),
    [
        (lambda x: x + 1, "AddBackward0"),
        (lambda x: 1 - x, "RsubBackward1"),
        (lambda x: F.rsub(x, x), "RsubBackward0"),
        (lambda x: 2 / x, "MulBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x**x, "PowBackward1"),
        (lambda x: 2**x, "PowBackward2"),
        (lambda x: x % 2, "RemainderBackward0"),
        (lambda x: x % x, "RemainderBackward1"),
        (lambda x: F.div(x, 2, rounding_mode="floor"), "DivBackward2"),
        (lambda x: F.square(x), "PowBackward0"),
        (lambda x: F.log1p(x), "Log1PBackward0"),
    ],
)
def test_nodes_bear_the_names_of_the_overloads(call: Callable[[Any], Any], node: str) -> None:
    assert call(leaf(1.0, 2.0)).grad_fn.name() == node


def test_rounding_modes_round_down_and_towards_zero() -> None:
    x = F.tensor([-7, 7])
    assert F.div(x, 2, rounding_mode="floor").tolist() == [-4, 3]
    assert F.div(x, 2, rounding_mode="trunc").tolist() == [-3, 3]
    assert F.div(x, 2).tolist() == [-3.5, 3.5]


def test_remainder_has_the_sign_of_the_divisor_and_fmod_of_the_dividend() -> None:
    x = F.tensor([-5.0, 5.0])
    assert F.remainder(x, 3).tolist() == [1.0, 2.0]
    assert F.fmod(x, 3).tolist() == [-2.0, 2.0]


def test_remainder_of_a_number_by_a_tensor() -> None:
    assert (7 % F.tensor([4, 5])).tolist() == [3, 2]
    assert (7 // F.tensor([4, 5])).tolist() == [1, 1]


def test_steps_have_the_gradient_zero() -> None:
    x, y = leaf(7.0), leaf(2.0)
    F.div(x, y, rounding_mode="trunc").backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0.0], [0.0])


def test_floor_divide_has_no_derivative() -> None:
    with pytest.raises(NotImplementedError, match="floor_divide"):
        (leaf(7.0) // 2).backward()


def test_each_operand_gets_its_gradient_in_its_own_dtype() -> None:
    x = F.tensor([1.0, 2.0], dtype=F.float64, requires_grad=True)
    y = F.tensor([3.0, 4.0], requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (F.float64, F.float32)


def test_alpha_scales_the_second_operand() -> None:
    assert F.add(F.tensor([1, 2]), F.tensor([1, 1]), alpha=3).tolist() == [4, 5]
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        F.add(F.tensor([1]), F.tensor([1]), alpha=2.5)


def test_integers_wrap_around() -> None:
    assert (F.tensor([250], dtype=F.uint8) + 10).tolist() == [4]
    assert (F.tensor([1], dtype=F.int8) + 300).tolist() == [45]


@pytest.mark.parametrize("call", [lambda x: x // 0, lambda x: x % 0, lambda x: F.fmod(x, 0)])
def test_integer_division_by_zero_raises(call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call(F.tensor([1, 2]))


def test_integers_have_no_negative_powers() -> None:
    with pytest.raises(RuntimeError, match="negative integer powers"):
        F.tensor([2]) ** -1
    assert (F.tensor([2, 1, -1]) ** F.tensor([-1, -1, -3])).tolist() == [0, 1, -1]


def test_bools_cannot_be_subtracted() -> None:
    with pytest.raises(RuntimeError, match="two bool tensors"):
        F.tensor([True]) - F.tensor([True])
    with pytest.raises(RuntimeError, match="with a bool tensor"):
        F.tensor([1.0]) - True


def test_shapes_that_do_not_broadcast_are_told() -> None:
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        F.ones(4, 2) + F.ones(3)


def test_foreign_operands_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        F.ones(2) + "a"


def test_power_of_zero_has_the_gradient_zero() -> None:
    x = leaf(0.0, 2.0)
    (x**0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_zero_base_gives_the_exponent_no_gradient() -> None:
    y = leaf(2.0, 0.0)
    F.pow(F.zeros(2), y).sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]


def test_in_place_and_out_forms_write_into_the_given_tensor() -> None:
    x = F.tensor([1.0, 2.0])
    assert x.mul_(3).add_(1) is x
    out = F.empty(2)
    assert F.div(x, 2, out=out) is out
    assert out.tolist() == [2.0, 3.5]


def test_in_place_result_must_fit_the_dtype() -> None:
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.tensor([1]).div_(2)


def test_half_precision_gradients_keep_their_dtype() -> None:
    x = F.tensor([1.0, 2.0], dtype=F.bfloat16, requires_grad=True)
    F.log2(x).add(x, alpha=2.5).sum().backward()
    assert x.grad.dtype is F.bfloat16


def test_special_powers_agree_with_the_general_one() -> None:
    x = F.tensor([0.5, 2.0], dtype=F.float64)
    for exponent in (2, 3, -2, 0.5, -0.5, -1):
        assert F.allclose(x**exponent, F.pow(x, F.tensor(float(exponent), dtype=F.float64)))


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_the_tangent_of_a_remainder_of_two_dtypes_counts_quotients_in_the_dtype_of_both(name: str) -> None:
    divisor = F.tensor([0.75], dtype=F.bfloat16)
    dividend = F.tensor([0.7499])  # 0.75 in bfloat16, where the quotient would be 1
    _, tangent = F.func.jvp(lambda b: getattr(F, name)(dividend, b), (divisor,), (F.ones_like(divisor),))
    assert tangent.tolist() == [0.0]
