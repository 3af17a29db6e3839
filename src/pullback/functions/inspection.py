"""Questions about tensors and values: kinds, names, storages, positions, hashes."""

from __future__ import annotations

from typing import Any

from pullback.backend.array_module import cast_array
from pullback.backend.dtype import int64, type_name
from pullback.facts import declare
from pullback.functions.shape import sizes
from pullback.functions.storages import TypedStorage, UntypedStorage
from pullback.graph.in_place import write_out
from pullback.kernels.histograms import unravel, xor_bits
from pullback.modes.interception import interceptable, structured
from pullback.tensor.arguments import wrap_dims
from pullback.tensor.tensor import Tensor, new_tensor


@declare(found="torch")
def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


@declare(found="torch")
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


@declare(found="torch and method")
def is_distributed(input: Tensor) -> bool:
    """False: no tensor is spread over processes."""
    return False


@declare(found="torch")
def typename(obj: Any, /) -> str:
    """The name of the type, of a tensor with its element type."""
    if isinstance(obj, Tensor):
        return type_name(obj._array.dtype)
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@declare(structure="elementwise", found="torch")
def detach_(input: Tensor) -> Tensor:
    """Cut the tensor off its history, in place."""
    return input.detach_()


@declare(found="method")
def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
    """The tensor itself: every tensor is dense."""
    return input if dtype is None else input.to(dtype)


@declare(found="method")
def dense_dim(input: Tensor) -> int:
    """The number of dense dimensions: all of them."""
    return int(input._array.ndim)


@declare(found="method")
def sparse_dim(input: Tensor) -> int:
    """The number of sparse dimensions: none."""
    return 0


@declare(found="method")
def module_load(input: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module's parameter becomes when `other` is loaded into it."""
    if assign:
        return other.detach()
    return input.copy_(other).detach()


@structured("leading")
@interceptable
@declare(written_in="functional", found="torch")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of positions counted in row-major order.

    One tensor for each dimension, in the shape of `indices`.

    >>> import pullback
    >>> pullback.unravel_index(pullback.tensor([4, 5]), (2, 3))
    (tensor([1, 1]), tensor([1, 2]))
    """
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    wanted = sizes((shape,), "unravel_index", "shape")
    if any(n < 0 for n in wanted):
        raise ValueError(f"'shape' cannot have negative values, but got {wanted}")
    return tuple([new_tensor(part) for part in unravel(cast_array(indices._array, int64.numpy_dtype), wanted)])


@interceptable
@declare(out_dtype="Expected result to be of dtype uint64, but got {1}", found="torch and method")
def hash_tensor(
    input: Tensor,
    dim: Any = (),
    *,
    keepdim: bool = False,
    mode: int = 0,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The exclusive or of the elements' bits over dimensions."""
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode {mode}: 0 is the exclusive or of the bits")
    if input._array.size == 0 and dim in ((), None):
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    dims = wrap_dims(dim, input._array.ndim) or ()
    for one in dims:
        if input._array.ndim and input._array.shape[one] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {one} to have non-zero size.")
    result = new_tensor(xor_bits(input._array, dims, keepdim))
    return result if out is None else write_out("hash_tensor", out, result)
