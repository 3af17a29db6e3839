"""Running extrema with named results."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.tensor.return_types import return_type
from pullback.tensor.tensor import Tensor

_cummax, _cummin = return_type("cummax"), return_type("cummin")


def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest element up to each along `dim`, and its index."""
    return _cummax(G.cummax(input, dim, out=out))


def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest element up to each along `dim`, and its index."""
    return _cummin(G.cummin(input, dim, out=out))
