"""What the kernels of kernels/scattering.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_complex
from pullback.typing import Array, Arrays, Dim, Shape


def _check_index_dtype(name: str, index: Array, allowed: tuple[str, ...]) -> None:
    if index.dtype.str[1:] not in allowed:
        kinds = "int32/int64" if len(allowed) > 1 else "int64"
        raise RuntimeError(f"{name}(): Expected dtype {kinds} for index but got: {scalar_type_name(index.dtype)}")


def _check_source(name: str, input: Array, dim: int, index: Array, source: Array) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{scalar_type_name(index.dtype)} and size: {list(index.shape)}"
        )
    extent = source.shape[dim] if source.ndim else 1
    if index.size != extent:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({extent}), for dim: "
            f"{dim}"
        )
    own, other = list(input.shape), list(source.shape)
    if input.ndim != source.ndim or own[:dim] + own[dim + 1 :] != other[:dim] + other[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input.shape)} source.shape = {list(source.shape)}"
        )


def index_put_into(target: Array, indices: Arrays, dims: Shape, values: Array, accumulate: bool) -> None:
    if target.dtype != values.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {scalar_type_name(target.dtype)} for the "
            f"destination and {scalar_type_name(values.dtype)} for the source."
        )


def scatter_reduce(input: Array, dim: Dim, index: Array, src: Array, reduce: str, *, include_self: bool = True) -> None:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce in ("amax", "amin"):
        refuse_complex(f"scatter_gather_tensor_cpu_reduce_{reduce}", input)


def index_reduce(
    input: Array, dim: Dim, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> None:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _check_index_dtype("index_reduce_", index, ("i4", "i8"))
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_type_name(input.dtype)}) and source ({scalar_type_name(source.dtype)}) must "
            "have the same scalar type"
        )
    _check_source("index_reduce_", input, dim, index, source)
