"""The special functions against recorded values (tools/record_special.py), their special values, and identities."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.kernels import (
    special,
    special_airy,
    special_bessel,
    special_bessel_modified,
    special_gamma,
    special_incomplete_gamma,
    special_polynomials,
)
from pullback.typing import Array

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

MODULES = (
    special,
    special_gamma,
    special_incomplete_gamma,
    special_bessel,
    special_bessel_modified,
    special_airy,
    special_polynomials,
)
REFERENCES: dict[str, list[list[float]]] = json.loads(
    (pathlib.Path(__file__).parent / "special_references.json").read_text()
)
INF, NAN = math.inf, math.nan

# Largest error in units of the last place; 6 where nothing else is said. A polynomial's terms cancel.
ULPS = {
    "erf": 1, "erfc": 2, "erfcx": 2, "erfinv": 1, "ndtri": 4, "expit": 2, "logit": 2, "sinc": 4, "entr": 2, "xlogy": 2,
    "lgamma": 2, "igamma": 16, "igammac": 16, "zeta": 8, "polygamma": 8,
    **dict.fromkeys((name for name in REFERENCES if "polynomial" in name), 32),
}  # fmt: skip

# Functions with zeros that are not resolved to the last digit: their error counts relative to at least this size.
ENVELOPES: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"), lambda x: 0.8 / math.sqrt(max(abs(x), 1.0))),
    "airy_ai": lambda x: 0.56 / abs(x) ** 0.25 if x < -3 else 0.0,
    "digamma": lambda x: 4.0 if x < 0 else 0.0,
    **dict.fromkeys((name for name in REFERENCES if "polynomial" in name), lambda x: 4.0),
}


def zero(_: float) -> float:
    return 0.0


def find(name: str) -> Callable[..., Array]:
    function = next(getattr(module, name) for module in MODULES if hasattr(module, name))
    if name == "polygamma":
        return lambda n, x: np.stack([special_gamma.polygamma(int(k), v) for k, v in zip(n, x, strict=True)])
    return function


def arguments_of(name: str, dtype: Any = np.float64) -> list[Array]:
    return list(np.array(REFERENCES[name], dtype).T[:-1])


UNARY = sorted(name for name, rows in REFERENCES.items() if len(rows[0]) == 2)


@pytest.mark.parametrize("name", REFERENCES)
def test_value_is_accurate_to_the_last_digits(name: str) -> None:
    expected = np.array(REFERENCES[name]).T[-1]
    actual = find(name)(*arguments_of(name))
    envelope = ENVELOPES.get(name, zero)
    size = np.maximum(np.abs(expected), [envelope(x) for x in arguments_of(name)[0].tolist()])
    assert np.max(np.abs(actual - expected) / np.spacing(size)) <= ULPS.get(name, 6)


@pytest.mark.parametrize("name", UNARY)
def test_float32_result_is_the_rounded_float64_result(name: str) -> None:
    x = arguments_of(name, np.float32)[0]
    expected = find(name)(x.astype(np.float64)).astype(np.float32)
    actual = find(name)(x)
    assert actual.dtype == np.float32
    np.testing.assert_array_max_ulp(actual, expected, maxulp=3)


@pytest.mark.parametrize("name", UNARY)
def test_half_precision_keeps_its_dtype_and_accuracy(name: str) -> None:
    x = np.array([0.125, 0.5, 0.75], np.float16)
    actual = find(name)(x)
    assert actual.dtype == np.float16
    np.testing.assert_array_equal(actual, find(name)(x.astype(np.float64)).astype(np.float16))


@pytest.mark.parametrize("name", UNARY)
def test_scalar_empty_and_strided_arrays_keep_their_shape(name: str) -> None:
    function = find(name)
    x = np.linspace(0.05, 0.95, 12).reshape(3, 4)
    assert function(np.float64(0.5)).shape == ()
    assert function(np.empty((2, 0))).shape == (2, 0)
    np.testing.assert_array_equal(function(x.T[::2]), function(x).T[::2])


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma", "digamma", "ndtri", "expit", "bessel_y0"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_array_equals_its_parts_and_is_not_modified(name: str, dtype: Any) -> None:
    x = np.linspace(0.001, 0.999, 70_001).astype(dtype)
    before = x.copy()
    actual = find(name)(x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(actual[::1000], np.array([find(name)(v) for v in x[::1000]]))


@pytest.mark.parametrize("name", ["igamma", "igammac", "zeta", "xlogy", "xlog1py", "chebyshev_polynomial_t"])
def test_two_arguments_broadcast(name: str) -> None:
    first, second = np.array([[1.5], [3.0]]), np.array([0.5, 2.0, 25.0])
    actual = find(name)(first, second)
    expected = [[find(name)(a, b) for b in second] for a in first[:, 0]]
    np.testing.assert_array_equal(actual, np.array(expected))


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("erf", [0.0, -0.0, INF, -INF, NAN, 5e-324], [0.0, -0.0, 1.0, -1.0, NAN, 5e-324]),
        ("erfc", [0.0, INF, -INF, NAN, 1e308], [1.0, 0.0, 2.0, NAN, 0.0]),
        ("erfcx", [0.0, INF, -INF, NAN, -1e308], [1.0, 0.0, INF, NAN, INF]),
        ("erfinv", [0.0, 1.0, -1.0, 2.0, -1.5, INF, NAN], [0.0, INF, -INF, NAN, NAN, NAN, NAN]),
        ("ndtr", [0.0, INF, -INF, NAN], [0.5, 1.0, 0.0, NAN]),
        ("log_ndtr", [INF, -INF, NAN], [-0.0, -INF, NAN]),
        ("ndtri", [0.0, 0.5, 1.0, -0.1, 1.1, INF, NAN], [-INF, 0.0, INF, NAN, NAN, NAN, NAN]),
        ("expit", [0.0, INF, -INF, NAN, -1000.0], [0.5, 1.0, 0.0, NAN, 0.0]),
        ("logit", [0.0, 0.5, 1.0, -1.0, 2.0, NAN], [-INF, 0.0, INF, NAN, NAN, NAN]),
        ("sinc", [0.0, -0.0, 1.0, -3.0, 0.5, INF, NAN], [1.0, 1.0, 0.0, 0.0, 2 / math.pi, NAN, NAN]),
        ("entr", [0.0, 1.0, -1.0, INF, -INF, NAN], [0.0, 0.0, -INF, -INF, -INF, NAN]),
        ("lgamma", [0.0, -0.0, 1.0, 2.0, -1.0, -3.0, INF, -INF, NAN], [INF, INF, 0.0, 0.0, INF, INF, INF, INF, NAN]),
        ("digamma", [0.0, -0.0, -1.0, -7.0, INF, -INF, NAN], [-INF, INF, NAN, NAN, INF, NAN, NAN]),
        ("i0", [0.0, -0.0, 1e308, NAN], [1.0, 1.0, INF, NAN]),
        ("i1", [0.0, 1e308, -1e308, NAN], [0.0, INF, -INF, NAN]),
        ("i0e", [0.0, INF, -INF, NAN], [1.0, 0.0, 0.0, NAN]),
        ("i1e", [0.0, INF, -INF, NAN], [0.0, 0.0, 0.0, NAN]),
        ("bessel_j1", [0.0, INF, NAN], [0.0, NAN, NAN]),
        ("bessel_y0", [0.0, -1.0, INF, NAN], [-INF, NAN, NAN, NAN]),
        ("bessel_y1", [0.0, 5e-324, -1.0, NAN], [-INF, -INF, NAN, NAN]),
        ("modified_bessel_k0", [0.0, -1.0, INF, NAN], [INF, NAN, 0.0, NAN]),
        ("modified_bessel_k1", [0.0, 5e-324, -1.0, INF, NAN], [INF, INF, NAN, 0.0, NAN]),
        ("scaled_modified_bessel_k0", [0.0, -1.0, INF], [INF, NAN, 0.0]),
        ("scaled_modified_bessel_k1", [0.0, -1.0, INF], [INF, NAN, 0.0]),
        ("spherical_bessel_j0", [0.0, INF, -INF, NAN], [1.0, 0.0, 0.0, NAN]),
        ("airy_ai", [1e308, INF, -INF, NAN], [0.0, NAN, NAN, NAN]),
    ],
)
def test_special_value_is_torchs(name: str, x: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(find(name)(np.array(x)), np.array(expected))


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("xlogy", [0.0, 0.0, 0.0, 1.0, NAN], [0.0, -1.0, NAN, 0.0, 1.0], [0.0, 0.0, NAN, -INF, NAN]),
        ("xlog1py", [0.0, 0.0, 0.0, 1.0, 2.0], [-1.0, -2.0, NAN, -1.0, -2.0], [0.0, 0.0, NAN, -INF, NAN]),
        ("zeta", [1.0, 0.5, 2.0, 2.0, 2.5, NAN], [2.0, 2.0, 0.0, -1.0, -0.5, 1.0], [INF, NAN, INF, INF, NAN, NAN]),
        ("igamma", [0.0, 0.0, 1.0, 1.0, -1.0, 1.0, INF, 2.0], [0.0, 1.0, 0.0, INF, 1.0, -1.0, 1.0, 1e300],
         [NAN, 1.0, 0.0, 1.0, NAN, NAN, 0.0, 1.0]),
        ("igammac", [0.0, 0.0, 1.0, 1.0, -1.0, 1.0, INF, 2.0], [0.0, 1.0, 0.0, INF, 1.0, -1.0, 1.0, 1e300],
         [NAN, 0.0, 1.0, 0.0, NAN, NAN, 1.0, 0.0]),
        ("chebyshev_polynomial_t", [0.3, 0.3, 0.3, 1.0, -1.0], [-1.0, NAN, 2.7, 99.0, 99.0],
         [0.0, 0.0, 2 * 0.3 * 0.3 - 1, 1.0, -1.0]),
        ("chebyshev_polynomial_u", [1.0, -1.0, 0.0], [99.0, 99.0, 3.0], [100.0, -100.0, 0.0]),
        ("chebyshev_polynomial_w", [1.0, -1.0], [50.0, 50.0], [101.0, 1.0]),
        ("hermite_polynomial_h", [0.5, 0.5, 0.5], [0.0, -3.0, 600.0], [1.0, 0.0, NAN]),
        ("legendre_polynomial_p", [1.0, -1.0, -1.0], [9.0, 9.0, 8.0], [1.0, -1.0, 1.0]),
        ("laguerre_polynomial_l", [0.0, 0.0], [9.0, 0.0], [1.0, 1.0]),
    ],
)  # fmt: skip
def test_special_value_of_two_arguments_is_torchs(
    name: str, first: list[float], second: list[float], expected: list[float]
) -> None:
    np.testing.assert_array_equal(find(name)(np.array(first), np.array(second)), np.array(expected))


@pytest.mark.parametrize(
    ("n", "x", "expected"), [(1, -1.0, INF), (2, 0.0, -INF), (3, -2.0, INF), (1, INF, 0.0), (0, 0.0, -INF)]
)
def test_polygamma_at_poles_and_infinity(n: int, x: float, expected: float) -> None:
    assert special_gamma.polygamma(n, np.array(x)) == expected


def test_polygamma_refuses_a_negative_order() -> None:
    with pytest.raises(RuntimeError, match="does not support negative n"):
        pullback.polygamma(-1, pullback.ones(1))


def test_mvlgamma_refuses_a_dimension_below_one() -> None:
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        special_gamma.mvlgamma(np.ones(1), 0)


def test_mvlgamma_is_a_sum_of_lgamma() -> None:
    x = np.array([2.5, 4.0])
    expected = math.log(math.pi) / 2 + special_gamma.lgamma(x) + special_gamma.lgamma(x - 0.5)
    np.testing.assert_allclose(special_gamma.mvlgamma(x, 2), expected, rtol=1e-15)


def test_logit_clamps_with_eps() -> None:
    actual = special.logit(np.array([-1.0, 0.0, 0.5, 1.0, NAN]), 0.25)
    np.testing.assert_allclose(actual, [-math.log(3), -math.log(3), 0.0, math.log(3), NAN], rtol=1e-15)


def test_complex_sinc_and_expit_continue_the_real_ones() -> None:
    z = np.array([0.0, 0.5, 1.5 + 0.5j])
    np.testing.assert_allclose(special.sinc(z), [1.0, 2 / math.pi, np.sin(np.pi * z[2]) / (np.pi * z[2])])
    np.testing.assert_allclose(special.expit(z), 1 / (1 + np.exp(-z)))


def test_inverses_return_the_argument() -> None:
    x = np.linspace(-1.5, 1.5, 31)
    np.testing.assert_allclose(special.erfinv(special.erf(x)), x, rtol=1e-14, atol=0)
    np.testing.assert_allclose(special.ndtri(special.ndtr(x)), x, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(special.logit(special.expit(x)), x, rtol=1e-14, atol=1e-16)


def test_complements_add_up_to_one() -> None:
    a, x = np.meshgrid(np.geomspace(0.01, 1000, 25), np.geomspace(0.01, 1000, 25))
    np.testing.assert_allclose(special_incomplete_gamma.igamma(a, x) + special_incomplete_gamma.igammac(a, x), 1.0)
    np.testing.assert_allclose(special.erf(x) + special.erfc(x), 1.0)


def test_gamma_recurrences_hold() -> None:
    x = np.geomspace(0.01, 100, 50)
    lgamma, digamma, zeta = special_gamma.lgamma, special_gamma.digamma, special_gamma.zeta
    np.testing.assert_allclose(lgamma(x + 1) - lgamma(x), np.log(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(digamma(x + 1) - digamma(x), 1 / x, rtol=1e-12)
    np.testing.assert_allclose(zeta(2 + 0 * x, x) - zeta(2 + 0 * x, x + 1), x**-2, rtol=1e-11)


def test_wronskians_of_bessel_functions() -> None:
    x = np.linspace(0.1, 60, 200)
    j0, j1, y0, y1 = (find(f"bessel_{name}")(x) for name in ("j0", "j1", "y0", "y1"))
    i0, i1, k0, k1 = (find(f"modified_bessel_{name}")(x) for name in ("i0", "i1", "k0", "k1"))
    np.testing.assert_allclose(j1 * y0 - j0 * y1, 2 / (np.pi * x), rtol=1e-13)
    np.testing.assert_allclose(i0 * k1 + i1 * k0, 1 / x, rtol=1e-13)


def test_chebyshev_polynomials_follow_their_angles() -> None:
    angle, n = np.linspace(0.1, 3.0, 30)[:, None], np.array([3.0, 9.0, 40.0])
    x = np.cos(angle)
    np.testing.assert_allclose(special_polynomials.chebyshev_polynomial_t(x, n), np.cos(n * angle), atol=1e-13)
    actual = special_polynomials.chebyshev_polynomial_u(x, n)
    np.testing.assert_allclose(actual, np.sin((n + 1) * angle) / np.sin(angle), rtol=1e-9, atol=1e-11)
    shifted = special_polynomials.shifted_chebyshev_polynomial_v((x + 1) / 2, n)
    np.testing.assert_allclose(shifted, special_polynomials.chebyshev_polynomial_v(x, n), rtol=1e-9, atol=1e-11)


def test_chebyshev_polynomial_far_outside_grows_without_overflowing_early() -> None:
    actual = special_polynomials.chebyshev_polynomial_t(np.array([1.5, -1.5]), np.array(101.0))
    expected = math.cosh(101 * math.acosh(1.5))
    np.testing.assert_allclose(actual, [expected, -expected], rtol=1e-13)
