"""DTensor: a tensor of which every rank holds a part, as `fully_shard` makes of parameters.

The memory is that of the part: whatever works element by element (optimizers, copying, scaling) works on parts, and needs
no communication. `shape` is that of the whole. Operations that need the whole ask for it: `full_tensor()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.layout import contiguous_format
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.process_group import ProcessGroup, get_world_size
from pullback.distributed.tensor.placement_types import Placement, Replicate, Shard
from pullback.tensor.foreign_arguments import PLAIN
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl, new_tensor
from pullback.tensor.tensor_base import TensorBase
from pullback.tensor.version_counter import VersionCounter
from pullback.typing import Array

__all__ = ["DTensor", "distribute_tensor", "rows_of"]


def rows_of(length: int, ranks: int, rank: int) -> tuple[int, int]:
    """The first row and the number of rows that a rank holds of `length`: even parts, the last ones smaller.

    >>> [rows_of(5, 3, rank) for rank in range(3)]
    [(0, 2), (2, 2), (4, 1)]
    """
    size = -(-length // ranks)
    start = min(rank * size, length)
    return start, min(size, length - start)


class DTensor(Tensor):
    """A tensor of which every rank of a mesh holds a part, along one dimension, or a copy.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> shared = distribute_tensor(pullback.arange(4.0))
    >>> list(shared.shape), shared.to_local()
    ([4], tensor([0., 1., 2., 3.]))
    >>> dist.destroy_process_group()
    """

    __torch_function__ = _disabled_torch_function_impl
    _whole: Size
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]

    def __new__(cls, local: Array, whole: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
        made: Any = TensorBase.__new__(cls)
        made._array = local
        made._whole = Size(whole)
        made.device_mesh = mesh
        made.placements = tuple(placements)
        return made

    def like(self, array: Array) -> DTensor:
        """Another tensor that lies as this one does."""
        return DTensor(array, self._whole, self.device_mesh, self.placements)

    @property
    def shape(self) -> Size:
        """The shape of the whole."""
        return self._whole

    def size(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """The shape of the whole, or its length along one dimension."""
        wanted = axis if dim is None else dim
        return self._whole if wanted is None else self._whole[wanted]

    def numel(self) -> int:
        """The number of elements of the whole."""
        return int(self._whole.numel())

    def shard_group(self) -> ProcessGroup | None:
        """The ranks among which the rows are divided."""
        for index, placement in enumerate(self.placements):
            if placement.is_shard():
                return self.device_mesh.get_group(index)
        return None

    def shard_dim(self) -> int:
        """The dimension along which it is divided; 0 where every rank has all of it."""
        return next((placement.dim for placement in self.placements if isinstance(placement, Shard)), 0)

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """The part of this rank, in the same memory."""
        local = new_tensor(self._array)
        if self._counter is None:
            self._counter = VersionCounter()
        local._counter = self._counter
        return local

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole, on every rank. All ranks must call it."""
        group = self.shard_group()
        if group is None:
            return self.to_local().clone()
        return gather_parts(self._array, self._whole, group, self.shard_dim())

    def detach(self) -> DTensor:
        """The same parts, without history."""
        alias = self.like(self._array)
        if self._counter is None:
            self._counter = VersionCounter()
        alias._counter = self._counter
        return alias

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = self.like(self._array.copy())
            copied._requires_grad = self._requires_grad
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self.to_local()!r}, device_mesh={self.device_mesh}, placements={self.placements})"
        )


PLAIN.add(DTensor)


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


def distribute_tensor(
    tensor: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **options: Any
) -> DTensor:
    """Keep the own part of a tensor that every rank has."""
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    how = tuple(placements) if placements is not None else (Shard(0),) * mesh.ndim
    array = tensor.detach()._array
    for index, placement in enumerate(how):
        if isinstance(placement, Shard):
            dim = placement.dim % tensor.ndim
            start, rows = rows_of(tensor.shape[dim], mesh.size(index), mesh.get_local_rank(index))
            array = array[(slice(None),) * dim + (slice(start, start + rows),)].copy()
            how = (*how[:index], Shard(dim), *how[index + 1 :])
        elif not isinstance(placement, Replicate):
            raise NotImplementedError(f"a tensor can be given as Shard(dim) or Replicate(), not as {placement}")
    return DTensor(array, tensor.shape, mesh, how)
