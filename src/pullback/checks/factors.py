"""What products of matrices ask of their factors and of what is added to them."""

from __future__ import annotations

import math

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def refuse_other_dtype(a: Array, b: Array, *, batched: bool = False) -> None:
    """Refuse factors of two dtypes."""
    if a.dtype is not b.dtype and a.dtype != b.dtype:
        first, second = scalar_type_name(a.dtype), scalar_type_name(b.dtype)
        raise RuntimeError(
            f"expected scalar type {first} but found {second}"
            if batched
            else f"expected m1 and m2 to have the same dtype, but got: {_c_name(first)} != {_c_name(second)}"
        )


def refuse_bools(input: Array, other: Array, function: str) -> None:
    """Raise for bools of which something is to be multiplied: PyTorch looks at the dtype no sooner."""
    if input.size and other.size:
        refuse_kinds(input, "b", function)


def refuse_other_dtypes(input: Array, mat: Array, vec: Array) -> None:
    """Refuse a summand and factors of several dtypes."""
    if not input.dtype == mat.dtype == vec.dtype:
        first, second, third = (scalar_type_name(a.dtype) for a in (input, mat, vec))
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {first}, {second}, and {third}")


def size_of_rows(array: Array) -> str:
    """The size of the matrix of rows that a layer is applied to."""
    return f"{math.prod(array.shape[:-1])}x{array.shape[-1]}"


def _c_name(name: str) -> str:
    if name in ("Half", "BFloat16"):
        return f"c10::{name}"
    if name.startswith("Complex"):
        return f"c10::complex<{name.removeprefix('Complex').lower()}>"
    return name.lower()


def refuse_unexpandable(shape: Shape, target: Shape) -> None:
    """Refuse a summand that does not broadcast to the product's shape."""
    if len(shape) > len(target):
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)})"
        )
    lead = len(target) - len(shape)
    for position, size in enumerate(shape):
        wanted = target[lead + position]
        if size not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({size}) at non-singleton "
                f"dimension {lead + position}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
