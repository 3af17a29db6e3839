"""What writes to a sparse tensor: it gets the indices and values of the result; where that would be dense, it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.functions.sparse_algebra import sparse_of, values_of
from pullback.graph.history import bump_version, check_in_place
from pullback.graph.sparse_nodes import shown_as
from pullback.modes.switches import switches
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor

_OPERATORS = {"__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div"}
_NOT_WRITES = ("requires_grad_", "detach_")


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend: zeros that are not stored would become "
        "other numbers. Use to_dense() first."
    )


def _take(input: SparseTensor, made: SparseTensor) -> SparseTensor:
    """Let a tensor be what another one is, from now on."""
    input._sparse, input._dense = made._sparse.astype(input._sparse.dtype), None
    if switches.grad_mode:
        input._recorded, input._edge, input._requires_grad = made._recorded, made._edge, made._requires_grad
    bump_version(input)
    return input


def _writing(name: str, out_of_place: str) -> Callable[..., Any]:
    def write(input: SparseTensor, *args: Any, **options: Any) -> Any:
        check_in_place(input, name, records=switches.grad_mode)
        made = getattr(input, out_of_place)(*args, **options)
        if type(made) is not type(input) and out_of_place in ("add", "sub"):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if type(made) is not type(input) or made._sparse.shape != input._sparse.shape:
            raise _refused(name)
        return _take(input, made)

    write.__name__ = name
    return write


def sparse_zero_(input: SparseTensor) -> SparseTensor:
    """Store nothing any more."""
    check_in_place(input, "zero_", records=switches.grad_mode)
    array = input._sparse
    nothing = sparse_of(array.indices[:, :0], values_of(input)[:0], array.shape, True, type(input))
    return _take(input, shown_as(nothing, "ZeroBackward0"))


def sparse_copy_(input: SparseTensor, src: Tensor, non_blocking: bool = False) -> SparseTensor:
    """Store what another sparse tensor stores."""
    check_in_place(input, "copy_", records=switches.grad_mode)
    if not isinstance(src, SparseTensor):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Use to_sparse() first.")
    if src._sparse.shape != input._sparse.shape:
        raise RuntimeError(
            f"The shapes of two sparse tensors must be the same to copy: {list(input._sparse.shape)} and "
            f"{list(src._sparse.shape)}"
        )
    return _take(input, src.clone())


def attach_sparse_writes() -> None:
    """Let every method of sparse tensors that writes be one of these."""
    for name in dir(Tensor):
        is_write = name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES
        if is_write and hasattr(Tensor, name[:-1]):
            setattr(SparseTensor, name, _writing(name, name[:-1]))
    for name, out_of_place in _OPERATORS.items():
        setattr(SparseTensor, name, _writing(name, out_of_place))
    for name, method in {
        "zero_": sparse_zero_,
        "copy_": sparse_copy_,
        "fill_": _refusing("fill_"),
        "__setitem__": _refuse_item,
    }.items():
        setattr(SparseTensor, name, method)


def _refuse_item(input: SparseTensor, index: Any, value: Any) -> None:
    raise TypeError("Cannot assign to a sparse tensor: assign to its values(), or to_dense() first")


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(input: SparseTensor, *args: Any, **options: Any) -> Any:
        raise _refused(name)

    return refuse
