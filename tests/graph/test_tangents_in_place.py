"""Writes to a result change its own tangent, and not those of what it was made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pullback
import pullback.nn.functional as F
from pullback import Tensor
from pullback.autograd import forward_ad

MAKE: dict[str, Callable[[Tensor], Tensor]] = {
    "x + 1": lambda x: x + 1,
    "ones + x": lambda x: pullback.ones(2, 3) + x,
    "x - ones": lambda x: x - pullback.ones(2, 3),
    "x of a row": lambda x: x[0] + pullback.zeros(2, 3),
    "minus x of a row": lambda x: -(pullback.zeros(2, 3) - x[0]),
    "addcmul": lambda x: pullback.addcmul(x, pullback.ones(3), pullback.ones(3)),
    "remainder": lambda x: x.remainder(100),
    "expanded": lambda x: x.expand(2, 2, 3) + 0,
}


def tangent_of(x: Tensor) -> Tensor:
    tangent = forward_ad.unpack_dual(x).tangent
    assert tangent is not None
    return tangent


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("part", [slice(None), 0])
def test_a_write_to_a_result_leaves_the_tangents_of_its_inputs(
    make: Callable[[Tensor], Tensor], part: int | slice
) -> None:
    slope = pullback.arange(6.0).reshape(2, 3)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pullback.ones(2, 3), slope.clone())
        result = make(x)
        expected = tangent_of(result).clone()
        result[part].mul_(3)
        expected[part] = expected[part] * 3
        assert pullback.equal(tangent_of(result), expected)
        assert pullback.equal(tangent_of(x), slope)


def test_a_write_to_an_input_leaves_the_tangent_of_the_result() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pullback.ones(3), pullback.ones(3))
        result = x + 1
        x.mul_(5)
        assert tangent_of(result).tolist() == [1.0, 1.0, 1.0]


def test_jvp_of_a_function_that_writes_to_what_it_computed() -> None:
    def function(x: Tensor) -> Tensor:
        F.leaky_relu(x - 3, inplace=True)
        return x

    x = pullback.tensor([1.0, 5.0])
    assert pullback.func.jvp(function, (x,), (pullback.ones(2),))[1].tolist() == [1.0, 1.0]


def test_a_view_shares_its_tangent_with_its_base() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pullback.ones(2, 2), pullback.ones(2, 2))
        x.t()[0].mul_(3)
        assert tangent_of(x).tolist() == [[3.0, 1.0], [3.0, 1.0]]


def test_set_refuses_tensors_with_tangents() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pullback.ones(3), pullback.ones(3))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with set_"):
            x.set_(pullback.ones(3))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with set_"):
            pullback.ones(3).set_(x)
