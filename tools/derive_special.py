"""Derive and write the coefficients in `pullback.kernels.special_coefficients` (needs mpmath, two minutes).

Run `python -m tools.derive_special` in the repository's root.
"""

from __future__ import annotations

import pathlib

import mpmath as mp

from tools.fit_special import Function, Table, level

TARGET = pathlib.Path(__file__).parents[1] / "src/pullback/kernels/special_coefficients.py"


def erf_scaled(z: mp.mpf) -> mp.mpf:
    """erf(x) / x at z = x**2."""
    x = mp.sqrt(z)
    return mp.erf(x) / x if x else 2 / mp.sqrt(mp.pi)


def erfc_exponent(x: mp.mpf) -> mp.mpf:
    """-log(erfc(x))."""
    return -mp.log(mp.erfc(x))


def erf_weight(x: mp.mpf) -> mp.mpf:
    """Return how an error of `erfc_exponent` shows in erf(x), relatively."""
    return mp.erfc(x) / mp.erf(x)


def erfcx_mapped(t: mp.mpf) -> mp.mpf:
    """(1 + 2x) exp(x**2) erfc(x) at t = (x - 4) / (x + 4)."""
    if t > mp.mpf("0.999"):
        t = min(t, 1 - mp.mpf(10) ** -20)
        x = 4 * (1 + t) / (1 - t)
        series = mp.fsum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12))
        return (1 / x + 2) * series / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def normal_quantile_centre(z: mp.mpf) -> mp.mpf:
    """ndtri(1/2 + q) / q at z = q**2."""
    q = mp.sqrt(z)
    return mp.sqrt(2) * mp.erfinv(2 * q) / q if q else mp.sqrt(2 * mp.pi)


def normal_quantile_tail(r: mp.mpf) -> mp.mpf:
    """-ndtri(exp(-r**2)), by Halley's iteration on erfc."""
    target = 2 * mp.exp(-r * r)
    guess = -mp.log(target * mp.sqrt(mp.pi))
    y = mp.sqrt(guess - mp.log(guess) / 2) if guess > 1 else mp.mpf(1)
    for _ in range(60):
        step = (target - mp.erfc(y)) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y -= step / (1 + y * step)
        if abs(step) < mp.mpf(10) ** -45:
            break
    return mp.sqrt(2) * y


def derive_error_functions(table: Table) -> None:
    """Tables of erf and of the normal distribution."""
    table.polynomial("ERF_SMALL", erf_scaled, 0, 1, what="erf(x) / x at z = x**2")
    table.polynomial("ERF_LARGE", erfc_exponent, 1, "5.95", 2, what="-log(erfc(z))", weight=erf_weight, tolerance=4e-17)
    table.polynomial(
        "ERF_FLOAT32",
        lambda x: erfc_exponent(x) / x if x else 2 / mp.sqrt(mp.pi),
        0,
        "3.95",
        what="-log(erfc(z)) / z",
        weight=lambda x: x * erf_weight(x) if x else mp.mpf(1),
        tolerance=5e-9,
    )
    table.polynomial("ERFCX", erfcx_mapped, -1, 1, what="(1 + 2x) erfcx(x) at z = (x - 4) / (x + 4)")
    table.rational(
        "NDTRI_CENTRE", normal_quantile_centre, 0, "0.180625", "0.180625", what="ndtri(q + 1/2) / q at z = q**2"
    )
    table.rational("NDTRI_TAIL", normal_quantile_tail, "1.6", 5, "1.6", what="-ndtri(p) at z = sqrt(-log(p))")
    table.rational("NDTRI_FAR", normal_quantile_tail, 5, "27.5", 5, what="-ndtri(p) at z = sqrt(-log(p))")


def lgamma_reduced(x: mp.mpf) -> mp.mpf:
    """lgamma(x) / ((x - 1) (x - 2))."""
    if x in (1, 2):
        return mp.euler if x == 1 else 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def lgamma_slope(zero: int, z: mp.mpf) -> mp.mpf:
    """lgamma(zero + z) / z."""
    return mp.loggamma(zero + z) / z if abs(z) > mp.mpf(10) ** -20 else mp.digamma(zero)


def stirling_correction(w: mp.mpf) -> mp.mpf:
    """x (lgamma(x) - Stirling's formula) at w = 1 / x**2."""
    x = 1 / mp.sqrt(w)
    return x * (mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def scaled_gamma(w: mp.mpf) -> mp.mpf:
    """gamma(x) / (sqrt(2 pi / x) (x / e)**x) at w = 1 / x."""
    x = 1 / w
    return mp.exp(mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def derive_gamma(table: Table) -> None:
    """Tables of the gamma function's family."""
    root = mp.findroot(mp.digamma, mp.mpf("1.4616"))
    table.rational("LGAMMA_SMALL", lgamma_reduced, "0.5", "2.5", "0.5", what="lgamma(z) / ((z - 1) (z - 2))")
    table.polynomial("LGAMMA_NEAR_ONE", lambda z: lgamma_slope(1, z), "-0.25", "0.25", what="lgamma(1 + z) / z")
    table.polynomial("LGAMMA_NEAR_TWO", lambda z: lgamma_slope(2, z), "-0.25", "0.25", what="lgamma(2 + z) / z")
    logarithms = [mp.log(1 + (j + mp.mpf("0.5")) / 16) for j in reversed(range(16))]
    heads = [mp.mpf(float(logarithm)) for logarithm in logarithms]
    table.write("LOGARITHMS_HIGH", heads, "log(1 + (j + 1/2) / 16), j = 0, 1, ... 15, as sums of two numbers")
    table.write("LOGARITHMS_LOW", [a - b for a, b in zip(logarithms, heads, strict=True)])
    table.polynomial(
        "STIRLING", stirling_correction, "1e-9", "0.015625", what="x (lgamma(x) - Stirling) at z = 1 / x**2"
    )
    table.pair("DIGAMMA_ROOT", root, "positive root of digamma, as a sum of two numbers")
    table.rational(
        "DIGAMMA_SMALL", lambda x: mp.digamma(x) / (x - root), "0.5", 3, "0.5", what="digamma(z) / (z - root)"
    )
    table.rational("DIGAMMA_MIDDLE", mp.digamma, 3, 8, 3, what="digamma(z)")
    table.polynomial(
        "DIGAMMA_LARGE",
        digamma_correction,
        "1e-9",
        "0.015625",
        what="x**2 (log(x) - 1/(2x) - digamma(x)) at z = 1 / x**2",
    )
    table.polynomial(
        "TRIGAMMA_LARGE",
        trigamma_correction,
        "1e-9",
        "0.015625",
        what="x**3 (trigamma(x) - 1/x - 1/(2 x**2)) at z = 1 / x**2",
    )
    table.rational("SCALED_GAMMA", scaled_gamma, "1e-9", 1, what="gamma(x) / (sqrt(2 pi / x) (x / e)**x) at z = 1 / x")
    table.polynomial("RECIPROCAL_GAMMA", lambda x: mp.rgamma(1 + x), 0, 1, what="1 / gamma(1 + z)")
    table.rational("LOG1P_CUBIC", log1p_cubic, "-0.5", 1, "-0.5", what="(1/2 - (z - log1p(z)) / z**2) / z")
    wide, error = level(lambda x: mp.rgamma(1 + x), lambda x: mp.mpf(1), mp.mpf(0), mp.mpf(1), mp.mpf(0), 26)
    rounded = [mp.mpf(float(c)) for c in wide]
    table.write(
        "RECIPROCAL_GAMMA_HIGH", rounded, f"1 / gamma(1 + z) in twice the digits on [0, 1]; error {float(error):.1e}"
    )
    table.write("RECIPROCAL_GAMMA_LOW", [c - r for c, r in zip(wide, rounded, strict=True)])
    derive_temme(table)


def digamma_correction(w: mp.mpf) -> mp.mpf:
    """x**2 (log(x) - 1 / (2x) - digamma(x)) at w = 1 / x**2."""
    x = 1 / mp.sqrt(w)
    return x**2 * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


def trigamma_correction(w: mp.mpf) -> mp.mpf:
    """x**3 (trigamma(x) - 1/x - 1 / (2 x**2)) at w = 1 / x**2."""
    x = 1 / mp.sqrt(w)
    return x**3 * (mp.polygamma(1, x) - 1 / x - 1 / (2 * x**2))


def log1p_cubic(x: mp.mpf) -> mp.mpf:
    """(1/2 - (x - log1p(x)) / x**2) / x."""
    return (mp.mpf(1) / 2 - (x - mp.log1p(x)) / x**2) / x if abs(x) > 1e-12 else mp.mpf(1) / 3 - x / 4


def derive_temme(table: Table, smallest_a: int = 20, largest_eta: float = 0.36) -> None:
    """The double series of the uniform expansion of the incomplete gamma function (DLMF 8.12), cut short."""
    alpha = [mp.mpf(0), mp.mpf(1)]
    for k in range(3, 64):
        products = mp.fsum(alpha[i] * alpha[k - i] for i in range(2, k - 1))
        alpha.append(alpha[k - 2] / k - products / 2)
    stirling = [mp.mpf(0)] + [mp.bernoulli(k + 1) / (k * (k + 1)) for k in range(1, 20)]
    gamma = [mp.mpf(1)]
    for k in range(1, 20):
        gamma.append(mp.fsum(j * stirling[j] * gamma[k - j] for j in range(1, k + 1)) / k)
    first = [-mp.mpf(1) / 3] + [(n + 2) * alpha[n + 2] for n in range(1, 60)]
    row, rows = first, []
    for k in range(16):
        sizes = [abs(c) * largest_eta**n / mp.mpf(smallest_a) ** k for n, c in enumerate(row)]
        kept = max((n for n, size in enumerate(sizes) if size > 1e-17), default=-1)
        if kept < 0:
            break
        rows.append(row[: kept + 1])
        row = [(-1) ** (k + 1) * gamma[k + 1] * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
    for k, coefficients in enumerate(rows):
        comment = f"term {k} of the uniform expansion of igammac, in powers of eta, |eta| < {largest_eta}"
        table.write(f"TEMME_{k}", coefficients, comment)
    names = ", ".join(f"TEMME_{k}" for k in reversed(range(len(rows))))
    table.text += f"\nTEMME: Final = ({names})\n"
    print("TEMME", [len(coefficients) for coefficients in rows])


def hankel_amplitude(order: int, quadrature: bool) -> Function:
    """P (or x Q) of J = sqrt(2 / (pi x)) (P cos(chi) - Q sin(chi)) at w = 1 / x**2."""

    def amplitude(w: mp.mpf) -> mp.mpf:
        x = 1 / mp.sqrt(w)
        chi, scale = x - (2 * order + 1) * mp.pi / 4, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        if quadrature:
            return x * scale * (y * mp.cos(chi) - j * mp.sin(chi))
        return scale * (j * mp.cos(chi) + y * mp.sin(chi))

    return amplitude


def derive_bessel(table: Table, order: int) -> None:
    """Tables of J and Y of one order."""
    j_zeros = [mp.besseljzero(order, k) for k in (1, 2)]
    y_zeros = [mp.besselyzero(order, k) for k in (1, 2, 3)]
    for letter, zeros in (("J", j_zeros), ("Y", y_zeros)):
        for k, zero in enumerate(zeros, 1):
            table.pair(f"{letter}{order}_ZERO_{k}", zero, f"zero {k} of {letter}{order}, as a sum of two numbers")

    def j_reduced(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(max(z, mp.mpf(10) ** -40))
        return mp.besselj(order, x) / x**order / ((z - j_zeros[0] ** 2) * (z - j_zeros[1] ** 2))

    def y_small(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        regular = mp.bessely(order, x) - 2 / mp.pi * mp.log(x / y_zeros[0]) * mp.besselj(order, x)
        return x**order * regular / (z - y_zeros[0] ** 2)

    def y_middle(x: mp.mpf) -> mp.mpf:
        return mp.bessely(order, x) / ((x - y_zeros[1]) * (x - y_zeros[2]))

    if order == 0:
        what = "(1 - J0(x)) / x**2 at z = x**2"
        table.polynomial("J0_TINY", lambda z: (1 - mp.besselj(0, mp.sqrt(z))) / z, "1e-15", 1, what=what)
    power = "" if order == 0 else " / x"
    table.polynomial(f"J{order}_SMALL", j_reduced, 0, 49, 49, what=f"J{order}(x){power} without two zeros at z = x**2")
    table.polynomial(f"Y{order}_SMALL", y_small, "1e-30", 9, 9, what=f"Y{order} without logarithm and zero at z = x**2")
    table.rational(f"Y{order}_MIDDLE", y_middle, 3, 7, 3, what=f"Y{order}(z) without two zeros")
    edge = mp.mpf(1) / 49
    table.polynomial(f"P{order}", hankel_amplitude(order, False), "1e-6", edge, what="P at z = 1 / x**2, x > 7")
    table.polynomial(f"Q{order}", hankel_amplitude(order, True), "1e-6", edge, what="x Q at z = 1 / x**2, x > 7")


def derive_modified_bessel(table: Table, order: int) -> None:
    """Tables of I and K of one order."""

    def small(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(max(z, mp.mpf(10) ** -40))
        return mp.besseli(order, x) / x**order

    def large(w: mp.mpf) -> mp.mpf:
        return mp.sqrt(1 / w) * mp.exp(-1 / w) * mp.besseli(order, 1 / w)

    def k_large(w: mp.mpf) -> mp.mpf:
        return mp.sqrt(1 / w) * mp.exp(1 / w) * mp.besselk(order, 1 / w)

    def k_regular(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        if order == 0:
            return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)
        return (mp.besselk(1, x) - 1 / x - mp.log(x / 2) * mp.besseli(1, x)) / x

    def k_weight(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return x**order / mp.besselk(order, x)

    power = "" if order == 0 else " / x"
    table.polynomial(f"I{order}_SMALL", small, 0, 64, what=f"I{order}(x){power} at z = x**2")
    table.polynomial(
        f"I{order}_LARGE", large, "1e-5", "0.125", "0.0625", what=f"sqrt(x) exp(-x) I{order}(x) at z = 1 / x"
    )
    regular = f"K{order} without logarithm and pole{power} at z = x**2"
    table.polynomial(f"K{order}_SMALL", k_regular, "1e-20", 1, what=regular, weight=k_weight)
    table.rational(f"K{order}_LARGE", k_large, "1e-5", 1, what=f"sqrt(x) exp(x) K{order}(x) at z = 1 / x")


def derive_airy(table: Table) -> None:
    """Tables of Airy's function."""
    zeros = [mp.airyaizero(1), mp.airyaizero(2)]
    for k, zero in enumerate(zeros, 1):
        table.pair(f"AI_ZERO_{k}", zero, f"zero {k} of Ai, as a sum of two numbers")

    def argument(zeta: mp.mpf) -> mp.mpf:
        return (3 * zeta / 2) ** (mp.mpf(2) / 3)

    def decay(w: mp.mpf) -> mp.mpf:
        x = argument(1 / w)
        return 2 * mp.sqrt(mp.pi) * mp.root(x, 4) * mp.exp(1 / w) * mp.airyai(x)

    def amplitude(w: mp.mpf, quadrature: bool) -> mp.mpf:
        zeta = 1 / mp.sqrt(w)
        x = argument(zeta)
        scale, c, s = mp.sqrt(mp.pi) * mp.root(x, 4), mp.cos(zeta - mp.pi / 4), mp.sin(zeta - mp.pi / 4)
        a, b = mp.airyai(-x), mp.airybi(-x)
        return zeta * scale * (a * s + b * c) if quadrature else scale * (a * c - b * s)

    reduced = "Ai(z) without two zeros"
    table.polynomial("AI_NEGATIVE", lambda x: mp.airyai(x) / ((x - zeros[0]) * (x - zeros[1])), -3, 0, what=reduced)
    table.polynomial("AI_POSITIVE", mp.airyai, 0, 2, 2, what="Ai(z)")
    table.rational("AI_DECAY", decay, "1e-4", "0.5304", what="2 sqrt(pi) x**(1/4) exp(zeta) Ai(x) at z = 1 / zeta")
    edge = mp.mpf(1) / 12
    table.rational(
        "AI_P", lambda w: amplitude(w, False), "1e-5", edge, what="cosine amplitude of Ai(-x) at z = 1 / zeta**2"
    )
    table.rational(
        "AI_Q", lambda w: amplitude(w, True), "1e-5", edge, what="zeta times its sine amplitude at z = 1 / zeta**2"
    )


def main() -> None:
    """Derive every table and write the module."""
    table = Table()
    derive_error_functions(table)
    derive_gamma(table)
    for order in (0, 1):
        derive_bessel(table, order)
    for order in (0, 1):
        derive_modified_bessel(table, order)
    derive_airy(table)
    TARGET.write_text(table.text)


if __name__ == "__main__":
    main()
