"""What every masked operation does first: check the mask, and put a neutral value where it is false."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor


def select(input: Tensor, mask: Tensor | None, neutral: float) -> Tensor:
    """Give `input` with `neutral` wherever the mask, broadcast to it, is false.

    A MaskedTensor brings its own mask, which counts instead of one that is given, as in PyTorch.
    """
    own = getattr(input, "_masked_mask", None)
    if own is not None and own is not mask:
        input, mask = input.get_data(), own
    if mask is None:
        return input
    filling = pullback.full((), neutral, dtype=input.dtype)
    return pullback.where(broadcast_mask(mask, input), input, filling)


def broadcast_mask(mask: Tensor, input: Tensor) -> Tensor:
    """Give the mask as bool in the shape of `input`."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): the mask has "
            f"{mask.ndim} dimensions, the input {input.ndim}"
        )
    if mask.dtype != pullback.bool:
        mask = mask.to(pullback.bool)
    return mask if mask.shape == input.shape else pullback.broadcast_to(mask, input.shape)


def lowest(dtype: Any) -> float:
    """The value that no maximum takes: -inf, or the smallest integer."""
    return -float("inf") if _has_infinity(dtype) else pullback.iinfo(dtype).min


def highest(dtype: Any) -> float:
    """The value that no minimum takes: inf, or the largest integer."""
    return float("inf") if _has_infinity(dtype) else pullback.iinfo(dtype).max


def _has_infinity(dtype: Any) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)


def canonical_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Give the dimensions to reduce, wrapped and in order: all for None."""
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    wrapped = [wrap_dim(given, max(ndim, 1)) for given in dims]
    if len(set(wrapped)) != len(wrapped):
        repeated = next(given for given in wrapped if wrapped.count(given) > 1)
        raise RuntimeError(f"dim={repeated} appears multiple times in the list of dims")
    return tuple(sorted(wrapped)) if ndim else ()
