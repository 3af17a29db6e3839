"""Gradients of views."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.checks.shapes import can_view, infer_shape
from pullback.facts import declare
from pullback.tensor.arguments import as_numpy_dtype
from pullback.typing import Shape


def reshape(input: Any, shape: Shape) -> Any:
    """The same elements in another shape: a view where that is possible, else of a copy."""
    array = input._array
    size = infer_shape(array.size, shape)
    if array.flags.c_contiguous or can_view(array.shape, array.strides, size):
        result = F.view(input, size)
        if result._requires_grad and not input._array.flags.c_contiguous:
            _call_reshape_alias(result)
        return result
    return F.unsafe_view(F.contiguous_copy(input), size)


def _call_reshape_alias(result: Any) -> None:
    """PyTorch calls the node of a view of memory that is not contiguous by another name."""
    from pullback.graph.renamed_node import renamed

    edge = result._gradient_edge()
    info = result._extra.view if result._extra is not None else None
    if edge is not None and info is not None and edge[0].name() == "ViewBackward0":
        info.edge = (renamed(edge[0], "ReshapeAliasBackward0"), 0)


@declare(exact=True, same_values=True, twin="recorded")
def to_dtype(input: Any, dtype: Any) -> Any:
    """The same values in another dtype; nothing is recorded where the dtype is that already."""
    wanted = as_numpy_dtype(dtype)
    if input._array.dtype == wanted:
        return input
    if F.is_complex_value(input) and wanted.kind not in "cW":
        return F.to_dtype(F.real_part(input), dtype)
    return F.to_copy(input, dtype)


def unsqueezed_to(grad: Any, shape: Shape, dim: Any = None) -> Any:
    """The gradient of `squeeze`: the dimensions of size 1, among those named, put back one after the other."""
    if not shape:
        return grad
    dims = range(len(shape)) if dim is None else sorted({d % len(shape) for d in dim})
    return F.unsqueezed(grad, [d for d in dims if shape[d] == 1])


def expand_back(grad: Any, shape: Shape) -> Any:
    """The gradient of `expand`; that of one number is always a sum."""
    return F.sum_to(grad, shape) if shape else F.sum_all(grad)


def permute_back(grad: Any, dims: Shape) -> Any:
    """The gradient of `permute`: the inverse permutation."""
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return F.permute(grad, tuple(inverse))


def diagonal_back(grad: Any, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    """The gradient of `diagonal`: zeros but on the diagonal."""
    return F.diagonal_scatter(F.zeros_in_shape(grad, shape), grad, offset, dim1, dim2)


@declare(complex32=True)
def complex_from_pairs(grad: Any) -> Any:
    """The gradient of `view_as_real`."""
    return F.view_as_complex(F.contiguous_copy(grad))


def pairs_from_complex(grad: Any) -> Any:
    """The gradient of `view_as_complex`."""
    return F.view_as_real(grad)
