"""init_process_group: how the processes of a program find each other, and end together when one fails."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from datetime import timedelta
from types import TracebackType
from typing import Any

from pullback.distributed import mpi
from pullback.distributed.backends import backend_name
from pullback.distributed.by_device import CommunicatorByDevice
from pullback.distributed.communicator import SoleCommunicator
from pullback.distributed.environment import find_master, find_placement, has_process_manager
from pullback.distributed.meeting import Meeting, meet
from pullback.distributed.process_group import (
    ProcessGroup,
    Registry,
    Shared,
    _get_default_group,
    check_timeout,
    default_pg_timeout,
    rank_not_in_group,
)

__all__ = ["destroy_process_group", "init_process_group"]

_log = logging.getLogger("pullback.distributed")


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
    **options: Any,
) -> None:  # fmt: skip
    """Join the processes that were started together; alone, be a group of one.

    Processes that `pullback launch`, `mpiexec` or `srun` started talk through MPI, whichever backend is named ("nccl" for
    tensors on GPUs); their rank and number are known. Otherwise `RANK` and `WORLD_SIZE` count where they are not given,
    and processes meet at `MASTER_ADDR` and `MASTER_PORT`, or where `init_method` says.

    >>> import pullback.distributed as dist
    >>> init_process_group("gloo", rank=0, world_size=1)
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    if Registry.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    check_timeout(timeout)
    _check_meeting_place(init_method, store, rank, world_size)
    name = backend_name(backend)
    placement = find_placement()
    limit = timeout or default_pg_timeout
    if placement is not None and placement.world_size > 1:
        _agree("rank", rank, placement.rank)
        _agree("world_size", world_size, placement.world_size)
        if not has_process_manager():
            for variable, value in zip(("MASTER_ADDR", "MASTER_PORT"), find_master(), strict=True):
                os.environ.setdefault(variable, str(value))
            Registry.meeting = meet(None, placement.rank, placement.world_size, limit)
        Registry.world = _join_others(name, limit, Registry.meeting)
        _check_size(placement.world_size)
    elif (place := _given_place(rank, world_size, init_method))[1] > 1:
        Registry.meeting = Registry.meeting or meet(init_method, *place, limit, store)
        Registry.world = _join_others(name, limit, Registry.meeting)
        _check_size(place[1])
    else:
        Registry.world = ProcessGroup(SoleCommunicator(), [0], name, limit, "0", "default_pg")
    Registry.groups = {"0": Registry.world}
    Registry.made = 1


def _check_meeting_place(init_method: str | None, store: Any, rank: int, world_size: int) -> None:
    if store is not None:
        if init_method is not None:
            raise AssertionError("Cannot specify both init_method and store.")
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    elif init_method is not None and not init_method.startswith(("env://", "tcp://", "file://")):
        raise RuntimeError(
            f"No rendezvous handler for {init_method.partition('://')[0]}://: processes meet at env://, tcp://host:port "
            "or file:///path"
        )


def _agree(name: str, given: int, actual: int) -> None:
    if given not in (-1, actual):
        raise ValueError(
            f"init_process_group was given {name}={given}, but the program that started this process says {actual}: leave "
            "it out, or pass what the environment variables RANK and WORLD_SIZE say"
        )


def _join_others(backend: str, timeout: timedelta, meeting: Meeting | None) -> ProcessGroup:
    world = mpi.world()
    if Registry.shared is None:
        Registry.shared = Shared(world, meeting)
        _end_all_on_failure()
        if backend == "gloo" and world.rank == 0:
            _log.warning("pullback: the backend 'gloo' means MPI here; results are the same to rounding")
    on_device = None
    if backend == "nccl":
        from pullback.distributed import nccl

        on_device = nccl.NcclCommunicator.join(world)
    communicator = CommunicatorByDevice(world.duplicate(), on_device)
    return ProcessGroup(communicator, range(world.size), backend, timeout, "0", "default_pg", Registry.shared)


def _given_place(rank: int, world_size: int, init_method: str | None) -> tuple[int, int]:
    """The rank and the number of ranks that the arguments, a query, or the environment give."""
    query = dict(part.split("=") for part in (init_method or "").partition("?")[2].split("&") if "=" in part)
    given = {"RANK": int(query.get("rank", rank)), "WORLD_SIZE": int(query.get("world_size", world_size))}
    scheme = (init_method or "env://").partition("://")[0]
    for name, value in given.items():
        if value < 0 and name not in os.environ:
            missing = f"environment variable {name} expected, but not set"
            if scheme == "tcp":
                missing = f"{name.lower().replace('_', ' ')} parameter missing"
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: {missing}: start the program with "
                "'pullback launch -n 2 script.py', or give rank=0 and world_size=1"
            )
        given[name] = value if value >= 0 else int(os.environ[name])
    if given["RANK"] >= given["WORLD_SIZE"]:
        raise ValueError(f"rank {given['RANK']} must be less than world_size, which is {given['WORLD_SIZE']}")
    return given["RANK"], given["WORLD_SIZE"]


def _check_size(expected: int) -> None:
    if mpi.world().size != expected:
        raise RuntimeError(
            f"Distributed package doesn't have a way to find the other processes: the world has {expected}, but MPI knows "
            f"{mpi.world().size}. Processes that were not started together meet through MPICH only, and an mpiexec finds "
            "only those of its own kind of MPI; start them with "
            f"'pullback launch -n {expected} script.py', under Slurm with the --mpi option that fits."
        )


def _end_all_on_failure() -> None:
    """Let an uncaught exception of this rank end all ranks: they would wait for it for ever."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if before is sys.__excepthook__:
            show_failure(kind, error, trace)
        else:
            before(kind, error, trace)
        end_all(130 if kind is KeyboardInterrupt else 1)

    sys.excepthook = hook


def show_failure(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback whose lines say which rank it is of."""
    placement = find_placement()
    mark = f"[rank{placement.rank}]: " if placement is not None else ""
    lines = "".join(traceback.format_exception(kind, error, trace)).splitlines()
    sys.stderr.write("".join(f"{mark}{line}\n" for line in lines))


def end_all(status: int) -> None:
    """End this process without MPI's farewell: its launcher then ends all others, and passes the status on."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def destroy_process_group(group: Any = None) -> None:
    """End a group; all of them if none, or the one of all processes, is given."""
    world = _get_default_group()
    if rank_not_in_group(group):
        return
    if group is None or group is world:
        Registry.world = None
        Registry.groups = {}
        return
    if not isinstance(group, ProcessGroup) or group.is_destroyed:
        raise ValueError(f"Invalid process group specified: {group}")
    group.is_destroyed = True
    Registry.groups.pop(group.group_name, None)
