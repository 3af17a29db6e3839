"""Embeddings and one-hot rows."""

from __future__ import annotations

from pullback import functions
from pullback.kernels.embeddings import index_range, one_hot_rows
from pullback.tensor.tensor import Tensor, new_tensor


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of `weight` at `input`; the row `padding_idx` gets no gradient.

    >>> import pullback
    >>> table = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pullback.nn.functional.embedding(pullback.tensor([1]), table)
    tensor([[3., 4.]])
    """
    rows = weight._array.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        functions.embedding_renorm_(weight, input, max_norm, norm_type)
    return functions.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)  # type: ignore[no-any-return]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at the index that each element holds.

    >>> import pullback
    >>> pullback.nn.functional.one_hot(pullback.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    if tensor._array.dtype.name != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not tensor._array.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    low, high = index_range(tensor._array)
    if low < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes != -1 and num_classes <= high:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return new_tensor(one_hot_rows(tensor._array, high + 1 if num_classes == -1 else num_classes))
