"""The elementwise functions whose accuracy is measured: a name in `torch`, and the same function in mpmath.

A reference takes and returns mpmath's numbers at whatever precision is set. It may raise, or leave the real line, where the
function has no value; there only PyTorch's result counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import torch
from mpmath import mp

Reference = Callable[..., Any]
INTEGERS = tuple(float(n) for n in range(-6, 7))
HALVES = (0.0, 0.5, -0.5, 1.0, -1.0)
QUARTER_TURNS = tuple(n * math.pi / 2 for n in (-3, -2, -1, 1, 2, 3, 4, 7, 1000))


@dataclass(frozen=True)
class Function:
    """A function, its reference, and the arguments near which it is hard to compute."""

    name: str
    reference: Reference
    near: tuple[float, ...] = HALVES
    options: dict[str, Any] = field(default_factory=dict)
    arity: int = 1
    analytic: bool = False
    """Whether it is a function of complex numbers too."""
    slow: bool = False
    """Whether the reference takes milliseconds: fewer arguments, and mpmath's own care for cancellation is trusted."""
    least: float = -math.inf
    """The least argument: PyTorch takes one step per whole number below zero in some."""

    @property
    def label(self) -> str:
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.options.items())])


def by_newton(start: str, function: Reference, density: Reference, least: float, most: float) -> Reference:
    """The inverse of a distribution function, from PyTorch's float64 value on."""

    def inverse(x: Any) -> Any:
        if not least < x < most:
            raise ValueError("outside the range")
        value = mp.mpf(getattr(torch.special, start)(torch.tensor(float(x), dtype=torch.float64)).item())
        for _ in range(max(2, int(math.log2(mp.prec / 40)) + 1)):
            value -= (function(value) - x) / density(value)
        return value

    return inverse


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if mp.re(x) > 0 else mp.exp(x) / (1 + mp.exp(x))


def positive(reference: Reference, zero: float) -> Reference:
    """A function that has no value below zero: NaN, as against another branch."""

    def restricted(x: Any) -> Any:
        if x < 0:
            raise ValueError("below zero")
        return reference(x) if x else mp.mpf(zero)

    return restricted


def log_gamma(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def whole(x: Any) -> int:
    if x != int(x) or abs(x) > 60:
        raise ValueError("not a degree")
    return int(x)


def laguerre(x: Any, n: Any) -> Any:
    return mp.laguerre(whole(n), 0, x)


def truncated_quotient(a: Any, b: Any) -> Any:
    quotient = a / b
    return mp.floor(quotient) if quotient >= 0 else mp.ceil(quotient)


def hurwitz_zeta(s: Any, q: Any) -> Any:
    """Terms one by one, and the rest by Euler and Maclaurin's formula once its terms decrease: mpmath's takes minutes."""
    if s <= 1 or q <= 0:
        raise ValueError("PyTorch's zeta is real")
    if s * abs(mp.log(q)) > 1e5:
        return mp.mpf(0) if q > 1 else mp.inf
    total, enough, corrections = mp.mpf(0), mp.ldexp(1, -mp.prec - 10), mp.prec // 4
    for _ in range(4000):
        if q > s + 2 * corrections:
            break
        term = mp.power(q, -s)
        total, q = total + term, q + 1
        if term < enough * total and q < s * 100:
            return total
    else:
        raise ValueError("too many terms")
    tail, rising = q / (s - 1) + mp.mpf(1) / 2, s / q
    for j in range(1, corrections):
        tail += mp.bernoulli(2 * j) / mp.factorial(2 * j) * rising
        rising *= (s + 2 * j - 1) * (s + 2 * j) / (q * q)
    return total + mp.power(q, -s) * tail


def polygamma(n: int, x: Any) -> Any:
    """mpmath's, and for negative numbers the reflection: mpmath's adds a term for every whole number above."""
    if x > -20:
        return mp.polygamma(n, x)
    if x == mp.floor(x):
        raise ValueError("a pole")
    cotangent, slopes = mp.cot(mp.pi * (x - mp.nint(x))), [mp.mpf(0), mp.mpf(1)]  # a polynomial in the cotangent
    for _ in range(n):
        steps = [k * c for k, c in enumerate(slopes)][1:]
        slopes = [-mp.pi * (a + b) for a, b in zip([*steps, 0, 0], [0, 0, *steps], strict=True)]
    return (-1) ** n * mp.polygamma(n, 1 - x) - mp.pi * mp.polyval(slopes[::-1], cotangent)


def incomplete_gamma(lower: bool) -> Reference:
    def regularized(a: Any, x: Any) -> Any:
        if a <= 0 or x < 0 or a > 1e6 or x > 1e6:
            raise ValueError("outside the range")
        return mp.gammainc(a, 0, x, regularized=True) if lower else mp.gammainc(a, x, mp.inf, regularized=True)

    return regularized


def x_log(logarithm: Reference) -> Reference:
    return lambda x, y: mp.mpf(0) if x == 0 else x * logarithm(y)


ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def analytic(name: str, reference: Reference, near: tuple[float, ...] = HALVES) -> Function:
    return Function(name, reference, near, analytic=True)


ELEMENTARY = (
    *(analytic(n, getattr(mp, n), (*HALVES, *QUARTER_TURNS)) for n in ("sin", "cos", "tan")),
    *(analytic(n, getattr(mp, n)) for n in ("sinh", "cosh", "tanh", "asin", "acos", "atan")),
    *(analytic(n, getattr(mp, n)) for n in ("asinh", "acosh", "atanh", "sqrt", "log1p")),
    analytic("exp", mp.exp, (0.0, 1.0, 88.72, -87.33, -103.97, 709.78, -708.39, -745.13)),
    analytic("expm1", mp.expm1, (0.0, 1.0, 88.72, 709.78, -17.0, -37.0)),
    analytic("exp2", lambda x: mp.power(2, x), (0.0, 1.0, 127.9, -126.5, -148.9, 1023.9, -1074.5)),
    analytic("log", mp.log, (1.0, 0.5, 2.0)),
    analytic("log2", lambda x: mp.log(x) / mp.log(2), (1.0, 0.5, 2.0, 8.0)),
    analytic("log10", mp.log10, (1.0, 10.0, 1000.0)),
    analytic("rsqrt", lambda x: 1 / mp.sqrt(x)),
    analytic("reciprocal", lambda x: 1 / x),
    analytic("square", lambda x: x * x),
    analytic("sigmoid", sigmoid, (0.0, 88.7, -88.7, 709.7, -709.7)),
    Function("abs", abs),
    Function("sinc", lambda x: mp.sincpi(x), INTEGERS),
    Function("logit", lambda x: mp.log(x / (1 - x)), (0.0, 0.5, 1.0)),
    Function("frac", lambda x: x - (mp.floor(x) if x >= 0 else mp.ceil(x)), INTEGERS),
    Function("deg2rad", lambda x: x * mp.pi / 180),
    Function("rad2deg", lambda x: x * 180 / mp.pi),
)

ACTIVATIONS = tuple(
    Function(f"nn.functional.{name}", reference, near, options)
    for name, reference, near, options in (
        ("elu", lambda x: x if x > 0 else mp.expm1(x), (0.0, -17.0), {}),
        ("celu", lambda x: x if x > 0 else mp.expm1(x / 1.5) * 1.5, (0.0,), {"alpha": 1.5}),
        ("selu", lambda x: SCALE * (x if x > 0 else ALPHA * mp.expm1(x)), (0.0,), {}),
        ("gelu", lambda x: x * normal(x), (0.0, -0.75, -5.0, -13.0), {}),
        (
            "gelu",
            lambda x: x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))),
            (0.0, -0.75, -4.0),
            {"approximate": "tanh"},
        ),
        ("silu", lambda x: x * sigmoid(x), (0.0, -1.2785, -88.0, -104.0), {}),
        ("mish", lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), (0.0, -1.19, -88.0, -20.0, 20.0), {}),
        ("softplus", lambda x: mp.log1p(mp.exp(x)) if x <= 20 else x, (0.0, 20.0, -88.0, -103.0), {}),
        (
            "softplus",
            lambda x: mp.log1p(mp.exp(3 * x)) / 3 if 3 * x <= 5 else x,
            (0.0, 5 / 3, -29.0),
            {"beta": 3.0, "threshold": 5.0},
        ),
        ("logsigmoid", lambda x: -mp.log1p(mp.exp(-x)), (0.0, 88.0, -88.0), {}),
        ("softsign", lambda x: x / (1 + abs(x)), (0.0,), {}),
        ("tanhshrink", lambda x: x - mp.tanh(x), (0.0,), {}),
        ("hardswish", lambda x: x * min(max(x + 3, 0), 6) / 6, (0.0, 3.0, -3.0), {}),
        ("hardsigmoid", lambda x: min(max(x + 3, 0), 6) / mp.mpf(6), (0.0, 3.0, -3.0), {}),
        ("leaky_relu", lambda x: x if x > 0 else x * 0.25, (0.0,), {"negative_slope": 0.25}),
        ("softshrink", lambda x: x - 0.5 if x > 0.5 else x + 0.5 if x < -0.5 else mp.mpf(0), (0.5, -0.5), {}),
    )
)

NORMAL = (
    Function("erf", mp.erf, (0.0, 0.5, 1.0, 3.9, 5.9)),
    Function("erfc", mp.erfc, (0.0, 0.5, 1.0, 9.0, 10.05, 26.5)),
    Function("special.erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (0.0, -9.38, -26.6, 25.0, 50.0)),
    Function(
        "erfinv",
        by_newton("erfinv", mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), -1, 1),
        (0.0, 0.5, 0.7, 0.9, 0.97, 1.0, -1.0),
    ),
    Function("special.ndtr", normal, (0.0, -14.0, -37.5, 5.0, 8.0)),
    Function("special.log_ndtr", lambda x: mp.log(normal(x)), (0.0, -1.0, 5.0, 8.0, -14.0)),
    Function(
        "special.ndtri",
        by_newton("ndtri", normal, lambda x: mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), 0, 1),
        (0.0, 0.5, 0.135, 0.865, 1.0),
        slow=True,
    ),
    Function("special.entr", positive(lambda x: -x * mp.log(x), 0.0), (0.0, 1.0, 0.5)),
)

GAMMA = (
    Function("lgamma", log_gamma, (*INTEGERS, 1.5, -2.457024738220800, -3.143580888349980)),
    Function("digamma", mp.digamma, (*INTEGERS, 1.4616321449683623, -0.504083008264455), slow=True),
    *(Function("polygamma", polygamma, INTEGERS, {"n": n}, slow=True, least=-999) for n in (1, 2, 4)),
    *(Function("mvlgamma", lambda x, p=p: _multivariate(x, p), (p / 2 + 0.5, 2.0, 3.0), {"p": p}) for p in (1, 3)),
)


def _multivariate(x: Any, p: int) -> Any:
    if x <= mp.mpf(p - 1) / 2:
        raise ValueError("outside the range")
    return p * (p - 1) * mp.log(mp.pi) / 4 + sum(mp.loggamma(x - mp.mpf(j) / 2) for j in range(p))


def _bessel(name: str, reference: Reference, near: tuple[float, ...] = (0.0, 2.0, 5.0, 8.0)) -> Function:
    return Function(f"special.{name}", reference, near, slow=True)


BESSEL = (
    _bessel(
        "bessel_j0", lambda x: mp.besselj(0, x), (0.0, 2.404825557695773, 5.0, 5.520078110286311, 14.930917708487787)
    ),
    _bessel("bessel_j1", lambda x: mp.besselj(1, x), (0.0, 3.8317059702075125, 5.0, 7.015586669815619)),
    _bessel(
        "bessel_y0", positive(lambda x: mp.bessely(0, x), -math.inf), (0.0, 0.8935769662791675, 3.957678419314858, 5.0)
    ),
    _bessel("bessel_y1", positive(lambda x: mp.bessely(1, x), -math.inf), (0.0, 2.197141326031017, 5.429681040794135)),
    _bessel("i0", lambda x: mp.besseli(0, x)),
    _bessel("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x))),
    _bessel("i1", lambda x: mp.besseli(1, x)),
    _bessel("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x))),
    _bessel("modified_bessel_i0", lambda x: mp.besseli(0, x)),
    _bessel("modified_bessel_i1", lambda x: mp.besseli(1, x)),
    _bessel("modified_bessel_k0", positive(lambda x: mp.besselk(0, x), math.inf)),
    _bessel("modified_bessel_k1", positive(lambda x: mp.besselk(1, x), math.inf)),
    _bessel("scaled_modified_bessel_k0", positive(lambda x: mp.besselk(0, x) * mp.exp(x), math.inf)),
    _bessel("scaled_modified_bessel_k1", positive(lambda x: mp.besselk(1, x) * mp.exp(x), math.inf)),
    _bessel("airy_ai", mp.airyai, (0.0, -2.338107410459767, -4.087949444130970, 2.09, -2.09, 8.2)),
    Function("special.spherical_bessel_j0", lambda x: mp.sinc(x), (0.0, 0.5, math.pi, 2 * math.pi)),
)


def _pair(name: str, reference: Reference, near: tuple[float, ...] = HALVES, **options: Any) -> Function:
    return Function(name, reference, near, arity=2, **options)


POLYNOMIALS = tuple(
    _pair(f"special.{name}", reference, (0.0, 1.0, -1.0, 0.5))
    for name, reference in (
        ("chebyshev_polynomial_t", lambda x, n: mp.chebyt(whole(n), x)),
        ("chebyshev_polynomial_u", lambda x, n: mp.chebyu(whole(n), x)),
        ("hermite_polynomial_h", lambda x, n: mp.hermite(whole(n), x)),
        ("hermite_polynomial_he", lambda x, n: mp.hermite(whole(n), x / mp.sqrt(2)) / mp.mpf(2) ** (n / 2)),
        ("laguerre_polynomial_l", laguerre),
        ("legendre_polynomial_p", lambda x, n: mp.legendre(whole(n), x)),
        ("shifted_chebyshev_polynomial_t", lambda x, n: mp.chebyt(whole(n), 2 * x - 1)),
        ("shifted_chebyshev_polynomial_u", lambda x, n: mp.chebyu(whole(n), 2 * x - 1)),
    )
)

PAIRS = (
    _pair("add", lambda a, b: a + b, analytic=True),
    _pair("sub", lambda a, b: a - b, analytic=True),
    _pair("mul", lambda a, b: a * b, analytic=True),
    _pair("div", lambda a, b: a / b, analytic=True),
    _pair("pow", lambda a, b: mp.power(a, b), analytic=True),
    _pair("float_power", lambda a, b: mp.power(a, b)),
    _pair("atan2", lambda a, b: mp.atan2(a, b)),
    _pair("hypot", lambda a, b: mp.hypot(a, b)),
    _pair("fmod", lambda a, b: a - truncated_quotient(a, b) * b),
    _pair("remainder", lambda a, b: a - mp.floor(a / b) * b),
    _pair("floor_divide", lambda a, b: mp.floor(a / b)),
    _pair("logaddexp", lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b)))),
    _pair("logaddexp2", lambda a, b: max(a, b) + mp.log1p(mp.power(2, -abs(a - b))) / mp.log(2)),
    _pair("xlogy", x_log(mp.log)),
    _pair("special.xlog1py", x_log(mp.log1p)),
    _pair("special.zeta", hurwitz_zeta, slow=True, least=-1e4),
    _pair("igamma", incomplete_gamma(True), slow=True),
    _pair("igammac", incomplete_gamma(False), slow=True),
)

FUNCTIONS = (*ELEMENTARY, *ACTIVATIONS, *NORMAL, *GAMMA, *BESSEL, *PAIRS, *POLYNOMIALS)

__all__ = ["FUNCTIONS", "Function", "mpmath"]
