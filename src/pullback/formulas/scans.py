"""Gradients of running products and running logarithms of sums."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare


@declare(fresh=True)
def reversed_cumsum(input: Any, dim: int) -> Any:
    """The sums of all elements from each on along `dim`: the adjoint of cumsum."""
    if 0 in input.shape or not input.ndim or input.shape[dim] == 1:
        return input
    return F.flip(F.cumsum(F.flip(input, (dim,)), dim), (dim,))


@declare(fresh=True)
def cumprod_grad(grad: Any, input: Any, dim: int) -> Any:
    """The gradient of a running product, right with any number of zeros.

    With p the product of what stands before an element x[k], the gradient is p times s[k], the sum over i >= k of
    grad[i] x[k+1] ... x[i], which obeys s[k] = grad[k] + x[k+1] s[k+1].
    """
    if input.ndim == 0 or input.shape[dim] < 2:
        return grad
    result = F.cumprod(input, dim)
    if F.can_divide_by(input, result):
        return F.reversed_cumsum(F.conj(result) * grad, dim) / F.conj(input)
    input = F.conj(input)
    before = F.cumprod(F.shift_and_fill(input, dim, 1, 1), dim)
    return before * _solve_backwards(grad, F.shift_and_fill(input, dim, -1, 0), dim)


def _solve_backwards(start: Any, factor: Any, dim: int) -> Any:
    """The s with s[k] = start[k] + factor[k] s[k+1], for all k at once: each step doubles the reach."""
    total = start
    steps = 1
    while steps < start.shape[dim]:
        total = total + factor * F.shift_and_fill(total, dim, -steps, 0)
        factor = factor * F.shift_and_fill(factor, dim, -steps, 0)
        steps *= 2
    return total


def logcumsumexp_grad(grad: Any, input: Any, result: Any, dim: int) -> Any:
    """The gradient of logcumsumexp: the sum over i >= k of grad[i] exp(input[k] - result[i]).

    Taken relative to result[k], the sum of the terms up to k + 2n is that up to k + n, and the next n of them, which are
    taken relative to result[k+n]: each step doubles the reach. Its factors exp(result[k] - result[k+n]) are at most 1,
    and no products of factors, whose errors would add up.
    """
    if input.ndim == 0:
        return grad
    input, result = F.conj(input), F.conj(result)
    total, steps = grad, 1
    while steps < grad.shape[dim]:
        later = F.shift_and_fill(result, dim, -steps, math.inf)
        same = F.logical_and(result == later, F.logical_not(F.isfinite(result)))  # inf - inf would be nan
        factor = F.exp(F.where(same, 0, result - later))
        total = total + factor * F.shift_and_fill(total, dim, -steps, 0)
        steps *= 2
    return F.exp(input - result) * total
