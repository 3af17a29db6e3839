"""Gradients of pairs of extrema."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims


@declare(fresh=True)
def extremum_grad(grad: Any, input: Any, extreme: Any, dim: Dims, keepdim: bool) -> Any:
    """The gradient of amax and amin: in equal shares to all elements that are the extreme."""
    shape = tuple(input.shape)
    dims = tuple(range(len(shape))) if not dim else tuple([d % max(len(shape), 1) for d in dim])
    if not keepdim:
        kept = tuple([1 if axis in dims else n for axis, n in enumerate(shape)])
        grad, extreme = F.reshape(grad, kept), F.reshape(extreme, kept)
    chosen = extreme == input
    return grad / F.sum(chosen, dims if shape else None, True) * chosen


@declare(fresh=True, twin="passes")
def share_evenly(grad: Any, input: Any, extreme: Any) -> Any:
    """The gradient of one element of all: in equal shares to all that equal it; that of a NaN goes to the NaNs."""
    chosen = F.where(F.isnan(extreme), F.isnan(input), input == extreme)
    zeros = F.zeros_in_shape(grad, tuple(input.shape))
    return F.masked_fill_tensor(zeros, chosen, grad / F.sum_all(chosen))


def aminmax_grad(grad_min: Any, grad_max: Any, input: Any, min: Any, max: Any, dim: int | None, keepdim: bool) -> Any:
    """The gradient of the smallest and the largest together."""
    dims = None if dim is None else (dim,)
    to_min = F.extremum_grad(grad_min, input, min, dims, keepdim)
    return to_min + F.extremum_grad(grad_max, input, max, dims, keepdim)
