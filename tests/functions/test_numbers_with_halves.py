"""Python's numbers that meet floats of 16 bits: some operations round them first, as PyTorch's do, others compute in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F

NUMBER = 1.4285714
X = np.random.default_rng(0).normal(size=400).astype(np.float32)

Operation = Callable[[Any, float], Any]


def widened(dtype: Any) -> Any:
    """What elements of the dtype are, in float32."""
    return pullback.tensor(X).to(dtype).float()


def rounded(number: float, dtype: Any) -> float:
    return float(pullback.tensor(number).to(dtype).float())


@pytest.mark.parametrize("dtype", [pullback.float16, pullback.bfloat16])
@pytest.mark.parametrize(
    "operation",
    [
        lambda x, number: x + number,
        lambda x, number: x - number,
        lambda x, number: number - x,
        lambda x, number: x % number,
        lambda x, number: pullback.fmod(x, number),
        F.hardshrink,
    ],
)
def test_a_number_is_rounded_first(operation: Operation, dtype: Any) -> None:
    x = widened(dtype)
    assert operation(x.to(dtype), NUMBER).equal(operation(x, rounded(NUMBER, dtype)).to(dtype))


@pytest.mark.parametrize("dtype", [pullback.float16, pullback.bfloat16])
@pytest.mark.parametrize(
    "operation",
    [
        lambda x, number: x * number,
        lambda x, number: x / number,
        lambda x, number: F.threshold(x, number, -number),
        lambda x, number: F.leaky_relu(x, number),
    ],
)
def test_a_number_is_as_precise_as_float32(operation: Operation, dtype: Any) -> None:
    x = widened(dtype)
    assert operation(x.to(dtype), NUMBER).equal(operation(x, NUMBER).to(dtype))


@pytest.mark.parametrize("dtype", [pullback.float16, pullback.bfloat16])
def test_a_scaled_number_is_the_product_of_two_rounded_ones(dtype: Any) -> None:
    x = widened(dtype)
    expected = x + float(np.float32(rounded(NUMBER, dtype)) * np.float32(rounded(0.7, dtype)))
    assert pullback.add(x.to(dtype), NUMBER, alpha=0.7).equal(expected.to(dtype))


@pytest.mark.parametrize("dtype", [pullback.float16, pullback.bfloat16])
def test_the_gradient_of_a_scaled_term_is_as_precise_as_a_product(dtype: Any) -> None:
    x = pullback.ones(400, dtype=dtype, requires_grad=True)
    gradient = widened(dtype)
    pullback.add(x.detach(), x, alpha=NUMBER).backward(gradient.to(dtype))
    assert x.grad is not None
    assert x.grad.equal((gradient * NUMBER).to(dtype))
