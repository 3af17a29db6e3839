"""new_group and its like: groups of some of the processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pullback.distributed.backends import backend_name
from pullback.distributed.process_group import (
    NON_GROUP_MEMBER,
    ProcessGroup,
    Registry,
    _get_default_group,
    check_timeout,
    group_of,
    rank_not_in_group,
)

__all__ = ["new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group"]


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some processes. All processes must call this, in the same order; those outside get no group.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> dist.get_process_group_ranks(new_group([0]))
    [0]
    >>> dist.destroy_process_group()
    """
    world = _get_default_group()
    check_timeout(timeout)
    chosen = list(range(world.size())) if ranks is None else [int(rank) for rank in ranks]
    if sort_ranks:
        chosen.sort()
    _check_ranks(chosen, world)
    number = Registry.made
    Registry.made += 1
    if world.rank() not in chosen:
        return NON_GROUP_MEMBER
    made = ProcessGroup(
        world.communicator.subgroup(chosen, number), chosen, world.name() if backend is None else backend_name(backend),
        timeout or world.timeout, str(number), group_desc or "undefined", Registry.shared if world.size() > 1 else None,
    )  # fmt: skip
    Registry.groups[made.group_name] = made
    return made


def _check_ranks(ranks: Sequence[int], world: ProcessGroup) -> None:
    if len(ranks) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group: "
            f"{len(ranks)} ranks of {world.size()}"
        )
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
    if any(not 0 <= rank < world.size() for rank in ranks):
        raise ValueError(
            f"Rank {next(rank for rank in ranks if not 0 <= rank < world.size())} is out of range. Valid ranks are 0 to "
            f"{world.size() - 1} (world_size={world.size()}): The new group's rank should be within the world_size set by "
            "init_process_group"
        )


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Divide the world into groups of `group_size` neighbours: the own group, and all of them."""
    world = _get_default_group()
    size = int(os.environ.get("LOCAL_WORLD_SIZE", world.size())) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if world.size() < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({world.size()})")
    if world.size() % size:
        raise ValueError(f"The world size ({world.size()}) must be divisible by 'group_size={size}'")
    parts = [list(range(start, start + size)) for start in range(0, world.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """One group for every list of ranks: the own group, and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    _check_disjoint(ranks_per_subgroup_list)
    made, own = [], None
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        own = made[-1] if not rank_not_in_group(made[-1]) else own
    return own, made


def _check_disjoint(parts: Sequence[Sequence[int]]) -> None:
    part_of: dict[int, Sequence[int]] = {}
    for part in parts:
        for rank in part:
            if rank in part_of:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {list(part_of[rank])} and {list(part)}")
            part_of[rank] = part


def split_group(
    parent_pg: Any = None, split_ranks: Sequence[Sequence[int]] | None = None, timeout: timedelta | None = None,
    pg_options: Any = None, group_desc: str | None = None, backend: str | None = None,
) -> Any:  # fmt: skip
    """Divide a group by lists of ranks in it: the own part, None for a rank in no list."""
    parent = group_of(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    return new_subgroups_by_enumeration(
        [[parent.ranks[rank] for rank in ranks] for ranks in split_ranks], timeout, backend, pg_options, group_desc
    )[0]
