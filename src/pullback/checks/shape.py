"""What the kernels of kernels/shape.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import type_name
from pullback.typing import Array, Shape


def expand(input: Array, size: Shape) -> None:
    shape: Shape = getattr(input, "shape", ())  # a number has none
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name(input.dtype)}{{{list(shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    for position in range(len(size) - 1, -1, -1):
        have, wanted = shape[position - lead] if position >= lead else 1, size[position]
        if wanted == -1 and position >= lead:
            continue
        if wanted < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension "
                f"{position}"
            )
        if have != wanted and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )


def t(input: Array) -> None:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
