"""Bitwise functions with a number first, as operators and PyTorch's overloads need."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.tensor.arguments import number_beside
from pullback.tensor.tensor import Tensor

reflected_and = declare(found="")(G.bitwise_and)
reflected_or = declare(found="")(G.bitwise_or)
reflected_xor = declare(found="")(G.bitwise_xor)


@declare(found="torch and method")
def bitwise_and(input: Any, other: Any, *, out: Any = None) -> Any:
    """And of the bits.

    Of integers or bools, broadcast together; one of the two may be a number.

    >>> import pullback
    >>> pullback.bitwise_and(pullback.tensor([6, 5]), 3)
    tensor([2, 1])
    """
    return G.bitwise_and(number_beside(input, other), other, out=out)


@declare(found="torch and method")
def bitwise_or(input: Any, other: Any, *, out: Any = None) -> Any:
    """Or of the bits.

    Of integers or bools, broadcast together; one of the two may be a number.

    >>> import pullback
    >>> pullback.bitwise_or(pullback.tensor([6, 5]), 3)
    tensor([7, 7])
    """
    return G.bitwise_or(number_beside(input, other), other, out=out)


@declare(found="torch and method")
def bitwise_xor(input: Any, other: Any, *, out: Any = None) -> Any:
    """Exclusive or of the bits.

    Of integers or bools, broadcast together; one of the two may be a number.

    >>> import pullback
    >>> pullback.bitwise_xor(pullback.tensor([6, 5]), 3)
    tensor([5, 6])
    """
    return G.bitwise_xor(number_beside(input, other), other, out=out)


@declare(found="torch and method")
def bitwise_left_shift(input: Any, other: Any, *, out: Any = None) -> Any:
    """Shift the bits to the left.

    Of integers, broadcast together. y = input * 2 ** other, without the bits that fall off.

    >>> import pullback
    >>> pullback.bitwise_left_shift(pullback.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return G.bitwise_left_shift(number_beside(input, other), other, out=out)


@declare(found="torch and method")
def bitwise_right_shift(input: Any, other: Any, *, out: Any = None) -> Any:
    """Shift the bits to the right, keeping the sign.

    Of integers, broadcast together. y = floor(input / 2 ** other).

    >>> import pullback
    >>> pullback.bitwise_right_shift(pullback.tensor([12, -5]), 1)
    tensor([ 6, -3])
    """
    return G.bitwise_right_shift(number_beside(input, other), other, out=out)


def reflected_left_shift(input: Tensor, other: Any) -> Any:
    """Compute other << input, for a number."""
    return bitwise_left_shift(other, input)


def reflected_right_shift(input: Tensor, other: Any) -> Any:
    """Compute other >> input, for a number."""
    return bitwise_right_shift(other, input)
