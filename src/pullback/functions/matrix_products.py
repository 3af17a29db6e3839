"""Matrix products of any number of dimensions."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import not_a_tensor
from pullback.graph.in_place import write_out
from pullback.tensor.tensor import Tensor


def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The matrix product; dimensions before the last two are batches and broadcast.

    >>> import pullback
    >>> pullback.matmul(pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    for position, value in enumerate((input, other), 1):
        if not isinstance(value, Tensor):
            raise not_a_tensor("matmul", "input" if position == 1 else "other", position, value)
    dims = (input._array.ndim, other._array.ndim)
    if 0 in dims:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {dims[0]}D and {dims[1]}D")
    if dims == (2, 2):
        result = G.mm(input, other)
    elif dims == (1, 1):
        result = G.dot(input, other)
    elif dims == (2, 1):
        result = G.mv(input, other)
    elif dims == (1, 2):
        result = G.squeeze_dims(G.mm(G.unsqueeze(input, 0), other), (0,))
    else:
        result = G.matmul_batched(input, other)
    return result if out is None else write_out("matmul", out, result)  # type: ignore[no-any-return]


def reflected_matmul(input: Tensor, other: Any) -> Tensor:
    """`other @ input`."""
    return matmul(other, input)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`.

    >>> import pullback
    >>> pullback.nn.functional.linear(pullback.ones(1, 2), pullback.ones(3, 2))
    tensor([[2., 2., 2.]])
    """
    folded = input._array.ndim != 2
    if bias is None:
        return G.linear_product_folded(input, weight) if folded else G.linear_product(input, weight)  # type: ignore[no-any-return]
    return G.linear_bias_folded(input, weight, bias) if folded else G.linear_bias(input, weight, bias)  # type: ignore[no-any-return]


def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products over the last dimensions of both."""
    if input._array.ndim == 0 or other._array.ndim == 0:
        result = G.mul(input, other)
    else:
        if input._array.shape[-1] != other._array.shape[-1]:
            raise RuntimeError(
                f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
                f"{list(other.shape)}"
            )
        result = tensordot(input, other, ([-1], [-1]))
    return result if out is None else write_out("inner", out, result)  # type: ignore[no-any-return]


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """The sum of products over pairs of dimensions."""
    left, right = _contracted(a, b, dims)
    for i, j in zip(left, right, strict=True):
        if a._array.shape[i] != b._array.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._array.shape[i]} in dim {i} and second has "
                f"size {b._array.shape[j]} in dim {j}"
            )
    keep_a = [i for i in range(a._array.ndim) if i not in left]
    keep_b = [j for j in range(b._array.ndim) if j not in right]
    shape = [a._array.shape[i] for i in keep_a] + [b._array.shape[j] for j in keep_b]
    count = 1
    for i in left:
        count *= a._array.shape[i]
    first = a.permute([*keep_a, *left]).reshape(-1, count)  # type: ignore[attr-defined]
    second = b.permute([*right, *keep_b]).reshape(count, -1)  # type: ignore[attr-defined]
    result = G.mm(first, second).reshape(shape)
    return result if out is None else write_out("tensordot", out, result)  # type: ignore[no-any-return]


def _contracted(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims._array.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    left, right = dims
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    return [i % a._array.ndim for i in left], [j % b._array.ndim for j in right]


def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of several matrices."""
    result = matrices[0]
    for matrix in matrices[1:]:
        result = matmul(result, matrix)
    return result if out is None else write_out("chain_matmul", out, result)  # type: ignore[no-any-return]


