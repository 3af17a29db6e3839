"""Record reference values of the special functions, computed by mpmath, for tests/kernels/test_special.py.

Run `python tools/record_special.py`; it writes tests/kernels/special_references.json, where each function has rows of
arguments followed by the value rounded to the nearest double.
"""

from __future__ import annotations

import json
import pathlib
import random
from collections.abc import Callable, Iterable

import mpmath as mp

mp.mp.dps = 60
TARGET = pathlib.Path(__file__).parents[1] / "tests/kernels/special_references.json"
CHOICE = random.Random(20)


def normal_distribution(x: mp.mpf) -> mp.mpf:
    """Return the normal distribution function."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def normal_quantile(p: mp.mpf) -> mp.mpf:
    """Invert the normal distribution function by bisection of its logarithm's tail."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    return mp.findroot(
        lambda x: mp.log(normal_distribution(x)) - mp.log(p), (-mp.sqrt(-2 * mp.log(p)), 0.0), solver="anderson"
    )


def recurrence(first: Callable[[mp.mpf], mp.mpf], step: Callable[..., mp.mpf]) -> Callable[[mp.mpf, mp.mpf], mp.mpf]:
    """Return the polynomial (x, n) that a recurrence defines."""

    def value(x: mp.mpf, n: mp.mpf) -> mp.mpf:
        previous, current = mp.mpf(1), first(x)
        for k in range(1, int(n)):
            previous, current = current, step(k, x, current, previous)
        return current if n > 0 else previous

    return value


def chebyshev(first: Callable[[mp.mpf], mp.mpf], shifted: bool) -> Callable[[mp.mpf, mp.mpf], mp.mpf]:
    """Return one kind of Chebyshev polynomial."""
    plain = recurrence(first, lambda _, x, current, previous: 2 * x * current - previous)
    return (lambda x, n: plain(2 * x - 1, n)) if shifted else plain


def spread(low: float, high: float, count: int = 10) -> list[float]:
    """Return numbers drawn evenly from an interval."""
    return [CHOICE.uniform(low, high) for _ in range(count)]


def magnitudes(low: float, high: float, count: int = 6) -> list[float]:
    """Return numbers whose exponents of ten are drawn evenly."""
    return [10 ** CHOICE.uniform(low, high) for _ in range(count)]


def mirrored(numbers: Iterable[float]) -> list[float]:
    """Return the numbers with both signs."""
    return [signed for number in numbers for signed in (number, -number)]


REAL = mirrored(spread(0, 1, 4) + spread(1, 6, 6) + magnitudes(-300, -1, 3))
POSITIVE = spread(0, 1, 5) + spread(1, 3, 5) + spread(3, 30, 8) + magnitudes(-200, 200, 6)
NEGATIVE = [-x for x in spread(0, 12, 10)]
PROBABILITIES = spread(0, 1, 12) + magnitudes(-300, -2, 5) + [1 - p for p in magnitudes(-15, -2, 4)]
PAIRS = [(a, a * f) for a, f in zip(magnitudes(-3, 3, 30), magnitudes(-0.4, 0.4, 30), strict=True)]
DEGREES = [(x, float(n)) for x in (*spread(-1, 1, 4), *spread(-3, 3, 3)) for n in (0, 1, 2, 5, 12)]
AIRY = spread(-3, 2, 12) + spread(2, 100, 8) + spread(-50, -3, 8) + [-x for x in magnitudes(2, 5, 3)]
ORDERS = [(float(n), x) for n in (1, 2, 3, 6) for x in spread(0.1, 20, 5)]
LARGE = mirrored(spread(0, 7, 6) + spread(7, 50, 6) + magnitudes(2, 12, 4) + magnitudes(-10, -1, 2))

UNARY: dict[str, tuple[Callable[[mp.mpf], mp.mpf], list[float]]] = {
    "erf": (mp.erf, REAL),
    "erfc": (mp.erfc, [*REAL, *spread(6, 26, 6)]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [*REAL, *spread(6, 26, 6)]),
    "erfinv": (mp.erfinv, mirrored(spread(0, 1, 8) + [1 - p for p in magnitudes(-15, -1, 5)])),
    "ndtr": (normal_distribution, [*REAL, *mirrored(spread(6, 37, 5))]),
    "log_ndtr": (lambda x: mp.log1p(-normal_distribution(-x)), [*REAL, *mirrored(spread(6, 11, 5))]),
    "ndtri": (normal_quantile, PROBABILITIES),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [*REAL, *mirrored(spread(20, 700, 4))]),
    "logit": (lambda p: mp.log(p / (1 - p)), PROBABILITIES),
    "sinc": (lambda x: mp.sinpi(x) / (mp.pi * x), REAL),
    "entr": (lambda x: -x * mp.log(x), POSITIVE),
    "lgamma": (lambda x: mp.re(mp.loggamma(x)), [*POSITIVE, *NEGATIVE, -2.457024738220801, -3.143580888349980]),
    "digamma": (mp.digamma, [*POSITIVE, *NEGATIVE]),
    "i0": (lambda x: mp.besseli(0, x), [*REAL, *mirrored(spread(7, 713, 5))]),
    "i1": (lambda x: mp.besseli(1, x), [*REAL, *mirrored(spread(7, 713, 5))]),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [*REAL, *mirrored(spread(7, 713, 5))]),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [*REAL, *mirrored(spread(7, 713, 5))]),
    "bessel_j0": (lambda x: mp.besselj(0, x), LARGE),
    "bessel_j1": (lambda x: mp.besselj(1, x), LARGE),
    "bessel_y0": (lambda x: mp.bessely(0, x), [abs(x) for x in LARGE]),
    "bessel_y1": (lambda x: mp.bessely(1, x), [abs(x) for x in LARGE]),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), spread(0, 3) + spread(3, 600, 5) + magnitudes(-300, -1)),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), spread(0, 3) + spread(3, 600, 5) + magnitudes(-300, -1)),
    "scaled_modified_bessel_k0": (lambda x: mp.exp(x) * mp.besselk(0, x), spread(0, 3) + spread(3, 600, 5)),
    "scaled_modified_bessel_k1": (lambda x: mp.exp(x) * mp.besselk(1, x), spread(0, 3) + spread(3, 600, 5)),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, LARGE),
    "airy_ai": (mp.airyai, AIRY),
}  # fmt: skip

BINARY: dict[str, tuple[Callable[[mp.mpf, mp.mpf], mp.mpf], list[tuple[float, float]]]] = {
    "zeta": (mp.zeta, [(1 + s, q) for s, q in zip(magnitudes(-2, 1.5, 20), magnitudes(-3, 3, 20), strict=True)]),
    "igamma": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), PAIRS),
    "igammac": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), PAIRS),
    "xlogy": (lambda x, y: x * mp.log(y), PAIRS),
    "xlog1py": (lambda x, y: x * mp.log1p(y), PAIRS),
    "polygamma": (lambda n, x: mp.polygamma(int(n), x), ORDERS),
    "hermite_polynomial_h": (recurrence(lambda x: 2 * x, lambda k, x, c, p: 2 * x * c - 2 * k * p), DEGREES),
    "hermite_polynomial_he": (recurrence(lambda x: x, lambda k, x, c, p: x * c - k * p), DEGREES),
    "laguerre_polynomial_l": (
        recurrence(lambda x: 1 - x, lambda k, x, c, p: ((2 * k + 1 - x) * c - k * p) / (k + 1)), DEGREES
    ),
    "legendre_polynomial_p": (
        recurrence(lambda x: x, lambda k, x, c, p: ((2 * k + 1) * x * c - k * p) / (k + 1)), DEGREES
    ),
}  # fmt: skip
KINDS: dict[str, Callable[[mp.mpf], mp.mpf]] = {
    "t": lambda x: x,
    "u": lambda x: 2 * x,
    "v": lambda x: 2 * x - 1,
    "w": lambda x: 2 * x + 1,
}
for letter, start in KINDS.items():
    BINARY[f"chebyshev_polynomial_{letter}"] = (chebyshev(start, False), DEGREES)
    BINARY[f"shifted_chebyshev_polynomial_{letter}"] = (chebyshev(start, True), DEGREES)


def main() -> None:
    """Compute and write every value."""
    rows = {name: [[x, float(f(mp.mpf(x)))] for x in points] for name, (f, points) in UNARY.items()}
    rows |= {name: [[x, y, float(f(mp.mpf(x), mp.mpf(y)))] for x, y in points] for name, (f, points) in BINARY.items()}
    functions = (
        f" {json.dumps(name)}: [\n  {(',' + chr(10) + '  ').join(map(json.dumps, values))}\n ]"
        for name, values in rows.items()
    )
    TARGET.write_text("{\n" + ",\n".join(functions) + "\n}\n")


if __name__ == "__main__":
    main()
