"""Rounding to decimals, and functions of signs and exponents that have overloads."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import in_place, write_out
from pullback.tensor.return_types import RETURN_TYPES
from pullback.tensor.tensor import Tensor


@declare(found="torch and method")
def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, halves to the even neighbour.

    >>> import pullback
    >>> pullback.round(pullback.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    return G.round(input, out=out) if decimals == 0 else G.round_decimals(input, decimals, out=out)


@declare(found="torch and method")
def round_(input: Tensor, *, decimals: int = 0) -> Any:
    """In-place version of round."""
    return in_place(round, input, decimals=decimals)


@declare(found="torch and method")
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """Mantissas in [0.5, 1) and exponents of 2 that make up `input`.

    A pair with the names `mantissa` and `exponent` (int32). input = mantissa * 2 ** exponent; of 0 both are 0.

    >>> import pullback
    >>> pullback.frexp(pullback.tensor([6.0, 0.25])).exponent
    tensor([ 3, -1], dtype=pullback.int32)
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    result = tuple(G.frexp(input))
    return RETURN_TYPES["frexp"](result if out is None else write_out("frexp", out, result))
