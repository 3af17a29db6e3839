"""What products of matrices ask of their factors and of what is added to them."""

from __future__ import annotations

import math

from pullback.backend.dtype import cpp_type_name, scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def refuse_other_dtype(a: Array, b: Array, *, batched: bool = False) -> None:
    """Refuse factors of two dtypes."""
    if a.dtype is not b.dtype and a.dtype != b.dtype:
        first, second = scalar_type_name(a.dtype), scalar_type_name(b.dtype)
        raise RuntimeError(
            f"expected scalar type {first} but found {second}"
            if batched
            else f"expected m1 and m2 to have the same dtype, but got: {cpp_type_name(a.dtype)} != {cpp_type_name(b.dtype)}"
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


def check_matrices(input: Array, mat2: Array) -> None:
    """Refuse two arrays that are not matrices to be multiplied."""
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"{'self' if input.ndim != 2 else 'mat2'} must be a matrix")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    refuse_other_dtype(input, mat2)
    refuse_bools(input, mat2, "addmm_impl_cpu_")


def check_layer(input: Array, weight: Array) -> None:
    """Refuse inputs of a linear layer that do not fit its weight."""
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({size_of_rows(input)} and {weight.shape[1]}x{weight.shape[0]})"
        )
    refuse_other_dtype(input, weight)
    refuse_bools(input, weight, "addmm_impl_cpu_")


def refuse_other_terms(term: Array, first: Array, second: Array, remedy: str = "") -> None:
    """Refuse a product and what is added to it if they are of several dtypes, in the order in which PyTorch looks."""
    refuse_other_summand(term, second, remedy)
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {scalar_type_name(first.dtype)} and "
            f"{scalar_type_name(second.dtype)}"
        )


def refuse_other_summand(term: Array, product: Array, remedy: str = "") -> None:
    """Refuse to add an array of another dtype to a product."""
    if term.dtype != product.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {scalar_type_name(term.dtype)} and "
            f"{scalar_type_name(product.dtype)}{remedy}"
        )
