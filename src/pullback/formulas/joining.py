"""Gradients of joining and splitting."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.backend.array_module import zeros, zeros_beside
from pullback.facts import declare
from pullback.tensor.tensor import new_tensor
from pullback.typing import Shape


def _zeros(grads: Any, shape: Shape, dtype: Any) -> Any:
    """Zeros on the device of a gradient among `grads`."""
    present = next((grad for grad in grads if grad is not None), None)
    return new_tensor(zeros(shape, dtype) if present is None else zeros_beside(present._array, shape, dtype))


def cat_back(grad: Any, shapes: list[Shape], dtypes: list[Any], dim: int) -> list[Any]:
    """The gradient of `cat`: the part of each tensor."""
    results, start = [], 0
    dim %= max(grad.ndim, 1)
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if shape == (0,):
            results.append(_zeros([grad], shape, dtype))
            continue
        results.append(F.to_dtype(F.slice_view(grad, dim, start, start + shape[dim], 1), dtype))
        start += shape[dim]
    return results


def stack_back(grad: Any, dtypes: list[Any], dim: int) -> list[Any]:
    """The gradient of `stack`: the slice of each tensor."""
    return [F.to_dtype(F.select(grad, dim, i), dtype) for i, dtype in enumerate(dtypes)]


@declare(fresh=True)
def split_back(grads: Any, shape: Shape, dtype: Any, split_size: int, dim: int) -> Any:
    """The gradient of `split`: the parts' gradients one after another, zeros for unused parts."""
    extent = shape[dim]
    starts = range(0, extent, split_size) if extent else (0,)  # of nothing there is one part
    sizes = tuple([min(split_size, extent - start) for start in starts])
    return split_with_sizes_back(grads, shape, dtype, sizes, dim)


@declare(fresh=True)
def split_with_sizes_back(grads: Any, shape: Shape, dtype: Any, split_sizes: Shape, dim: int) -> Any:
    """The gradient of `split_with_sizes`."""
    parts = []
    for grad, size in zip(grads, split_sizes, strict=True):
        missing = _zeros(grads, (*shape[:dim], size, *shape[dim + 1 :]), dtype)
        parts.append(missing if grad is None else grad)
    return F.cat(parts, dim)


@declare(fresh=True, twin="passes")
def unbind_back(grads: Any, shape: Shape, dtype: Any, dim: int) -> Any:
    """The gradient of `unbind`."""
    if not grads:
        return new_tensor(zeros(shape, dtype))
    part = (*shape[:dim], *shape[dim + 1 :])
    return F.stack([_zeros(grads, part, dtype) if g is None else g for g in grads], dim)


def block_diag_back(grad: Any, shapes: list[Shape], dtypes: list[Any]) -> list[Any]:
    """The gradient of `block_diag`: each block."""
    results, row, column = [], 0, 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        rows, columns = (1, 1)[: 2 - len(shape)] + tuple(shape)
        block = F.slice_view(F.slice_view(grad, 0, row, row + rows, 1), 1, column, column + columns, 1)
        results.append(F.to_dtype(block if len(shape) == 2 else F.reshape(block, shape), dtype))
        row, column = row + rows, column + columns
    return results
