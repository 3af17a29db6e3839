"""The line search of LBFGS: a step length that satisfies the strong Wolfe conditions.

First the step grows until a minimum is bracketed; then the bracket shrinks by cubic interpolation (Nocedal and Wright,
Numerical Optimization, algorithms 3.5 and 3.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Point(NamedTuple):
    """A step length with loss, gradient, and slope along the search direction."""

    t: float
    loss: float
    grad: Any
    slope: float


Objective = Callable[[float], Point]


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes has its minimum, kept within bounds."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    discriminant = d1**2 - a.slope * b.slope
    if discriminant < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(discriminant)
    if a.t <= b.t:
        position = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        position = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(position, low), high)


def strong_wolfe(
    evaluate: Objective, start: Point, t: float, largest_change: float, *, decrease: float = 1e-4,
    curvature: float = 0.9, tolerance_change: float = 1e-9, max_iterations: int = 25,
) -> tuple[Point, int]:  # fmt: skip
    """A point that is low and flat enough, and how often the objective was evaluated.

    `start` is the point with t = 0, `largest_change` the greatest element of the direction.
    """

    def is_too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.t * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    previous, current = start, evaluate(t)
    evaluations, iteration = 1, 0
    bracket: list[Point] = []
    while iteration < max_iterations:
        if is_too_high(current) or (iteration > 1 and current.loss >= previous.loss):
            bracket = [previous, current]
            break
        if is_flat(current):
            return current, evaluations
        if current.slope >= 0:
            bracket = [previous, current]
            break
        bounds = (current.t + 0.01 * (current.t - previous.t), current.t * 10)
        t = cubic_minimum(previous, current, bounds)
        previous, current = current, evaluate(t)
        evaluations += 1
        iteration += 1
    if not bracket:
        bracket = [start, current]
    low, high = sorted(bracket, key=lambda point: point.loss)
    stalled = False
    while iteration < max_iterations and abs(high.t - low.t) * largest_change >= tolerance_change:
        t, stalled = _inner_step(low, high, stalled)
        current = evaluate(t)
        evaluations += 1
        iteration += 1
        if is_too_high(current) or current.loss >= low.loss:
            high = current
            low, high = (low, high) if low.loss <= high.loss else (high, low)
            continue
        if is_flat(current):
            return current, evaluations
        if current.slope * (high.t - low.t) >= 0:
            high = low
        low = current
    return low, evaluations


def _inner_step(low: Point, high: Point, stalled: bool) -> tuple[float, bool]:
    """The next step within the bracket, moved inwards where it comes close to an end for the second time."""
    first, last = (low, high) if low.t <= high.t else (high, low)
    t = cubic_minimum(first, last)
    margin = 0.1 * (last.t - first.t)
    if min(last.t - t, t - first.t) >= margin:
        return t, False
    if stalled or t >= last.t or t <= first.t:
        return (last.t - margin if abs(t - last.t) < abs(t - first.t) else first.t + margin), False
    return t, True
