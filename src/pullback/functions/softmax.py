"""Softmax and its relatives, with the dtype to compute in."""

from __future__ import annotations

import warnings
from typing import Any

import pullback.generated as G
from pullback.functions.conversion import to
from pullback.tensor.tensor import Tensor


def softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None, *, out: Any = None) -> Tensor:
    """Exponentials along `dim`, divided by their sum.

    >>> import pullback
    >>> pullback.softmax(pullback.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    dim, dtype = _arguments("softmax", input, dim, _stacklevel, dtype)
    return G.softmax(input if dtype is None else to(input, dtype), dim, out=out)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None, *, out: Any = None) -> Tensor:
    """The logarithm of softmax along `dim`."""
    dim, dtype = _arguments("log_softmax", input, dim, _stacklevel, dtype)
    return G.log_softmax(input if dtype is None else to(input, dtype), dim, out=out)  # type: ignore[no-any-return]


def softmin(input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Softmax of the negative."""
    dim, dtype = _arguments("softmin", input, dim, _stacklevel, dtype)
    return softmax(G.neg(input), dim, dtype=dtype)


def _arguments(name: str, input: Tensor, dim: Any, stacklevel: Any, dtype: Any) -> tuple[Any, Any]:
    """`dim` and `dtype`; torch.softmax takes the dtype third, nn.functional.softmax a stack level."""
    if stacklevel is not None and not isinstance(stacklevel, int):
        dtype, stacklevel = stacklevel, 3
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. "
            "Change the call to include dim=X as an argument.",
            stacklevel=stacklevel + 1 if isinstance(stacklevel, int) else 4,
        )
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return dim, dtype
