"""Arguments at which special functions lose digits easily: beside zeros, at the ends of ranges, far out. Values are mpmath's."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback import kernels

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOAT64 = [
    ("erf", (1.0000000000000067,), 0.8427007929497177),
    ("erfc", (1.2379094523630914,), 0.08000305658475583),
    ("erfc", (1.5588280052739611,), 0.027488096598730544),
    ("erfc", (9.599999974993747,), 5.523947265769106e-42),
    ("erfc", (0.5000000000000014,), 0.4795001221869522),
    ("erfc", (26.544499011351494,), 2.083158070613411e-308),
    ("erfcx", (1e-07,), 0.9999998871620933),
    ("erfcx", (0.3,), 0.7345993345676551),
    ("erfcx", (-0.2,), 1.2726020284831958),
    ("erfinv", (-0.7725931732933231,), -0.8535243716984535),
    ("erfinv", (0.8156404830832549,), 0.938649650327372),
    ("erfinv", (0.9999999999999996,), 5.74587239219118),
    ("ndtri", (9.66023525e-315,), -37.90755867985892),
    ("ndtri", (5e-324,), -38.467405617144344),
    ("lgamma", (-2.4780195298824705,), -0.029689709000662066),
    ("lgamma", (-3.8940148142354465,), -0.7566784775044035),
    ("lgamma", (-5.017480672863377,), -0.7701813865826047),
    ("lgamma", (-0.6434662536636537,), 1.356249746831178),
    ("lgamma", (0.7659587258326623,), 0.18627214004693987),
    ("lgamma", (1.4430932243132386,), -0.1213190520481332),
    ("lgamma", (2.132914882108695,), 0.06173913118964509),
    ("lgamma", (7.520117693721091,), 7.5735573399279135),
    ("lgamma", (8.759789922480618,), 10.093821840534412),
    ("lgamma", (16.445762475751263,), 29.127459347759505),
    ("lgamma", (-2.4570247382208,), 7.292550612674704e-16),
    ("lgamma", (1e150,), 3.4438776394910686e152),
    ("polygamma", (2, -147.50006036449403), -0.011805754756392782),
    ("polygamma", (4, -9.499774968742186), 3.4608916998928794),
    ("polygamma", (3, -10.25), 1558.543853536406),
    ("hermite_polynomial_he", (2.417558176048423, 27.0), 114198986248.32248),
    ("hermite_polynomial_h", (1.3, 29.0), -3.042144480051164e19),
    ("legendre_polynomial_p", (1e-05, 21.0), 3.700138063673291e-05),
    ("shifted_chebyshev_polynomial_u", (0.4999966320395737, 11.0), 8.083105014624673e-05),
    ("chebyshev_polynomial_t", (1e-06, 15.0), -1.499999999944e-05),
    ("chebyshev_polynomial_u", (-1e-06, 13.0), -1.3999999999551999e-05),
]
FLOAT32 = [
    ("exp", -5.858864784240723, 0.002854482297357157),
    ("exp", 4.517662048339844, 91.62114158143189),
    ("exp", 88.72030639648438, 3.394216190765023e38),
    ("log", 1.000224232673645, 0.00022420753725658406),
    ("expm1", -0.011111211962997913, -0.011049710443585336),
    ("expm1", 88.71994018554688, 3.3929734192438762e38),
    ("exp2", 127.96151733398438, 3.3132561151765817e38),
    ("erf", 0.22265563905239105, 0.24714922531803207),
    ("erf", -2.4447726900689304e-05, -2.758630571208232e-05),
    ("erfinv", 0.9999876022338867, 3.0903911244393396),
    ("erfinv", 0.25310656428337097, 0.2282104479937138),
    ("entr", 1.000224232673645, -0.00022425781191211445),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), FLOAT64)
def test_float64_is_right_to_two_units_in_the_last_place(
    name: str, arguments: tuple[float, ...], expected: float
) -> None:
    # Beside a zero a unit of x is several of the result: those of polynomials.
    units = 16 if "polynomial" in name else 4 if name == "polygamma" else 2
    actual = getattr(kernels, name)(*(np.array([a]) if isinstance(a, float) else a for a in arguments))[0]
    assert abs(actual - expected) <= units * np.spacing(abs(expected))


@pytest.mark.parametrize(("name", "argument", "expected"), FLOAT32)
def test_float32_is_right_to_a_unit_in_the_last_place(name: str, argument: float, expected: float) -> None:
    # An array of many too: it is computed in parts.
    for count in (1, 50_000):
        actual = getattr(kernels, name)(np.full(count, argument, np.float32))
        assert actual.dtype == np.float32
        assert np.max(np.abs(actual.astype(np.float64) - expected)) <= 1.05 * np.spacing(np.float32(abs(expected)))


def test_elu_and_xlogy_of_float32_are_right_to_two_units() -> None:
    elu = kernels.elu(np.array([-0.011111211962997913], np.float32))[0]
    assert float(elu) == pytest.approx(-0.011049710443585336, rel=1.2e-7)
    xlogy = kernels.xlogy(np.array([1.0], np.float32), np.array([1.000224232673645], np.float32))[0]
    assert float(xlogy) == pytest.approx(0.00022420753725658406, rel=1.2e-7)


def test_many_elements_keep_the_order_of_memory() -> None:
    values = np.asfortranarray(np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32))
    actual = kernels.exp(values)
    assert actual.strides == values.strides
    np.testing.assert_array_max_ulp(actual, np.exp(values.astype(np.float64)).astype(np.float32), 1)


def test_the_slope_of_log_ndtr_beside_zero_is_right_to_three_units() -> None:
    input = pullback.tensor([7.520270440479082e-07], dtype=pullback.float64, requires_grad=True)
    pullback.special.log_ndtr(input).sum().backward()
    assert input.grad.item() == pytest.approx(0.7978840820476414, rel=4e-16)


def test_lgamma_is_a_positive_zero_at_its_zeros_and_infinite_at_the_ends() -> None:
    actual = kernels.lgamma(np.array([1.0, 2.0, 0.0, -3.0, -40.0, 2.6e305, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(actual, [0.0, 0.0, *[np.inf] * 6, np.nan])
    assert not np.signbit(actual[:2]).any()


def test_polynomials_far_out_and_at_zeros_of_both_signs() -> None:
    laguerre = kernels.laguerre_polynomial_l(np.array([np.inf, -np.inf, 1e200, -1e200]), np.array([2.0, 2.0, 3.0, 3.0]))
    assert laguerre.tolist() == [np.inf, np.inf, -np.inf, np.inf]
    legendre = kernels.legendre_polynomial_p(np.array([-0.0, 0.0, -1.0, -np.inf]), np.array([1.0, 1.0, -1.0, np.nan]))
    assert legendre.tolist() == [0.0] * 4
    assert np.signbit(legendre).tolist() == [True, False, False, False]


def test_poles_of_polygamma_are_infinite() -> None:
    for n, infinity in ((1, np.inf), (2, -np.inf), (3, np.inf), (40, -np.inf)):
        assert kernels.polygamma(n, np.array([0.0, -0.0, -1.0, -7.0])).tolist() == [infinity] * 4


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_remainder_of_zero_has_the_sign_of_the_dividend(dtype: type) -> None:
    dividend, divisor = (
        np.array([0.0, -0.0, 4.0, -4.0, 0.0, -0.0], dtype),
        np.array([-1, 1, -2, 2, np.inf, -np.inf], dtype),
    )
    for actual in (kernels.remainder(dividend, divisor), kernels.remainder(dividend, dtype(2))):
        assert actual.dtype == dtype
        assert actual.tolist() == [0.0] * 6
        assert np.signbit(actual).tolist() == [False, True] * 3


def test_tanh_and_sigmoid_of_float32_are_right_to_a_unit_in_the_last_place() -> None:
    x = np.linspace(-4, 4, 30_000).astype(np.float32)
    wide = x.astype(np.float64)
    for actual, expected in ((kernels.tanh(x), np.tanh(wide)), (kernels.sigmoid(x), 1 / (1 + np.exp(-wide)))):
        units = np.abs(actual - expected) / np.spacing(np.abs(expected).astype(np.float32))
        assert np.max(units) <= 2
