"""Softmax and its relatives, with the dtype to compute in.

`functional_<name>` is the form in nn.functional, where `dim` may be missing, with a warning.
"""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.functions.conversion import to
from pullback.modes.user_warnings import warn_user
from pullback.tensor.arguments import the_dim
from pullback.tensor.tensor import Tensor


@declare(found="torch and method")
def softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, out: Any = None, axis: Any = None) -> Tensor:
    """Exponentials along `dim`, divided by their sum.

    The result has the shape of `input`, and sums to 1 along `dim`; `dtype` converts the input first. y_i = exp(x_i) /
    sum over j of exp(x_j), computed without overflow.

    >>> import pullback
    >>> pullback.softmax(pullback.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dim is None:
        dim = the_dim("softmax", axis)
    return G.softmax(input if dtype is None else to(input, dtype), dim, out=out)


@declare(found="torch and method")
def log_softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, out: Any = None, axis: Any = None) -> Tensor:
    """The logarithm of softmax along `dim`.

    The result has the shape of `input`; `dtype` converts the input first. y_i = x_i - ln(sum over j of exp(x_j)),
    computed without overflow.
    """
    if dim is None:
        dim = the_dim("log_softmax", axis)
    return G.log_softmax(input if dtype is None else to(input, dtype), dim, out=out)


def functional_softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Exponentials along `dim`, divided by their sum."""
    return softmax(input, _chosen_dim("softmax", input, dim, _stacklevel), dtype)


def functional_log_softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of softmax along `dim`.

    The result has the shape of `input`; `dtype` converts the input first. y_i = x_i - ln(sum over j of exp(x_j)),
    computed without overflow.
    """
    return log_softmax(input, _chosen_dim("log_softmax", input, dim, _stacklevel), dtype)


@declare(functional=True)
def softmin(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Softmax of the negative.

    The shape stays, and `dim` sums to 1. y_i = exp(-x_i) / sum over j of exp(-x_j).

    >>> import pullback
    >>> pullback.nn.functional.softmin(pullback.tensor([0., 1.]), 0)
    tensor([0.7311, 0.2689])
    """
    return softmax(G.neg(input), _chosen_dim("softmin", input, dim, _stacklevel), dtype)


def _chosen_dim(name: str, input: Tensor, dim: Any, stacklevel: int) -> Any:
    if dim is not None:
        return dim
    warn_user(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
    )
    return 0 if input.ndim in (0, 1, 3) else 1


@declare(found="torch and method")
def logsumexp(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Tensor:
    """The logarithm of the sum of exponentials over `dim`.

    `dim` is a dimension or several; the result lacks them, or has them with size 1 (`keepdim`). y = ln(sum over i of
    exp(x_i)), computed without overflow.
    """
    if dim is None:
        dim = the_dim("logsumexp", axis)
    keepdim = keepdim if keepdims is None else keepdims
    return G.logsumexp(input, dim, keepdim, out=out)
