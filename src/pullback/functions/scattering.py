"""Writing at positions and where masks are true: PyTorch's overloads."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.checks.numbers import filling_number
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.functions.direct_writes import fills_plainly
from pullback.functions.grids import broadcast_shapes
from pullback.graph.basic_nodes import attach_unimplemented
from pullback.graph.history import bump_version
from pullback.graph.in_place import in_place, write_out
from pullback.graph.overwriting import overwrite
from pullback.kernels.masking import masked_fill as masked_fill_kernel
from pullback.kernels.overwriting import overwriting, write_value
from pullback.modes.switches import process
from pullback.modes.user_warnings import warn_once
from pullback.tensor.foreign_arguments import is_foreign
from pullback.tensor.tensor import Tensor, TensorBase

_masked_fill = overwriting(masked_fill_kernel)


@declare(found="torch and method")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with a value where `mask` is true.

    `mask` (bool) broadcasts to the shape of the tensor, that of the result; `value` is a number or a tensor without
    dimensions. y = value if mask else input.

    >>> import pullback
    >>> pullback.zeros(2).masked_fill(pullback.tensor([True, False]), 5)
    tensor([5., 0.])
    """
    if isinstance(value, TensorBase):
        return G.masked_fill_tensor(input, mask, value)
    return G.masked_fill(input, mask, value)


@declare(bare=True, found="method")
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place version of masked_fill."""
    if overwrite(_masked_fill, input, mask, value):
        return input
    return in_place(masked_fill, input, mask, value)


@declare(complex32=True, bare=True, found="torch and method")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Overwrite every element with one value.

    `value` is a number, or a tensor of one element through which a gradient flows; the gradient of what was there
    before is zero.

    >>> import pullback
    >>> pullback.empty(2).fill_(3.0)
    tensor([3., 3.])
    """
    if not isinstance(value, TensorBase) and overwrite(write_value, input, value):
        return input
    if isinstance(value, (str, list, tuple, type(None))):
        raise wrong_type("fill_", "value", 1, "Tensor", value)
    if not isinstance(value, TensorBase) and fills_plainly(input):
        input._array[...] = filling_number(value, input._array.dtype)
        bump_version(input)
        return input
    return G.fill_in_place_tensor_(input, value) if isinstance(value, TensorBase) else G.fill_in_place_(input, value)


@declare(found="torch")
def fill(input: Tensor, value: Any) -> Tensor:
    """One value in the shape of `input`."""
    return G.fill_tensor(input, value) if isinstance(value, TensorBase) else G.fill(input, value)


@declare(complex32=True, bare=True, found="torch and method")
def zero_(input: Tensor) -> Tensor:
    """Overwrite every element with zero.

    The gradient of what was there before is zero.

    >>> import pullback
    >>> pullback.ones(2).zero_()
    tensor([0., 0.])
    """
    if overwrite(write_value, input, 0):
        return input
    if fills_plainly(input):
        input._array[...] = 0
        bump_version(input)
        return input
    return G.zero_(input)


@declare(found="torch and method")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """A copy with `src` (a tensor or one value) written, added or multiplied at positions along a dimension.

    `index` (int64) has as many dimensions as `input`; `src` is at least as large, or a number; `reduce` is None,
    "add" or "multiply". For dim=1: y = input.clone(), then y[i][index[i][j]] = src[i][j]. The result has the shape of
    `input`.
    """
    source = value if src is None else src
    if reduce is None:
        made = (
            G.scatter(input, dim, index, source)
            if isinstance(source, TensorBase)
            else G.scatter_value(input, dim, index, source)
        )
    else:
        made = _scatter_reducing(input, dim, index, source, reduce)
    return made if out is None else write_out("scatter", out, made)


def _scatter_reducing(input: Tensor, dim: int, index: Tensor, source: Any, reduce: str) -> Tensor:
    names = {"add": "sum", "multiply": "prod"}
    if reduce not in names:
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}")
    if not isinstance(source, TensorBase):
        source = G.fill(G.zeros_in_shape(input, index._array.shape), source)
    else:
        warn_once("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                  "PyTorch release. Use torch.scatter_reduce instead for more reduction options.")  # fmt: skip
    result = G.scatter_reduce(input, dim, index, source, names[reduce])
    if result._requires_grad and not process.finishing:  # PyTorch has a derivative of scatter_reduce alone
        result = result.detach()
        attach_unimplemented("scatter", (result,), (input, source))
    return result


@declare(found="method")
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place version of scatter."""
    if src is not None and not isinstance(src, TensorBase) and not is_foreign(src):
        src, value = None, src  # a form of its own to dispatch modes
    return in_place(scatter, input, dim, index, src, value=value, reduce=reduce)


@declare(found="torch and method")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with one value at positions of a dimension.

    `index` is a vector of positions along `dim`. y[index[k], ...] = value.

    >>> import pullback
    >>> pullback.index_fill(pullback.zeros(2, 3), 1, pullback.tensor([0, 2]), 1.0)
    tensor([[1., 0., 1.],
            [1., 0., 1.]])
    """
    if isinstance(value, TensorBase):
        return G.index_fill_tensor(input, dim, index, value)
    return G.index_fill(input, dim, index, value)


@declare(found="method")
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """In-place version of index_fill."""
    return in_place(index_fill, input, dim, index, value)


@declare(found="torch and method")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` written, or added, at the positions that `indices` give.

    `indices` is a tuple of integer tensors, broadcast together, one for each dimension.
    y[indices] = values, or y[indices] += values if `accumulate`.

    >>> import pullback
    >>> pullback.index_put(pullback.zeros(3), (pullback.tensor([0, 0]),), pullback.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0., 0.])
    """
    part, positions, dims = _positions_of(input, indices)
    _check_values(part, positions, values)
    return G.index_put(part, positions, dims, values, accumulate)


@declare(found="torch and method")
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of index_put."""
    part, positions, dims = _positions_of(input, indices)
    _check_values(part, positions, values)
    G.index_put_(part, positions, dims, values, accumulate)
    return input


def _check_values(part: Tensor, positions: list[Tensor], values: Tensor) -> None:
    """Refuse values of more dimensions than the positions have; an assignment would ignore those of size 1."""
    shape = broadcast_shapes(*[p._array.shape for p in positions])
    room = part._array.ndim - len(positions) + len(shape)
    if values._array.ndim > room:
        rest = list(part._array.shape)[len(positions) :]
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._array.shape)} cannot be broadcast to indexing result of "
            f"shape {[*shape, *rest]}"
        )


def _positions_of(input: Tensor, indices: Any) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    from pullback.functions.indexing import take_apart

    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    return take_apart(input, tuple([slice(None) if i is None else _as_index_tensor(i) for i in indices]))


def _as_index_tensor(index: Any) -> Any:
    """A 0-dim index stays a tensor: in index_put it is not a number."""
    if isinstance(index, TensorBase) and index._array.ndim == 0 and index._array.dtype.kind in "iu":
        return G.unsqueeze(index, 0)
    return index
