"""max, min and their relatives: one name for a reduction, a reduction with indices, and the elementwise maximum."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.tensor.foreign_arguments import ask_foreign, is_foreign
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor, TensorBase


@declare(foreach=True, returns="values indices", bare=True, quantized=True, found="torch and method")
def max(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The largest element; along `dim` with its index; of two tensors element by element.

    `max(input)` has no dimensions. `max(input, dim)` is a pair (values, indices) without that dimension, or with size
    1 for it (`keepdim`). `max(input, other)` broadcasts. Where several elements are equal, `max(input)` shares the
    gradient among them, `max(input, dim)` gives it to the one at the index.

    >>> import pullback
    >>> pullback.max(pullback.tensor([1., 3., 2.]), 0).indices
    tensor(1)
    """
    keepdim = keepdim if keepdims is None else keepdims
    dim, other = _overload("max", dim, other, axis)
    if other is not None:
        if type(other) is not Tensor and is_foreign(other):
            return ask_foreign(max, (input, other), {"out": out})
        return G.maximum(input, other, out=out)
    if dim is None:
        return G.max_all(input, out=out)
    return named_results("max", G.max_dim, input, dim, keepdim, out=out)


@declare(returns="values indices", bare=True, quantized=True, found="torch and method")
def min(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The smallest element; along `dim` with its index; of two tensors element by element.

    `min(input)` has no dimensions. `min(input, dim)` is a pair (values, indices) without that dimension, or with size
    1 for it (`keepdim`). `min(input, other)` broadcasts. Where several elements are equal, `min(input)` shares the
    gradient among them, `min(input, dim)` gives it to the one at the index.
    """
    keepdim = keepdim if keepdims is None else keepdims
    dim, other = _overload("min", dim, other, axis)
    if other is not None:
        if type(other) is not Tensor and is_foreign(other):
            return ask_foreign(min, (input, other), {"out": out})
        return G.minimum(input, other, out=out)
    if dim is None:
        return G.min_all(input, out=out)
    return named_results("min", G.min_dim, input, dim, keepdim, out=out)


def _overload(name: str, dim: Any, other: Any, axis: Any) -> tuple[Any, Any]:
    """The dimension or the other tensor, whichever stood second."""
    if axis is not None:
        dim = axis
    if isinstance(dim, TensorBase):
        return None, dim
    if isinstance(dim, (tuple, list, float, str)):
        raise no_signature_fits(name, ["Tensor", type(dim).__name__])
    return dim, other


@declare(found="torch and method")
def aminmax(
    input: Tensor, *, dim: Any = None, keepdim: bool = False, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Any:
    """The smallest and the largest element.

    Over all elements, or along `dim`, which stays with size 1 if `keepdim`. Gives a pair with the names `min` and `max`.

    >>> import pullback
    >>> pullback.aminmax(pullback.tensor([[3, 1], [2, 5]]), dim=1).max
    tensor([3, 5])
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return named_results("aminmax", G.aminmax, input, dim=dim, keepdim=keepdim, out=out)
