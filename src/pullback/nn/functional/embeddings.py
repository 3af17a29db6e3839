"""Embeddings and one-hot rows."""

from __future__ import annotations

from pullback import functions
from pullback.backend.dtype import int64
from pullback.creation import arange
from pullback.facts import declare
from pullback.kernels.embeddings import check_classes, index_range, one_hot_rows
from pullback.modes.interception import interceptable
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, new_tensor


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of `weight` at `input`; the row `padding_idx` gets no gradient.

    `input` holds indices (int64 or int32) of any shape (*), `weight` is (V, D), and the result (*, D): y[i] =
    weight[input[i]]. `max_norm` shortens longer rows in place first; `sparse` makes the weight's gradient sparse.

    >>> import pullback
    >>> table = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pullback.nn.functional.embedding(pullback.tensor([1]), table)
    tensor([[3., 4.]])
    """
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    rows = weight._array.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        functions.embedding_renorm_(weight, input, max_norm, norm_type)
    return functions.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@interceptable
@declare(written_in="c")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at the index that each element holds.

    >>> import pullback
    >>> pullback.nn.functional.one_hot(pullback.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    if input._array.dtype.name != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input._array.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty input.")
    check_classes(input._array, num_classes)
    if num_classes == -1:
        num_classes = index_range(input._array)[1] + 1
    return new_tensor(one_hot_rows(input._array, num_classes))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or max of each bag of rows: each row of a matrix `input`, or from each of `offsets` of a vector.

    `weight` is (number of rows, D), the result (bags, D). `per_sample_weights` (of a sum) multiply the rows; rows
    `padding_idx` do not count; `max_norm` shortens longer rows of `weight` in place.

    >>> import pullback
    >>> w = pullback.tensor([[1., 2.], [3., 4.]])
    >>> pullback.nn.functional.embedding_bag(pullback.tensor([0, 1, 1]), w, pullback.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if weight.dtype is int64 and input.is_floating_point():
        warn_user(
            "Argument order of nn.functional.embedding_bag was changed: embedding_bag(weight, input, ...) is deprecated, "
            "write embedding_bag(input, weight, ...)."
        )
        input, weight = weight, input
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have "
            "the same "
            f"shape as the input ({input.shape})"
        )
    input, starts, per_sample_weights = _as_bags(input, offsets, per_sample_weights)
    modes = {"sum": 0, "mean": 1, "max": 2}
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')"
        )
    if max_norm is not None:
        functions.embedding_renorm_(weight, input, max_norm, norm_type)
    if padding_idx is not None:
        rows = weight._array.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError("padding_idx must be within the number of embeddings")
        padding_idx %= rows
    return functions.embedding_bag(
        weight,
        input,
        starts,
        scale_grad_by_freq,
        modes[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _as_bags(
    input: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Indices, offsets and weights as vectors."""
    if input._array.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input._array.shape
        weights = None if per_sample_weights is None else functions.reshape(per_sample_weights, (-1,))
        return (
            functions.reshape(input, (-1,)),
            arange(0, bags * length, length or 1, dtype=input.dtype, device=input.device),
            weights,
        )
    if input._array.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input._array.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets._array.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights
