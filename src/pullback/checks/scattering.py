"""What the kernels of kernels/scattering.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_complex, refuse_unordered
from pullback.checks.indexing import _check_broadcast
from pullback.typing import Array, Arrays, Dim, Scalar, Shape


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
        if not source.ndim:
            raise IndexError(
                f"Dimension specified as {dim} but tensor has no dimensions: {name}() takes one index for a source that is "
                f"a single number, but got {index.size}"
            )
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
    _check_broadcast(indices)
    wanted = _shape_at(target.shape, indices, dims)
    if values.shape != wanted and not _can_expand(values.shape, wanted):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
            f"{list(wanted)}"
        )


def _shape_at(shape: Shape, indices: Arrays, dims: Shape) -> Shape:
    """The shape of the elements at positions: that of the positions in the place of the dimensions they are for."""
    positions = np.broadcast_shapes(*[index.shape for index in indices])
    rest = [size for dim, size in enumerate(shape) if dim not in dims]
    first = min(dims) if max(dims) - min(dims) == len(dims) - 1 else 0
    return (*rest[:first], *positions, *rest[first:])


def _can_expand(shape: Shape, wanted: Shape) -> bool:
    """Whether a value broadcasts; as with NumPy, dimensions of size 1 in front may be too many."""
    extra = len(shape) - len(wanted)
    if extra > 0 and any(size != 1 for size in shape[:extra]):
        return False
    return all(own in (1, other) for own, other in zip(reversed(shape), reversed(wanted), strict=False))


def _check_scattered(name: str, input: Array, dim: int, index: Array, src: Array | None = None) -> None:
    """Refuse an index that does not name places of `input`, or (if it has any) asks for more than `src` has."""
    if index.size:
        if index.dtype.str[1:] not in ("i4", "i8"):
            raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
        if max(index.ndim, 1) != max(input.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
        if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        for d, size in enumerate(index.shape or (1,)):
            small = d != dim and input.ndim and size > input.shape[d]
            if small or (src is not None and size > (src.shape[d] if src.ndim else 1)):
                source = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
                    f"dimension {dim}{source}"
                )
    if src is not None and input.dtype != src.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")


def scatter(input: Array, dim: Dim, index: Array, src: Array) -> None:
    _check_scattered("scatter", input, dim, index, src)


def scatter_value(input: Array, dim: Dim, index: Array, value: Scalar) -> None:
    _check_scattered("scatter", input, dim, index)


def scatter_add(input: Array, dim: Dim, index: Array, src: Array) -> None:
    _check_scattered("scatter_add", input, dim, index, src)


def _require_same_dtype(name: str, input: Array, source: Array) -> None:
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_type_name(input.dtype)}) and source ({scalar_type_name(source.dtype)}) must have the "
            "same scalar type"
        )


def index_add(input: Array, dim: Dim, index: Array, source: Array, *, alpha: Scalar = 1) -> None:
    _check_index_dtype("index_add_", index, ("i4", "i8"))
    _check_source("index_add_", input, dim, index, source)
    _require_same_dtype("index_add_", input, source)


def scatter_reduce(input: Array, dim: Dim, index: Array, src: Array, reduce: str, *, include_self: bool = True) -> None:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce in ("amax", "amin"):
        refuse_complex(f"scatter_gather_tensor_cpu_reduce_{reduce}", input)
    _check_scattered("scatter_reduce", input, dim, index, src)


def index_reduce(
    input: Array, dim: Dim, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> None:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _check_index_dtype("index_reduce_", index, ("i4", "i8"))
    _require_same_dtype("index_reduce_", input, source)
    _check_source("index_reduce_", input, dim, index, source)
    if index.size and source.size:
        _refuse_by_dtype(input, reduce, include_self)


def _refuse_by_dtype(input: Array, reduce: str, include_self: bool) -> None:
    if not include_self:
        refuse_unordered("index_reduce_func_exclude_input_init", input)
    elif input.ndim <= 1:
        refuse_unordered("index_func_", input)
    elif reduce in ("amax", "amin"):
        refuse_complex("maximum_cpu" if reduce == "amax" else "minimum_cpu", input)


def index_copy(input: Array, dim: Dim, index: Array, source: Array) -> None:
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}")
    if input.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_type_name(input.dtype)} "
            f"and (source) {scalar_type_name(source.dtype)}"
        )
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    extent = source.shape[dim] if source.ndim else 1
    own, other = list(input.shape), list(source.shape)
    if own and other and len(own) != len(other):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(other)}), destination dimensionality ({len(own)})"
        )
    own, other = own[:dim] + own[dim + 1 :], other[:dim] + other[dim + 1 :]
    if own != other:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, own))} at dimension {dim} and source slice shape: {' '.join(map(str, other))} at "
            f"dimension {dim}."
        )
    if index.size != extent:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({extent})"
        )


def index_fill(input: Array, dim: Dim, index: Array, value: Scalar) -> None:
    if isinstance(value, complex) and input.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    _check_filled_index(index)


def index_fill_tensor(input: Array, dim: Dim, index: Array, value: Array) -> None:
    if np.ndim(value):
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    _check_filled_index(index)


def _check_filled_index(index: Array) -> None:
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")


def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> None:
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_type_name(input.dtype)} and source.dtype = {scalar_type_name(source.dtype)}"
        )
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}")
    if index.size != source.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
