"""Bringing what ranks hold of a tensor from some placements to others, with gradients.

# Note [Placed gradients]
All ranks run the same program on DTensors, and backward alike. A gradient lies as its tensor does, but for a Partial
tensor: each rank's summand has the gradient of the sum, which every rank has (Replicate). So backward brings the gradient
from the new placements to the old ones, and nothing is added up over ranks that forward did not divide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.autograd.function import Function
from pullback.autograd.grad_mode import no_grad
from pullback.backend.layout import contiguous_format
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.reduce_operation import ReduceOp
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.typing import Array

__all__ = ["Alias", "Redistribute", "gather_parts", "move", "placements_of_gradient", "rows_of"]

Placements = tuple[Placement, ...]


def rows_of(length: int, ranks: int, rank: int) -> tuple[int, int]:
    """The first row and the number of rows that a rank holds of `length`: even parts, the last ones smaller.

    >>> [rows_of(5, 3, rank) for rank in range(3)]
    [(0, 2), (2, 2), (4, 1)]
    """
    size = -(-length // ranks)
    start = min(rank * size, length)
    return start, min(size, length - start)


def gather_parts(local: Array, whole: Sequence[int], group: ProcessGroup, dim: int) -> Tensor:
    """All of a tensor that is divided among a group along `dim`."""
    rows = new_tensor(local).movedim(dim, 0)
    length = whole[dim]
    size = -(-length // group.size())
    own = rows.new_zeros((size, *rows.shape[1:]))
    own[: rows.shape[0]] = rows
    result = own.new_empty((size * group.size(), *rows.shape[1:]))
    collectives.all_gather_into_tensor(result, own, group)
    return result[:length].movedim(0, dim).clone(memory_format=contiguous_format)


def placements_of_gradient(placements: Placements) -> Placements:
    """How the gradient of a tensor lies. See Note [Placed gradients].

    >>> placements_of_gradient((Partial(), Shard(0)))
    (Replicate(), Shard(dim=0))
    """
    return tuple(Replicate() if isinstance(placement, Partial) else placement for placement in placements)


def move(local: Tensor, whole: Sequence[int], mesh: DeviceMesh, source: Placements, target: Placements) -> Tensor:
    """What this rank holds of a tensor of shape `whole`, from one way of lying to another; without gradients."""
    changed = [index for index in range(mesh.ndim) if source[index] != target[index]]
    if not changed:
        return local
    dims = {p.dim for index in changed for p in (source[index], target[index]) if isinstance(p, Shard)}
    inner = [
        index
        for index in range(changed[0] + 1, mesh.ndim)
        if isinstance(source[index], Shard) and source[index].dim in dims  # type: ignore[attr-defined]  # a Shard
    ]
    if len(changed) == 1 and not inner:
        index = changed[0]
        length = _lengths(whole, mesh, source, index)
        return _step(local, length, mesh, index, source[index], target[index])
    for index in sorted({*changed, *inner}, reverse=True):
        local = _step(local, _lengths(whole, mesh, source, index), mesh, index, source[index], Replicate())
    for index in sorted({*changed, *inner}):
        local = _step(local, _lengths(whole, mesh, target, index), mesh, index, Replicate(), target[index])
    return local


def _lengths(whole: Sequence[int], mesh: DeviceMesh, placements: Placements, index: int) -> list[int]:
    """The shape before the dimension `index` of the mesh divides it: what the dimensions before it leave."""
    shape = list(whole)
    for before in range(index):
        placement = placements[before]
        if isinstance(placement, Shard):
            shape[placement.dim] = rows_of(shape[placement.dim], mesh.size(before), mesh.get_local_rank(before))[1]
    return shape


def _step(
    local: Tensor, shape: list[int], mesh: DeviceMesh, index: int, source: Placement, target: Placement
) -> Tensor:
    """One dimension of the mesh; `shape` is what its line of ranks holds together."""
    group = mesh.get_group(index)
    if source == target:
        return local
    if isinstance(source, Partial):
        return _join(local, group, source, target)
    if isinstance(source, Shard):
        local = gather_parts(local._array, shape, group, source.dim)
    if isinstance(target, Shard):
        start, rows = rows_of(shape[target.dim], group.size(), group.rank())
        return local.narrow(target.dim, start, rows).clone(memory_format=contiguous_format)
    if isinstance(target, Partial):
        return local / group.size() if target.reduce_op == "sum" else local
    return local


def _join(local: Tensor, group: ProcessGroup, source: Partial, target: Placement) -> Tensor:
    op = getattr(ReduceOp, source.reduce_op.upper())
    if isinstance(target, Shard) and local.shape[target.dim] % group.size() == 0:
        rows = local.movedim(target.dim, 0).clone(memory_format=contiguous_format)
        own = rows.new_empty((rows.shape[0] // group.size(), *rows.shape[1:]))
        collectives.reduce_scatter_tensor(own, rows, op, group)
        return own.movedim(0, target.dim).clone(memory_format=contiguous_format)
    total = local.clone(memory_format=contiguous_format)
    collectives.all_reduce(total, op, group)
    if not isinstance(target, Shard):
        return total
    start, rows_here = rows_of(total.shape[target.dim], group.size(), group.rank())
    return total.narrow(target.dim, start, rows_here).clone(memory_format=contiguous_format)


class Redistribute(Function):
    """`move`, and the way back for the gradient."""

    @staticmethod
    def forward(local: Any, whole: Any, mesh: Any, source: Placements, target: Placements) -> Any:
        with no_grad():
            moved = move(local, whole, mesh, source, target)
            return moved.view_as(moved) if moved is local else moved

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.how = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        whole, mesh, source, target = ctx.how
        back = Redistribute.apply(grad, whole, mesh, placements_of_gradient(target), placements_of_gradient(source))
        return back, None, None, None, None


class Alias(Function):
    """The same values; the gradient is brought from other placements, which the user of the values named."""

    @staticmethod
    def forward(local: Any, whole: Any, mesh: Any, source: Placements, target: Placements) -> Any:
        return local.view_as(local)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.how = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return Redistribute.apply(grad, *ctx.how), None, None, None, None
