"""Powers of many numbers go by their absolute values: they must be those of NumPy, signs and special values included."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels.exponential import pow_scalar

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-40, -1e-40, 1e30, -1e30]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "exponent", [4, 5, -1, -3, 0, 1, 1.5, -2.5, 7.0, 1e20, 0.3333, float("inf"), float("-inf"), float("nan")]
)
def test_many_numbers_give_the_powers_of_few(dtype: str, exponent: float) -> None:
    values = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        expected = np.tile(np.power(values, exponent), 40)
        actual = pow_scalar(np.tile(values, 40), exponent)
    np.testing.assert_allclose(actual, expected, rtol=1e-6 if dtype == "float32" else 1e-15)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))
