"""What the kernels of kernels/matrix_products.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks import after_failure
from pullback.checks.dtypes import refuse_kinds
from pullback.checks.factors import refuse_bools, refuse_other_dtype, refuse_other_dtypes, size_of_rows
from pullback.checks.shapes import check_broadcastable
from pullback.typing import Array, Dim, Scalar


def bmm(input: Array, mat2: Array) -> None:
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"{'batch1' if input.ndim != 3 else 'batch2'} must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] but "
            f"got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    refuse_other_dtype(input, mat2, batched=True)
    refuse_bools(input, mat2, "bmm")


def mv(input: Array, vec: Array) -> None:
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), "
                           f"vec ({vec.shape[0]})")  # fmt: skip
    refuse_other_dtypes(vec, input, vec)
    refuse_bools(input, vec, "addmv_impl_cpu")


def dot(input: Array, tensor: Array) -> None:
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    if input.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_type_name(input.dtype)} and "
            f"{scalar_type_name(tensor.dtype)}"
        )
    if input.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.shape[0]}] and src [{tensor.shape[0]}] to have the same "
            f"number of elements, but got {input.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    refuse_kinds(input, "b", "dot")


def matmul_batched(input: Array, other: Array) -> None:
    inner = other.shape[0] if other.ndim == 1 else other.shape[-2]
    if input.shape[-1] != inner:
        raise RuntimeError(_inner_sizes_differ(input, other, inner))
    refuse_other_dtype(input, other, batched=input.ndim > 2 and other.ndim > 2)
    refuse_bools(input, other, "bmm")
    if input.ndim > 2 and other.ndim > 2:
        check_broadcastable(other.shape[:-2], input.shape[:-2])


def trace(input: Array) -> None:
    refuse_kinds(input, "b", "trace")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")


def linalg_cross(input: Array, other: Array, *, dim: Dim = -1) -> None:
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    refuse_kinds(input, "b", "cross")


def addmv(input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> None:
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or (input.ndim and input.shape[0] not in (1, mat.shape[0])):
        raise RuntimeError(
            f"size mismatch, got input ({input.size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    refuse_other_dtypes(input, mat, vec)


@after_failure
def addr(input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> None:
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")


def _inner_sizes_differ(input: Array, other: Array, inner: int) -> str:
    if other.ndim == 1:
        rows = int(np.prod(input.shape[:-1]))
        return f"size mismatch, got input ({rows}), mat ({rows}x{input.shape[-1]}), vec ({inner})"
    if other.ndim == 2 or input.ndim == 1:
        return f"mat1 and mat2 shapes cannot be multiplied ({_folded(input)} and {_folded(other)})"
    batches = int(np.prod(np.broadcast_shapes(input.shape[:-2], other.shape[:-2])))
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: [{batches}, {input.shape[-1]}] but got: "
        f"[{batches}, {inner}]."
    )


def _folded(array: Array) -> str:
    return f"{array.shape[0]}x1" if array.ndim == 1 else size_of_rows(array)


def outer(input: Array, vec2: Array) -> None:
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument {'self' if input.ndim != 1 else 'vec2'}, but got "
                           f"{(input if input.ndim != 1 else vec2).ndim}-D")  # fmt: skip
