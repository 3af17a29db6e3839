"""Powers of many numbers go by their absolute values: they must be those of NumPy, signs and special values included."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels.exponential import pow, pow_base, pow_scalar

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


ZERO_POWERS = {
    1.5: (0.0, 0.0),
    0.0: (np.nan, np.nan),
    1j: (np.nan, np.nan),
    -1.0: (np.inf, np.nan),
    -2 + 1j: (np.inf, np.nan),
}


@pytest.mark.parametrize("exponent", ZERO_POWERS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_complex_zero_are_those_of_exp_of_exponent_times_log(dtype: str, exponent: complex) -> None:
    zeros, expected = np.zeros(2, dtype), ZERO_POWERS[exponent]
    with np.errstate(all="ignore"):
        powers = [pow(zeros, np.full(2, exponent, dtype)), pow_base(np.full(2, exponent, dtype), 0.0)]
        if exponent != 0:  # the number 0 as exponent gives ones
            powers.append(pow_scalar(zeros, exponent))
    for actual in powers:
        np.testing.assert_array_equal(actual.real, expected[0])
        np.testing.assert_array_equal(actual.imag, expected[1])
