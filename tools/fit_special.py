"""Fit polynomials and rational functions in 50-digit arithmetic, and write them as tables of a Python module.

Rational functions interpolate at Chebyshev nodes, which is within a small factor of the best; polynomials are levelled
by Remez exchange. Needs mpmath.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[mp.mpf], mp.mpf]

HEADER = '''"""Coefficients of the approximations that the special functions evaluate, highest power first.

Written by tools/derive_special.py, never edited by hand. Each comment says what is approximated, where, and how well.
"""

from __future__ import annotations

from typing import Final

# fmt: off
'''


def evaluate(coefficients: list[mp.mpf], z: mp.mpf) -> mp.mpf:
    """Evaluate a polynomial given lowest power first."""
    result = mp.mpf(0)
    for coefficient in reversed(coefficients):
        result = result * z + coefficient
    return result


def chebyshev_points(low: mp.mpf, high: mp.mpf, count: int, *, extremes: bool = False) -> list[mp.mpf]:
    """Return the roots (or the extremes) of a Chebyshev polynomial on [low, high], ascending."""
    angles = [mp.pi * k / (count - 1) if extremes else mp.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles]


def interpolate(f: Function, low: mp.mpf, high: mp.mpf, centre: mp.mpf, m: int, n: int) -> tuple[list[mp.mpf], ...]:
    """Fit P/Q of degrees m and n, Q(centre) = 1, in powers of (z - centre) at Chebyshev nodes."""
    size = m + n + 1
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, z in enumerate(chebyshev_points(low, high, size)):
        value = f(z)
        for power in range(m + 1):
            matrix[row, power] = (z - centre) ** power
        for power in range(1, n + 1):
            matrix[row, m + power] = -value * (z - centre) ** power
        right[row] = value
    solution = mp.lu_solve(matrix, right)
    return [solution[j] for j in range(m + 1)], [mp.mpf(1)] + [solution[m + j] for j in range(1, n + 1)]


def level(
    f: Function, weight: Function, low: mp.mpf, high: mp.mpf, centre: mp.mpf, degree: int
) -> tuple[list[mp.mpf], mp.mpf]:
    """Return the polynomial of least max |weight * error| (Remez exchange on a Chebyshev grid), and that error."""
    size = degree + 2
    grid = chebyshev_points(low, high, 12 * size + 1, extremes=True)
    values, weights = [f(z) for z in grid], [weight(z) for z in grid]
    reference = [12 * size * k // (size - 1) for k in range(size)]
    best: tuple[list[mp.mpf], mp.mpf] = ([], mp.inf)
    for _ in range(12):
        matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
        for row, point in enumerate(reference):
            for power in range(degree + 1):
                matrix[row, power] = (grid[point] - centre) ** power
            matrix[row, size - 1] = (-1) ** row / weights[point]
            right[row] = values[point]
        solution = mp.lu_solve(matrix, right)
        polynomial = [solution[j] for j in range(degree + 1)]
        errors = [w * (evaluate(polynomial, z - centre) - v) for z, v, w in zip(grid, values, weights, strict=True)]
        worst = max(abs(error) for error in errors)
        if worst < best[1]:
            best = polynomial, worst
        reference = exchange(errors, size)
        if len(reference) < size or worst < abs(solution[size - 1]) * mp.mpf("1.02"):
            break
    return best


def exchange(errors: list[mp.mpf], size: int) -> list[int]:
    """Return the positions of `size` alternating extremes of the error."""
    found: list[int] = []
    for position, error in enumerate(errors):
        if found and (error > 0) == (errors[found[-1]] > 0):
            if abs(error) > abs(errors[found[-1]]):
                found[-1] = position
        else:
            found.append(position)
    while len(found) > size:
        del found[0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1]
    return found


class Table:
    """The text of the tables, and the search for the cheapest fit."""

    def __init__(self) -> None:
        self.text = HEADER

    def write(self, name: str, coefficients: list[mp.mpf], comment: str = "") -> None:
        """Append one tuple, highest power first."""
        numbers = ", ".join(repr(float(c)) for c in reversed(coefficients))
        body = textwrap.fill(numbers + ",", 116, initial_indent="    ", subsequent_indent="    ")
        self.text += (f"\n# {comment}\n" if comment else "") + f"{name}: Final = (\n{body}\n)\n"

    def pair(self, name: str, value: mp.mpf, comment: str) -> None:
        """Append a constant as a rounded number and the rest."""
        head = float(value)
        self.text += f"\n# {comment}\n{name}: Final = ({head!r}, {float(value - head)!r})\n"

    def polynomial(
        self,
        name: str,
        f: Function,
        low: object,
        high: object,
        centre: object = 0,
        *,
        what: str,
        weight: Function | None = None,
        tolerance: float = 2e-17,
        degrees: range = range(4, 40),
    ) -> None:
        """Fit the polynomial of lowest degree that reaches the tolerance (relative unless weighted)."""
        a, b, c = mp.mpf(low), mp.mpf(high), mp.mpf(centre)
        for degree in degrees:
            fitted, error = level(f, weight or (lambda z: 1 / abs(f(z))), a, b, c, degree)
            if error < tolerance:
                break
        self.write(name, fitted, describe(what, a, b, c, error))
        print(name, degree, float(error), "condition", condition(fitted, a - c, b - c))

    def rational(
        self,
        name: str,
        f: Function,
        low: object,
        high: object,
        centre: object = 0,
        *,
        what: str,
        tolerance: float = 2e-17,
        spread: int = 4,
        limit: float = 4.0,
    ) -> None:
        """Fit the well-conditioned rational function of fewest coefficients that reaches the tolerance."""
        a, b, c = mp.mpf(low), mp.mpf(high), mp.mpf(centre)
        samples = [(z, f(z)) for z in chebyshev_points(a, b, 80, extremes=True)]
        for total in range(9, 24):
            candidates = []
            for n in range(max(0, total // 2 - spread), min(total, total // 2 + spread + 1)):
                try:
                    p, q = interpolate(f, a, b, c, total - n, n)
                except ZeroDivisionError:
                    continue
                if any(evaluate(q, z - c) <= 0 for z, _ in samples):
                    continue
                error = max(abs(evaluate(p, z - c) / evaluate(q, z - c) / v - 1) for z, v in samples)
                ill = condition(p, a - c, b - c) + condition(q, a - c, b - c)
                if error < tolerance and ill < 2 * limit:
                    candidates.append((ill, n, p, q, error))
            if candidates:
                ill, n, p, q, error = min(candidates, key=lambda candidate: candidate[:2])
                self.write(name + "_P", p, describe(what, a, b, c, error))
                self.write(name + "_Q", q)
                print(name, (total - n, n), float(error), "condition", ill / 2)
                return
        raise SystemExit(f"{name}: no fit reached {tolerance}")


def describe(what: str, low: mp.mpf, high: mp.mpf, centre: mp.mpf, error: mp.mpf) -> str:
    """Return the comment above a table."""
    variable = f"z - {mp.nstr(centre, 6)}" if centre else "z"
    return f"{what}: in powers of {variable} on [{mp.nstr(low, 6)}, {mp.nstr(high, 6)}]; error {float(error):.1e}"


def condition(coefficients: list[mp.mpf], low: mp.mpf, high: mp.mpf) -> float:
    """Return how much Horner's rule may amplify rounding errors on [low, high]."""
    magnitudes = [abs(c) for c in coefficients]
    points = chebyshev_points(low, high, 60, extremes=True)
    return float(max(evaluate(magnitudes, abs(z)) / abs(evaluate(coefficients, z)) for z in points))
