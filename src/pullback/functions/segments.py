"""Reductions over segments of a dimension."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.creation import full, tensor
from pullback.facts import declare
from pullback.functions.rearranging import repeat_interleave
from pullback.modes.interception import interceptable
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@declare(found="torch")
@interceptable
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Tensor:  # fmt: skip
    """Reduce each segment of a dimension; `lengths` or `offsets` say where the segments lie.

    >>> import pullback
    >>> pullback.segment_reduce(pullback.tensor([1.0, 2.0, 3.0]), "sum", lengths=pullback.tensor([2, 1]))
    tensor([3., 3.])
    """
    if reduce not in _START:
        raise RuntimeError(f"unsupported reduction given! ({reduce})")
    if lengths is None:
        if offsets is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        lengths = G.slice_view(offsets, -1, 1, None, 1) - G.slice_view(offsets, -1, 0, -1, 1)
    at = wrap_dim(axis, data._array.ndim)
    shape = data._array.shape
    counts = lengths._array
    if counts.ndim != at + 1:
        raise RuntimeError(f"Expected lengths to have {at + 1} dimensions, one for each up to axis, got {counts.ndim}")
    if not unsafe and (counts.sum(-1) != shape[at]).any():
        raise RuntimeError("Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    segments = counts.shape[-1]
    inner = shape[at + 1 :]
    rows = G.reshape(data, (math.prod(shape[: at + 1]), *inner))
    flat = G.reshape(lengths, (-1,))
    start = _START[reduce] if initial is None else initial
    result = full((counts.size, *inner), start, dtype=data.dtype, device=data.device)
    places = repeat_interleave(flat)
    if reduce in ("sum", "mean"):
        reduced = G.index_add(result, 0, places, rows)
    else:
        name = {"prod": "prod", "max": "amax", "min": "amin"}[reduce]
        reduced = G.index_reduce(result, 0, places, rows, name)
    if reduce == "mean":
        reduced = reduced / _divisors(flat, data, initial, len(inner))
    return G.reshape(reduced, (*shape[:at], segments, *inner))


def _divisors(lengths: Tensor, data: Tensor, initial: Any, inner_dims: int) -> Tensor:
    """The number of elements of each segment; an empty one divides by zero, unless there is an initial value."""
    values = [max(n, 1) if initial is not None else n for n in lengths._array.tolist()]
    return G.reshape(tensor(values, dtype=data.dtype, device=data.device), (-1, *(1,) * inner_dims))
