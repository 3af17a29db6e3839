"""DeviceMesh: the ranks in rows and columns, with a process group for every line of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pullback
from pullback.distributed.initialization import init_process_group
from pullback.distributed.process_group import (
    ProcessGroup,
    get_rank,
    get_world_size,
    group,
    is_initialized,
    rank_not_in_group,
)
from pullback.distributed.subgroups import new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Ranks as an array of one or more dimensions.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    >>> mesh.size(), mesh["data"].get_local_rank()
    (1, 0)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _groups: Any = None
    ) -> None:
        self.device_type = device_type
        self.mesh = pullback.as_tensor(mesh, dtype=pullback.int32)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._groups: list[ProcessGroup] = _groups or self._make_groups()

    def _make_groups(self) -> list[ProcessGroup]:
        """The group of this rank along every dimension; all ranks make all groups, in one order."""
        if self.mesh.ndim == 1 and self.mesh.numel() == get_world_size() and group.WORLD is not None:
            return [group.WORLD]
        own = []
        for dim in range(self.mesh.ndim):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim])
            made = [new_group(line) for line in lines.tolist()]
            own += [each for each in made if not rank_not_in_group(each)]
        return own

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return int(self.mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along every dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along one dimension."""
        return int(self.mesh.numel()) if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                    "when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
            valid = list(self.mesh_dim_names or ())
            raise KeyError(f"Invalid mesh_dim_names {(mesh_dim,)} specified. Valid mesh_dim_names are {valid}.")
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The ranks that differ from this one along one dimension only."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group along every dimension."""
        return list(self._groups)

    def get_rank(self) -> int:
        """The number of this process among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along one dimension."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> tuple[int, ...]:
        """The place of this process along every dimension."""
        return tuple(each.rank() for each in self._groups)

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup], device_type: str, mesh: Any = None, *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """A mesh whose lines are groups that there are already: one group, or one for every dimension of `mesh`."""
        groups = list(group) if isinstance(group, Sequence) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be specified when constructing a DeviceMesh")
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must specify mesh when constructing a DeviceMesh of several ProcessGroups")
            mesh = groups[0].ranks
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some of its dimensions in which this process is."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else mesh_dim_names
        dims = [self._dim(name) for name in names]
        place = self.get_coordinate()
        part = self.mesh
        for dim in reversed(range(self.ndim)):
            if dim not in dims:
                part = part.select(dim, place[dim])
        return DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=[self._groups[dim] for dim in dims])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self.mesh.tolist() == other.mesh.tolist()

    def __hash__(self) -> int:
        return hash(str(self.mesh.tolist()))

    def __repr__(self) -> str:
        sizes = [str(size) for size in self.mesh.shape]
        if self.mesh_dim_names:
            sizes = [f"{name}={size}" for name, size in zip(self.mesh_dim_names, sizes, strict=True)]
        shape = ", ".join(sizes) + ("," if len(sizes) == 1 and not self.mesh_dim_names else "")
        strides = tuple(
            [() if size == 1 else step for size, step in zip(self.mesh.shape, self.mesh.stride(), strict=True)]
        )
        return f"DeviceMesh(({shape}), '{self.device_type}', stride={strides})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None, **options: Any
) -> DeviceMesh:
    """Put all ranks into a mesh of this shape; begins the group of all processes if nobody has."""
    names = tuple(mesh_dim_names or ())
    if len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if names and len(names) != len(mesh_shape):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(names)} and "
            f"len(mesh_shape): {len(mesh_shape)}."
        )
    if not is_initialized():
        init_process_group()
    if math.prod(mesh_shape) != get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {math.prod(mesh_shape)} ranks"
        )
    ranks = pullback.arange(get_world_size()).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
