"""Process groups of one process: programs written for several run on one, and collectives have nobody to wait for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pullback.autograd.grad_mode import no_grad

__all__ = [
    "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group",
    "is_available", "is_initialized", "is_nccl_available", "is_torchelastic_launched", "monitored_barrier", "new_group",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


class ReduceOp(Enum):
    """How values of several processes are joined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4


class ProcessGroup:
    """Processes that talk to each other: here one, which has nobody to talk to."""

    def __init__(self, backend: str = "gloo") -> None:
        self._backend = backend

    def rank(self) -> int:
        """The number of this process."""
        return 0

    def size(self) -> int:
        """How many processes are joined."""
        return 1

    def name(self) -> str:
        """The name of the backend."""
        return self._backend


class Work:
    """What an asynchronous collective returns: done before it is asked."""

    def wait(self, timeout: Any = None) -> bool:
        """Whether the collective is done: it is."""
        return True

    is_completed = is_success = wait


class _WorldMeta(type):
    """PyTorch's names for the group of all processes, and for no group."""

    world: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = None

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _WorldMeta.world


class group(metaclass=_WorldMeta):
    """The group of all processes: none while nothing is initialised."""


class GroupMember(metaclass=_WorldMeta):
    """The same, under an older name."""


def is_available() -> bool:
    """Whether several processes can be joined.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _WorldMeta.world is not None


is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available


def _world() -> ProcessGroup:
    if _WorldMeta.world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _WorldMeta.world


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1,
    **options: Any,
) -> None:  # fmt: skip
    """Begin a group of one process; `WORLD_SIZE` and `RANK` of the environment count where they are not given."""
    if _WorldMeta.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    given = {"RANK": rank, "WORLD_SIZE": world_size}
    for name, value in given.items():
        if value < 0 and name not in os.environ:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                "but not set: give rank=0 and world_size=1"
            )
        given[name] = value if value >= 0 else int(os.environ[name])
    if given["WORLD_SIZE"] != 1:
        raise RuntimeError(
            "Distributed package doesn't have a backend built in: pullback computes in one process, but the world has "
            f"{given['WORLD_SIZE']}. Start the program once, with world_size=1."
        )
    _WorldMeta.world = ProcessGroup((backend or "gloo").rpartition(":")[2])


def destroy_process_group(group: Any = None) -> None:
    """End a group; the one of all processes if none is given."""
    if group is None or group is _WorldMeta.world:
        _WorldMeta.world = None


def new_group(
    ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None, **options: Any
) -> Any:
    """A group of some processes: of this one."""
    return ProcessGroup(backend or _world().name())


def get_rank(group: Any = None) -> int:
    """The number of this process."""
    return _world().rank()


def get_world_size(group: Any = None) -> int:
    """How many processes are joined."""
    return _world().size()


def get_backend(group: Any = None) -> str:
    """The name that `init_process_group` was given."""
    return _world().name()


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers of the processes in a group."""
    return [_world().rank()]


def _finish(asynchronously: bool) -> Work | None:
    return Work() if asynchronously else None


def _copy(targets: Sequence[Any], sources: Sequence[Any], asynchronously: bool = False) -> Work | None:
    _world()
    with no_grad():
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
    return _finish(asynchronously)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Join the tensors of all processes: of one, it stays as it is."""
    _world()
    return _finish(async_op)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `all_reduce`, for one receiver."""
    return all_reduce(tensor, op, group, async_op)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Send a tensor to everybody else: to nobody."""
    return all_reduce(tensor, async_op=async_op)


def broadcast_object_list(object_list: list[Any], src: int | None = None, *args: Any, **options: Any) -> None:
    """Send objects to everybody else: to nobody."""
    _world()


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for everybody else: for nobody."""
    _world()
    return _finish(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`."""
    _world()


def all_gather(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Copy the tensors of all processes into a list."""
    return _copy(tensor_list, [tensor], async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all processes into one."""
    return _copy([output_tensor.view(input_tensor.shape)], [input_tensor], async_op)


reduce_scatter_tensor = all_to_all_single = all_gather_into_tensor


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into a list."""
    _world()
    object_list[0] = obj


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, *args: Any, **options: Any) -> None:
    """As `all_gather_object`, for one receiver."""
    if object_gather_list is not None:
        all_gather_object(object_gather_list, obj)


def gather(
    tensor: Any, gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `all_gather`, for one receiver."""
    return _copy(gather_list or [tensor], [tensor], async_op)


def scatter(
    tensor: Any, scatter_list: list[Any] | None = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give every process its tensor of a list."""
    return _copy([tensor], scatter_list or [tensor], async_op)


def reduce_scatter(
    output: Any, input_list: list[Any], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Join the lists of all processes, and give every process its tensor."""
    return _copy([output], input_list, async_op)


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Any], group: Any = None, async_op: bool = False
) -> Work | None:
    """Send every process its tensor."""
    return _copy(output_tensor_list, input_tensor_list, async_op)


def _refuse(*args: Any, **kwargs: Any) -> Any:
    _world()
    raise ValueError("Invalid destination rank: a process cannot talk to itself, and there is no other")


send = recv = isend = irecv = _refuse
