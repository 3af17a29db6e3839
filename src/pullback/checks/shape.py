"""What the kernels of kernels/shape.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name, type_in_errors
from pullback.checks.shapes import can_view, infer_shape
from pullback.typing import Array, Dim, DType, Shape


def expand(input: Array, size: Shape) -> None:
    shape: Shape = getattr(input, "shape", ())  # a number has none
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_in_errors(input.dtype)}{{{list(shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    for position in range(len(size) - 1, -1, -1):
        have, wanted = shape[position - lead] if position >= lead else 1, size[position]
        if wanted == -1 and position >= lead:
            continue
        if wanted < 0 and (have == 1 or wanted == -1):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension "
                f"{position}"
            )
        if have != wanted and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )


def view(input: Array, size: Shape) -> None:
    if input.flags.c_contiguous:
        return
    wanted = infer_shape(input.size, size)
    if wanted != input.shape and not can_view(input.shape, input.strides, wanted):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. The tensor has shape {list(input.shape)} and strides "
            f"{[s // input.itemsize for s in input.strides]}, the view {list(wanted)}."
        )


def diagonal(input: Array, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> None:
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")


def unfold(input: Array, dimension: Dim, size: int, step: int) -> None:
    extent = input.shape[dimension] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {extent} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")


def view_as_real(input: Array) -> None:
    if input.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")


def t(input: Array) -> None:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")


def view_as_complex(input: Array) -> None:
    if input.dtype.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{input.dtype}"
        )
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.strides[-1] != input.itemsize and input.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % (2 * input.itemsize) for stride in input.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")


def view_dtype(input: Array, dtype: DType) -> None:
    if input.itemsize == dtype.itemsize:
        return
    view = f"to view {scalar_type_name(input.dtype)} as {scalar_type_name(dtype)} (different element sizes)"
    if input.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {view}")
    ratio = dtype.itemsize // input.itemsize
    if ratio > 1 and input.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {view}, but got {input.shape[-1]}")
    if input.size and input.strides[-1] != input.itemsize:
        raise RuntimeError(f"self.stride(-1) must be 1 {view}, but got {input.strides[-1] // input.itemsize}")
    if ratio > 1 and any(stride % dtype.itemsize for stride in input.strides[:-1]):
        raise RuntimeError(f"self.stride(0) must be divisible by {ratio} {view}")
