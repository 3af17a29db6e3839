"""Dimensions as users give them, counted from the front or from the end."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from pullback.errors import refused_call, wrong_type


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front, or raise PyTorch's IndexError."""
    limit = ndim or 1
    if type(dim) is not int:
        dim = _index_of(dim)
    if -limit <= dim < limit:
        return dim + limit if dim < 0 else dim
    return _raise_dim(dim, ndim)


def dim_of(function: str, dim: Any, ndim: int) -> int:
    """As `wrap_dim`; a function of the one argument is named where that is not a number."""
    if type(dim) is not int and not hasattr(dim, "__index__"):
        raise wrong_type(function, "dim", 1, "int", dim)
    return wrap_dim(dim, ndim)


def _index_of(dim: Any) -> int:
    try:
        return operator.index(dim)
    except TypeError as error:
        raise refused_call(f"argument 'dim' must be int, not {type(dim).__name__}: {error}") from None


def _raise_dim(dim: int, ndim: int) -> NoReturn:
    from pullback.errors import dim_out_of_range

    raise dim_out_of_range(dim, ndim)
