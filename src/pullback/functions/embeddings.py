"""Embeddings in the forms that PyTorch's top-level functions have."""

from __future__ import annotations

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name, type_in_errors
from pullback.facts import declare
from pullback.graph.history import bump_version
from pullback.kernels.embeddings import check_rows, renormalized_rows
from pullback.modes.interception import interceptable
from pullback.tensor.tensor import Tensor


@declare(found="torch")
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of `weight` at `indices`; with `sparse`, the gradient holds only these rows.

    >>> import pullback
    >>> pullback.embedding(pullback.tensor([[1.0], [2.0], [3.0]]), pullback.tensor([2, 0]))
    tensor([[3.],
            [1.]])
    """
    return G.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)


@declare(found="torch")
@interceptable
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place and unrecorded, the rows at `indices` whose norm is above `max_norm`."""
    check_rows("embedding_renorm_", weight._array, indices._array)
    weight._array[...] = renormalized_rows(weight._array, indices._array, max_norm, norm_type)
    bump_version(weight)
    return weight


def _check_weights(weight: Tensor, per_sample_weights: Tensor | None) -> None:
    if weight._array.dtype.kind not in "fV":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got {type_in_errors(weight._array.dtype)} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights._array.dtype != weight._array.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {scalar_type_name(weight._array.dtype)} does not equal "
            f"{scalar_type_name(per_sample_weights._array.dtype)} (while checking arguments for embedding_bag)"
        )


@interceptable
@declare(lenient=True, found="torch")
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Sums (mode 0), means (1) or maxima (2) of bags of rows; each offset begins a bag.

    Also, as in PyTorch, the bag of each index, the size of each bag and the rows that maxima come from.
    """
    _check_weights(weight, per_sample_weights)
    starts = offsets
    if include_last_offset:
        if not offsets._array.shape[0]:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        starts = G.slice_view(offsets, 0, 0, offsets._array.shape[0] - 1, 1)
    if offsets._array.size and int(offsets._array[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            "However, got "
            f"{int(offsets._array[0])}"
        )
    if offsets._array.size and int(offsets._array[-1]) > indices._array.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices._array.shape[0]} but got offsets[-1] of "
            f"{int(offsets._array[-1])}"
        )
    result, owner, _, sizes, chosen = G.embedding_bag_forward(
        weight,
        indices,
        starts,
        per_sample_weights,
        mode,
        -1 if padding_idx is None else padding_idx,
        scale_grad_by_freq,
        sparse,
    )
    return result, owner, sizes, chosen
