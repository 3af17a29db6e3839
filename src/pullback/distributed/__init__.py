"""Process groups, of which this build has none: programs that ask first run on one process."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = [
    "ReduceOp", "all_gather", "all_reduce", "barrier", "broadcast", "destroy_process_group", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_initialized", "is_nccl_available", "is_torchelastic_launched",
]  # fmt: skip


class ReduceOp(Enum):
    """How values of several processes are joined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4


class ProcessGroup:
    """Processes that talk to each other; none is ever made here."""


class _WorldMeta(type):
    """PyTorch's names for the group of all processes, and for no group."""

    WORLD: Any = None
    NON_GROUP_MEMBER: Any = None


class group(metaclass=_WorldMeta):
    """The group of all processes: none while nothing is initialised."""


class GroupMember(metaclass=_WorldMeta):
    """The same, under an older name."""


def is_available() -> bool:
    """Whether processes can be joined.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether processes are joined."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group. "
                     "This build computes in one process.")  # fmt: skip


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Not available."""
    raise RuntimeError("Distributed package doesn't have a backend built in: pullback computes in one process")


def get_rank(group: Any = None) -> int:
    """The number of this process."""
    return int(_refuse())


def get_world_size(group: Any = None) -> int:
    """How many processes are joined."""
    return int(_refuse())


all_reduce = all_gather = all_gather_object = broadcast = barrier = reduce = scatter = gather = send = recv = _refuse
broadcast_object_list = reduce_scatter = all_to_all = new_group = _refuse


def destroy_process_group(group: Any = None) -> None:
    """Accepted: there is none."""
