"""Results where digits are easily lost; expected values are mpmath's, or follow from identities."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback import kernels

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("z", "expected"),
    [
        (1e-20 + 1e-20j, 1e-20 + 1e-20j),
        (1e-3 + 1e-3j, 9.9999933433253336e-04 + 9.9900066666586802e-04j),
        (-0.999 + 0.01j, -4.6001950205615073 + 1.4711276743037345j),
        (1e300 + 1e300j, 691.12210148849368 + 0.78539816339744831j),
        (0.05 - 0.07j, 5.1007462703364879e-02 - 6.6568163775823810e-02j),
    ],
)
def test_complex_log1p_keeps_its_digits(z: complex, expected: complex) -> None:
    actual = kernels.log1p(np.array([z]))[0]
    assert abs(actual - expected) <= 4e-16 * abs(expected)


def test_complex_log1p_keeps_the_signs_of_zeros() -> None:
    actual = kernels.log1p(np.array([complex(-0.0, 0.0), complex(0.0, -0.0)]))
    assert (np.signbit(actual.real).tolist(), np.signbit(actual.imag).tolist()) == ([True, False], [False, True])


@pytest.mark.parametrize("x", [-85.0, -95.0, -100.0])
def test_slopes_of_softplus_and_logsigmoid_keep_subnormal_numbers(x: float) -> None:
    for function, argument in ((pullback.nn.functional.softplus, x), (pullback.nn.functional.logsigmoid, -x)):
        input = pullback.tensor([argument], requires_grad=True)
        function(input).sum().backward()
        assert input.grad.item() == pytest.approx(float(np.exp(np.float64(x))), rel=1e-6, abs=1.5e-45)


def test_the_slope_of_logit_at_zeros_of_both_signs_is_infinite() -> None:
    input = pullback.tensor([0.0, -0.0], requires_grad=True)
    pullback.logit(input).sum().backward()
    assert input.grad.tolist() == [np.inf, np.inf]


def test_sinc_of_subnormal_numbers_is_one() -> None:
    assert pullback.sinc(pullback.tensor([1e-45, -1e-40, 1e-38])).tolist() == [1.0, 1.0, 1.0]


def test_lgamma_is_zero_at_one_and_two() -> None:
    assert pullback.lgamma(pullback.tensor([1.0, 2.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("shape", [(100_000, 3), (3, 100_000)])
def test_long_sums_of_exponentials_are_accurate_along_every_dimension(shape: tuple[int, int]) -> None:
    input = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    dim = int(np.argmax(shape))
    expected = np.log(np.exp(input.astype(np.float64)).sum(dim))
    np.testing.assert_allclose(kernels.logsumexp(input, (dim,)), expected, rtol=2.5e-7)
    np.testing.assert_allclose(kernels.softmax(input, dim).sum(dim, dtype=np.float64), 1, rtol=1e-6)


def test_the_gradient_of_a_long_logcumsumexp_is_accurate() -> None:
    values = np.random.default_rng(0).standard_normal(30_000)
    input = pullback.tensor(values.astype(np.float32), requires_grad=True)
    pullback.logcumsumexp(input, 0).sum().backward()
    wide = values.astype(np.float32).astype(np.float64)
    expected = np.exp(wide) * np.cumsum(1 / np.cumsum(np.exp(wide))[::-1])[::-1]
    np.testing.assert_allclose(input.grad.numpy(), expected, rtol=3e-6)


def test_pivots_of_very_different_sizes_do_not_overflow() -> None:
    matrix = np.diag(np.array([1e30, 1e30, 1e-30, 1e-30, 2], np.float32))
    assert kernels.linalg_det(matrix) == pytest.approx(2)


def test_the_exponential_of_a_multiple_of_a_projection_is_accurate() -> None:
    projection = np.full((8, 8), 1 / 8)
    expected = np.eye(8) + projection * np.expm1(20.0)
    np.testing.assert_allclose(kernels.linalg_matrix_exp(20 * projection), expected, rtol=1e-13)


@pytest.mark.parametrize("extreme", [1e30, 1e-22])
def test_the_gradient_of_a_product_of_many_numbers_that_single_precision_cannot_hold(extreme: float) -> None:
    x = np.ones(5000, np.float32)
    x[[7, 4000]] = extreme

    others = kernels.product_of_others(x, 0)

    np.testing.assert_allclose(others[[7, 4000]], np.float32(extreme), rtol=1e-6)
