"""Tensors of different lengths as one: the names of `torch.nested`.

>>> import pullback
>>> sentences = nested_tensor([pullback.ones(2, 4), pullback.ones(3, 4)])
>>> tuple(to_padded_tensor(pullback.nn.functional.relu(sentences), 0.0).shape)
(2, 3, 4)
"""

from __future__ import annotations

import itertools
from typing import Any

from pullback import functions
from pullback.backend.layout import jagged, strided
from pullback.creation import as_tensor, tensor
from pullback.nested.nested_tensor import NestedTensor, is_nested, join, ragged_dim
from pullback.tensor.tensor import Tensor

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """A nested tensor of copies, a leaf without history."""
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [
        part.detach().to(dtype or part.dtype) if isinstance(part, Tensor) else tensor(part, dtype=dtype)
        for part in tensor_list
    ]
    made = _checked(parts, layout).detach()
    return made.requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor whose gradients flow back to the given tensors.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> (2 * as_nested_tensor([x, pullback.ones(1)])).to_padded_tensor(0.0).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if is_nested(ts):
        return ts
    parts = [as_tensor(part, dtype=dtype) for part in (ts.unbind(0) if isinstance(ts, Tensor) else ts)]
    return _checked(parts, layout)


def _checked(parts: list[Tensor], layout: Any) -> NestedTensor:
    """Join parts that fit together in the layout."""
    layout = strided if layout is None else layout
    for index, part in enumerate(parts):
        if part.dim() != parts[0].dim():
            if layout is jagged:
                raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{part.dim()} for Tensor at index {index} and dimension {parts[0].dim()} for Tensor at index 0."
            )
    if layout is jagged:
        _check_jagged(parts)
    return join(parts, layout)


def _check_jagged(parts: list[Tensor]) -> None:
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    shapes = [tuple(part.shape) for part in parts]
    place = ragged_dim(shapes)
    if len({(*shape[:place], *shape[place + 1 :]) for shape in shapes}) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
            f"allows for a single ragged dimension; the shapes are {[list(shape) for shape in shapes]}."
        )


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """A dense tensor of all parts, filled up with `padding`."""
    if not is_nested(input):
        raise RuntimeError("to_padded_tensor expects a nested tensor")
    return input.to_padded_tensor(padding, output_size)


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """A jagged tensor of the rows of `values`: part i has those from offsets[i] on, up to the next or `lengths[i]`."""
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    place = (jagged_dim or 1) - 1
    counts = None if lengths is None else lengths.tolist()
    starts = [0] if offsets is None else offsets.tolist()
    if offsets is None:
        for count in counts or []:
            starts.append(starts[-1] + count)
    counts = counts or [end - start for start, end in itertools.pairwise(starts)]
    parts = [values.narrow(place, start, count) for start, count in zip(starts, counts, strict=False)]
    return join(parts, jagged)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """A nested tensor of a piece of each row: `length[i]` elements from `start[i]` on."""
    rows = tensor.unbind(0)
    firsts = start.tolist() if isinstance(start, Tensor) else [start] * len(rows)
    counts = length.tolist() if isinstance(length, Tensor) else [length] * len(rows)
    if layout is not jagged and (isinstance(start, Tensor) or isinstance(length, Tensor)):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")
    pieces = [row.narrow(dim - 1, first, count) for row, first, count in zip(rows, firsts, counts, strict=True)]
    return join(pieces, layout or strided)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """A jagged tensor of the elements of each row at which the mask is true."""
    full = functions.broadcast_to(mask, tensor.shape)
    return join([row[chosen] for row, chosen in zip(tensor.unbind(0), full.unbind(0), strict=True)], jagged)
