"""How accurate the elementary functions of compiled loops are, in units in the last place, and what they do at the ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.native
from pullback import kernels

pytestmark = pytest.mark.skipif(pullback.native.extension is None, reason="the compiled kernels are not built")
MOST_ULPS = 2.5
FEWER_ULPS = {"tanh": 1.6, "sin": 1.5, "cos": 1.5, "erf": 1.8, "erfinv": 1.3, "lgamma": 0.6, "digamma": 0.6}


def wide_erf(x: Any) -> Any:
    return np.array([math.erf(v) for v in x.tolist()], x.dtype)


# The function in a wider type, and the ranges to draw arguments from.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], list[tuple[float, float]]]] = {
    "exp": (np.exp, [(-1, 1), (-87, 88)]),
    "expm1": (np.expm1, [(-1e-3, 1e-3), (-1, 1), (-20, 88)]),
    "log": (np.log, [(0.5, 2), (0.9, 1.1), (1e-30, 1e-20), (1, 1e6)]),
    "log1p": (np.log1p, [(-1e-3, 1e-3), (-0.9, 1), (0, 1e6)]),
    "tanh": (np.tanh, [(-1e-3, 1e-3), (-1, 1), (-10, 10)]),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), [(-1, 1), (-20, 20)]),
    "erf": (wide_erf, [(-1e-3, 1e-3), (-1, 1), (-4, 4)]),
    "sin": (np.sin, [(-1, 1), (-100, 100), (-1e6, 1e6)]),
    "cos": (np.cos, [(-1, 1), (-100, 100), (-1e6, 1e6)]),
    "sqrt": (np.sqrt, [(0, 1), (0, 1e6)]),
}


def ulps(actual: Any, exact: Any) -> Any:
    return np.abs(actual.astype(exact.dtype) - exact) / np.abs(np.spacing(exact.astype(actual.dtype)))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "wide"), [(np.float32, np.float64), (np.float64, np.longdouble)])
def test_functions_are_accurate(name: str, dtype: Any, wide: Any) -> None:
    if dtype == np.float64 and np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("there is no wider type to compare with")
    reference, ranges = FUNCTIONS[name]
    for low, high in ranges:
        x = np.random.default_rng(0).uniform(low, high, 20_000).astype(dtype)
        error = ulps(getattr(kernels, name)(x), reference(x.astype(wide)))
        worst = int(np.argmax(error))
        assert error[worst] <= FEWER_ULPS.get(name, MOST_ULPS), (x[worst], error[worst])


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "sigmoid"])
def test_functions_of_float32_err_by_one_unit_at_most(name: str) -> None:
    magnitudes = np.exp2(np.random.default_rng(0).uniform(-40, 20, 400_000))
    # Around 17.1 the 1 of expm1 is half a unit; at the others exp and tanh err most.
    near = np.concatenate([np.linspace(c - 0.2, c + 0.2, 20_000) for c in (17.13, -5.85, 5.2, -16.29, 1.004)])
    x = np.concatenate([magnitudes, -magnitudes, near]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name][0](x.astype(np.float64))
        normal = np.isfinite(exact) & (np.abs(exact) < 3e38) & (np.abs(exact) > 1.2e-38)
        error = ulps(getattr(kernels, name)(x)[normal], exact[normal])
    assert np.max(error) <= 1.0, x[normal][np.argmax(error)]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("sigmoid", "erf")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ends_of_the_range_come_out_as_from_libm(name: str, dtype: Any) -> None:
    limits = np.finfo(dtype)
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, limits.tiny, -limits.tiny, limits.smallest_subnormal,
                  -limits.smallest_subnormal, limits.max, -limits.max, limits.tiny / 4, 88.722, 88.723, 88.73, -87.5, -103.9,
                  -104.5, 709.78, 709.79, -745.1, -745.2, 20.0, -20.0, -40.0], dtype)  # fmt: skip
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    actual = getattr(kernels, name)(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))
        np.testing.assert_array_equal(np.signbit(actual[~np.isnan(actual)]), np.signbit(expected[~np.isnan(actual)]))
        np.testing.assert_allclose(actual, expected, rtol=4 * limits.eps, atol=0)


def test_subnormal_results_are_rounded_once() -> None:
    x = np.linspace(-103.9, -87.4, 5000).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    step = float(np.finfo(np.float32).smallest_subnormal)
    assert np.max(np.abs(kernels.exp(x) - exact) / np.maximum(step, exact * 2.0**-23)) <= 1.5


# float32 that goes by way of float64, and what NumPy has for it.
THROUGH_FLOAT64: dict[str, tuple[Callable[[Any], Any], list[tuple[float, float]]]] = {
    "tan": (np.tan, [(-1, 1), (-100, 100), (-1e6, 1e6), (1e6, 1e30), (-1e-30, 1e-30)]),
    "asin": (np.arcsin, [(-1, 1), (0.49, 0.51), (0.999, 1), (-1e-30, 1e-30)]),
    "cosh": (np.cosh, [(-1, 1), (-88, 88)]),
    "log2": (np.log2, [(0.5, 2), (0.99, 1.01), (1e-30, 1e-20), (1, 1e6), (1e-45, 1e-38)]),
    "log10": (np.log10, [(0.5, 2), (0.99, 1.01), (1e-30, 1e-20), (1, 1e6), (1e-45, 1e-38)]),
    "exp2": (np.exp2, [(-1, 1), (-126, 127.9), (4.5, 4.6)]),
}


@pytest.mark.parametrize("name", THROUGH_FLOAT64)
def test_float32_is_as_accurate_as_its_digits_allow(name: str) -> None:
    reference, ranges = THROUGH_FLOAT64[name]
    for low, high in ranges:
        x = np.random.default_rng(0).uniform(low, high, 20_000).astype(np.float32)
        error = ulps(getattr(kernels, name)(x), reference(x.astype(np.float64)))
        assert np.max(error) <= 1.0, (low, high)


@pytest.mark.parametrize("name", THROUGH_FLOAT64)
def test_float32_has_special_values_as_in_float64(name: str) -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 1e-45, 3e38, -3e38, 128, -150, 8, 1000], np.float32)
    with np.errstate(all="ignore"):
        expected = THROUGH_FLOAT64[name][0](x.astype(np.float64)).astype(np.float32)
        actual = getattr(kernels, name)(x)
    np.testing.assert_allclose(actual, expected, rtol=2e-7)
    np.testing.assert_array_equal(np.signbit(actual[actual == 0]), np.signbit(expected[actual == 0]))


def test_atan2_of_float32_is_that_of_float64_rounded() -> None:
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)
    a, b = (part.ravel() for part in np.meshgrid(special, special))
    expected = np.arctan2(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(kernels.atan2(a, b), expected, rtol=2e-7)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(20_000).astype(np.float32) for _ in range(2))
    assert np.max(ulps(kernels.atan2(a, b), np.arctan2(a.astype(np.float64), b.astype(np.float64)))) <= 0.6


def by_reference(name: str) -> Any:
    return getattr(kernels, name).__wrapped__


# float32 beside the reference in float64.
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "erfc": [(-4, 4), (-1e-3, 1e-3), (3, 9.1)],
    "erfinv": [(-1, 1), (-1e-4, 1e-4), (0.999, 1), (-1, -0.999)],
    "lgamma": [(0, 3), (0.99, 1.01), (1.99, 2.01), (-5, 0), (3, 1e6), (-30, -20)],
    "digamma": [(0, 3), (1.46, 1.47), (-5, 0), (3, 1e6), (-30, -20)],
    "sinc": [(-3, 3), (-1e-3, 1e-3), (-1e-40, 1e-40), (-1000, 1000)],
    "entr": [(0, 3)],
    "expit": [(-1, 1), (-20, 20)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_of_float32_are_accurate(name: str) -> None:
    for low, high in SPECIAL[name]:
        x = np.random.default_rng(0).uniform(low, high, 20_000).astype(np.float32)
        exact = by_reference(name)(x.astype(np.float64))
        finite = np.isfinite(exact)
        error = ulps(getattr(kernels, name)(x)[finite], exact[finite])
        assert np.max(error) <= FEWER_ULPS.get(name, MOST_ULPS), (low, high)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_those_of_libm_to_the_bit(name: str, dtype: Any) -> None:
    generator = np.random.default_rng(0)
    for spread in (1, 1e3, 1e6, 1e9, 1e30):
        a = (generator.standard_normal(3000) * spread).astype(dtype)
        b = generator.standard_normal(3000).astype(dtype)
        a[::7] = np.round(a[::7])
        b[::5] = np.round(b[::5]) + 0.5
        a[::11] = b[::11] * 3
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        if name == "remainder":
            expected = np.where(expected == 0, np.copysign(expected, a), expected)
        actual = getattr(kernels, name)(a, b)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.parametrize(("name", "reference"), [("hypot", np.hypot), ("logaddexp", np.logaddexp)])
@pytest.mark.parametrize(("dtype", "wide"), [(np.float32, np.float64), (np.float64, np.longdouble)])
def test_functions_of_two_numbers_are_accurate(name: str, reference: Any, dtype: Any, wide: Any) -> None:
    generator = np.random.default_rng(0)
    for spread in (1.0, 1e-30, 1e30):
        a, b = ((generator.standard_normal(20_000) * spread).astype(dtype) for _ in range(2))
        exact = reference(a.astype(wide), b.astype(wide))
        scale = np.maximum(np.abs(exact), np.maximum(np.abs(a), np.abs(b)))  # log(exp + exp) may come out near zero
        error = np.abs(getattr(kernels, name)(a, b).astype(wide) - exact) / np.spacing(scale.astype(dtype))
        assert np.max(error) <= MOST_ULPS
