"""What the kernels of kernels/searching.py ask of their arguments."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _check_uniquable(input: Array, dim: int) -> None:
    """Refuse slices without elements: they are all equal, and there may be none."""
    empty = [d for d, size in enumerate(input.shape) if size == 0]
    if len(empty) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if empty and empty != [dim]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")


def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> None:
    refuse_kinds(input, "c", "unique")
    if dim is not None:
        _check_uniquable(input, dim)


def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> None:
    refuse_kinds(input, "c", "unique" if dim is None else "unique_dim")
    if dim is not None:
        _check_uniquable(input, dim)


def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if input.dtype.kind not in "fV":
        raise NotImplementedError(f'"histogram_cpu" not implemented for {scalar_type_name(input.dtype)!r}')
    if not (math.isfinite(min) and math.isfinite(max)):
        raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")


def searchsorted(
    sorted_sequence: Array, input: Array, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Array | None = None,
) -> None:  # fmt: skip
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        _check_sorter(sorted_sequence, sorter)
    _check_boundaries(sorted_sequence, input)
    if input.size:
        refuse_kinds(sorted_sequence, "bc", "searchsorted_out_cpu")
        refuse_kinds(input, "c", "searchsorted_out_cpu")


def _check_boundaries(boundaries: Array, values: Array) -> None:
    if boundaries.ndim != 1 and values.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({boundaries.ndim}) and input value's dim(0) numel(1)"
        )
    if boundaries.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if boundaries.ndim != 1 and boundaries.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            "boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(boundaries.shape)} and input value "
            "tensor "
            f"{list(values.shape)}"
        )


def _check_sorter(sorted_sequence: Array, sorter: Array) -> None:
    if sorter.shape != sorted_sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {scalar_type_name(sorter.dtype)}"
        )


def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> None:
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.kind not in "iu":
        raise NotImplementedError(f'"bincount_cpu" not implemented for {scalar_type_name(input.dtype)!r}')
    if input.ndim != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")


def isin(elements: Array, test_elements: Array, assume_unique: bool = False, invert: bool = False) -> None:
    for given in (elements, test_elements):
        dtype = given.dtype if hasattr(given, "dtype") else np.asarray(given).dtype
        if dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_type_name(dtype)}")
