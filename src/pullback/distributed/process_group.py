"""ProcessGroup: processes that take part in collectives together, and the registry of groups."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, ClassVar

from pullback.backend.array_module import empty
from pullback.backend.dtype import uint8
from pullback.creation import tensor as new_bytes
from pullback.distributed import debug, mpi
from pullback.distributed.by_device import CommunicatorByDevice
from pullback.distributed.communicator import Communicator, Request, SoleCommunicator
from pullback.distributed.environment import find_master, find_placement, has_process_manager
from pullback.distributed.errors import DistBackendError
from pullback.distributed.group_collectives import GroupCollectives
from pullback.distributed.ledger import Ledger
from pullback.distributed.meeting import Meeting, meet
from pullback.distributed.progress import Progress
from pullback.distributed.work import Work

__all__ = [
    "Backend", "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group",
]  # fmt: skip

default_pg_timeout = timedelta(minutes=30)
"""How long a collective waits for other ranks unless another timeout is given."""

NON_GROUP_MEMBER = -100
"""What `new_group` returns to ranks that are not in the group."""

_log = logging.getLogger("pullback.distributed")


class Backend(str):
    """The name of a backend, in lower case.

    >>> Backend("GLOO") == Backend.GLOO == "gloo"
    True
    """

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"
    XCCL = "xccl"
    backend_list: ClassVar = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]
    default_device_backend_map: ClassVar = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name!r}")
        return super().__new__(cls, name.lower())


def get_default_backend_for_device(device: Any) -> str:
    """The backend that tensors on a device are sent by.

    >>> get_default_backend_for_device("cpu")
    'gloo'
    """
    return "nccl" if str(device).startswith("cuda") else "gloo"


class ProcessGroup(GroupCollectives):
    """Processes that take part in collectives together.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> dist.group.WORLD.rank(), dist.group.WORLD.size(), dist.group.WORLD.name()
    (0, 1, 'gloo')
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, communicator: Communicator, ranks: Sequence[int], backend: str, timeout: timedelta, group_name: str,
        group_desc: str = "undefined", state: _Shared | None = None,
    ) -> None:  # fmt: skip
        self.communicator = communicator
        self.ranks = list(ranks)
        self.timeout = timeout
        self.group_name = group_name
        self.group_desc = group_desc
        self.batch: list[Work] | None = None
        self.is_destroyed = False
        self._backend = backend
        self._number = 0
        self._shared = state
        self._checker: Communicator | None = None
        self._kept: list[Any] = []
        self._position = {rank: index for index, rank in enumerate(self.ranks)}
        if isinstance(communicator, CommunicatorByDevice):
            communicator.wait_by(self._wait_for_others)

    def _wait_for_others(self, request: Request) -> None:
        Work(self, "the start of NCCL", self._number, [request]).wait()

    def rank(self) -> int:
        """The number of this process in the group."""
        return self.communicator.rank

    def size(self) -> int:
        """How many processes are in the group."""
        return self.communicator.size

    def name(self) -> str:
        """The name of the backend."""
        return self._backend

    def global_rank(self) -> int:
        """The number of this process among all."""
        return self.ranks[self.communicator.rank]

    def position(self, rank: int) -> int:
        """The number in the group of the process that has the number `rank` among all."""
        if self.is_destroyed:
            raise ValueError(_unregistered(self))
        if rank not in self._position:
            raise ValueError(f"Global rank {rank} is not part of group {self.group_name}, which has {self.ranks}")
        return self._position[rank]

    @property
    def ledger(self) -> Ledger | None:
        """What the ranks tell each other about where they are; None in a group of one process without MPI."""
        return None if self._shared is None else self._shared.ledger

    def watch(self, work: Work) -> None:
        """Help `work` along in the background."""
        if self._shared is not None:
            self._shared.progress.watch(work)

    def poll(self) -> None:
        """Help everything that is under way along, once."""
        if self._shared is not None:
            self._shared.progress.poll()

    def keep(self, *memory: Any) -> None:
        """Keep memory that a collective, given up, may still write to."""
        self._kept.extend(memory)
        if self._shared is not None:
            self._shared.is_broken = True

    def start(
        self, name: str, begin: Callable[[Communicator], Request | Sequence[Request]], *, tensors: Sequence[Any] = (),
        details: str = "", finish: Callable[[], None] | None = None, result: Sequence[Any] = (), async_op: bool = False,
        timeout: timedelta | None = None,
    ) -> Work | None:  # fmt: skip
        """Begin a collective of all ranks; wait for it unless `async_op`. `tensors` must be alike on all ranks."""
        self._number += 1
        if self._shared is not None:
            self._shared.ledger.enter(self.group_name, self._number, name)
            if debug.get_debug_level() is debug.DebugLevel.DETAIL:
                self._compare(name, tensors, details)
        return self._follow(name, begin(self.communicator), finish, result, async_op, timeout)

    def start_message(
        self, name: str, begin: Callable[[Communicator], Request], result: Sequence[Any],
        finish: Callable[[], None] | None = None, async_op: bool = False,
    ) -> Work | None:  # fmt: skip
        """Begin what only two ranks take part in."""
        return self._follow(name, begin(self.communicator), finish, result, async_op, None)

    def _follow(
        self, name: str, requests: Request | Sequence[Request], finish: Callable[[], None] | None, result: Sequence[Any],
        async_op: bool, timeout: timedelta | None,
    ) -> Work | None:  # fmt: skip
        several = requests if isinstance(requests, Sequence) else [requests]
        work = Work(self, name, self._number, several, finish, result)
        if self.batch is not None:
            self.batch.append(work)
            return work
        if async_op:
            if not work.poll():
                self.watch(work)
            return work
        work.wait(timeout)
        return None

    def _compare(self, name: str, tensors: Sequence[Any], details: str) -> None:
        """Raise on all ranks if they are not about to do the same. See debug.py."""
        if self._checker is None:
            self._checker = self.communicator.duplicate()  # type: ignore[attr-defined]  # MPI's alone is shared
        line = debug.encode(debug.describe(name, self._number, tensors, details))
        own = new_bytes(list(line), dtype=uint8)._array
        all_lines = empty((self.size() * debug.LINE,), own.dtype)
        Work(self, name, self._number, [self._checker.all_gather(all_lines, own)]).wait()
        lines = [bytes(part).decode(errors="replace").rstrip() for part in all_lines.reshape(self.size(), -1)]
        if any(other != lines[0] for other in lines):
            raise DistBackendError(debug.disagreement(lines, self.ranks))

    def _get_backend_name(self) -> str:
        return self._backend

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait this long for other ranks from now on."""
        self.timeout = timeout

    def shutdown(self) -> None:
        """Take part in nothing any more."""

    abort = shutdown

    def __repr__(self) -> str:
        return f"<ProcessGroup '{self.group_name}' of ranks {self.ranks} ({self._backend})>"


class _Shared:
    """What all groups of a process share: the ledger, and the thread that helps along."""

    is_broken = False

    def __init__(self, world: mpi.MpiCommunicator, meeting: Meeting | None) -> None:
        self.ledger = Ledger(world.duplicate().comm)
        self._meeting = meeting
        if meeting is not None:
            meeting.on_departure = self.ledger.note_departure
        self.progress = Progress(self.ledger)
        atexit.register(self._leave)

    def _leave(self) -> None:
        """End with the others; where one of them gave a collective up, MPI cannot end in an orderly way."""
        self.progress.stop()
        sys.stdout.flush()
        sys.stderr.flush()
        if self.ledger.leave_together(self.is_broken):
            os._exit(0)
        if self._meeting is not None:
            self._meeting.leave()


class _Registry(type):
    """PyTorch's names for the group of all processes, and for no group."""

    world: ProcessGroup | None = None
    shared: _Shared | None = None
    meeting: Meeting | None = None
    groups: dict[str, ProcessGroup] = {}
    made = 0
    NON_GROUP_MEMBER: Any = NON_GROUP_MEMBER

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _Registry.world

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _Registry.world = value


class group(metaclass=_Registry):
    """The group of all processes: none while nothing is initialised."""


class GroupMember(metaclass=_Registry):
    """The same, under an older name."""


def is_available() -> bool:
    """Whether programs can ask for process groups.

    >>> is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _Registry.world is not None


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return mpi.is_installed()


def is_gloo_available() -> bool:
    """Whether "gloo" is understood: it is, and means MPI."""
    return True


def is_nccl_available() -> bool:
    """Whether CuPy with NCCL is installed."""
    from pullback.distributed import nccl

    return nccl.is_installed()


def is_ucc_available() -> bool:
    """Never: PyTorch's other backends are not here."""
    return False


is_xccl_available = is_ucc_available


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be asked for.

    >>> is_backend_available("gloo"), is_backend_available("smoke signals")
    (True, False)
    """
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return backend.lower() in known and known[backend.lower()]()


def is_torchelastic_launched() -> bool:
    """Whether `pullback launch` or `python -m pullback.distributed.run` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _get_default_group() -> ProcessGroup:
    if _Registry.world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _Registry.world


def group_of(given: Any) -> ProcessGroup:
    """The group that a program means: the one of all processes if it gives none."""
    if given is None or given is group or given is GroupMember:
        return _get_default_group()
    if rank_not_in_group(given):
        raise ValueError("Invalid process group specified: this process is not in it")
    if not isinstance(given, ProcessGroup):
        raise ValueError(_unregistered(given))
    return given


def _registered(given: Any) -> ProcessGroup:
    """The group that a program means, which it has not destroyed."""
    found = group_of(given)
    if found.is_destroyed:
        raise ValueError(_unregistered(given))
    return found


def _unregistered(given: Any) -> str:
    return (
        f"Process group {given} is not initialized in the world group map. Please initialize the group first: new_group "
        "makes one, and destroy_process_group ends it."
    )


def rank_not_in_group(given: Any) -> bool:
    """Whether this process is not in the group."""
    return isinstance(given, int) and given == NON_GROUP_MEMBER


_rank_not_in_group = rank_not_in_group


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
    **options: Any,
) -> None:  # fmt: skip
    """Join the processes that were started together; alone, be a group of one.

    Processes that `pullback launch`, `mpiexec` or `srun` started talk through MPI, whichever backend is named ("nccl" for
    tensors on GPUs); their rank and number are known. Otherwise `RANK` and `WORLD_SIZE` count where they are not given,
    and processes meet at `MASTER_ADDR` and `MASTER_PORT`, or where `init_method` says.

    >>> init_process_group("gloo", rank=0, world_size=1)
    >>> get_rank(), get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    if _Registry.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    check_timeout(timeout)
    _check_meeting_place(init_method, store, rank, world_size)
    name = _backend_name(backend)
    placement = find_placement()
    limit = timeout or default_pg_timeout
    if placement is not None and placement.world_size > 1:
        _agree("rank", rank, placement.rank)
        _agree("world_size", world_size, placement.world_size)
        if not has_process_manager():
            for variable, value in zip(("MASTER_ADDR", "MASTER_PORT"), find_master(), strict=True):
                os.environ.setdefault(variable, str(value))
            _Registry.meeting = meet(None, placement.rank, placement.world_size, limit)
        _Registry.world = _join_others(name, limit, _Registry.meeting)
        _check_size(placement.world_size)
    elif (place := _given_place(rank, world_size, init_method))[1] > 1:
        _Registry.meeting = _Registry.meeting or meet(init_method, *place, limit, store)
        _Registry.world = _join_others(name, limit, _Registry.meeting)
        _check_size(place[1])
    else:
        _Registry.world = ProcessGroup(SoleCommunicator(), [0], name, limit, "0", "default_pg")
    _Registry.groups = {"0": _Registry.world}
    _Registry.made = 1


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


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that is not a timedelta."""
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _backend_name(backend: str | None) -> str:
    """The backend for tensors in main memory of what may be "cpu:gloo,cuda:nccl"."""
    given = str(backend or "gloo").lower()
    if ":" in given:
        pairs = dict(pair.split(":", 1) for pair in given.split(","))
        given = pairs.get("cpu") or next(iter(pairs.values()))
    if given not in ("gloo", "mpi", "nccl", "undefined", "fake"):
        raise ValueError(f"Invalid backend: '{given}': pullback knows mpi, nccl, and gloo, which means mpi")
    return "gloo" if given == "undefined" else given


def _agree(name: str, given: int, actual: int) -> None:
    if given not in (-1, actual):
        raise ValueError(
            f"init_process_group was given {name}={given}, but the program that started this process says {actual}: leave "
            "it out, or pass what the environment variables RANK and WORLD_SIZE say"
        )


def _join_others(backend: str, timeout: timedelta, meeting: Meeting | None) -> ProcessGroup:
    world = mpi.world()
    if _Registry.shared is None:
        _Registry.shared = _Shared(world, meeting)
        _end_all_on_failure()
        if backend == "gloo" and world.rank == 0:
            _log.warning("pullback: the backend 'gloo' means MPI here; results are the same to rounding")
    on_device = None
    if backend == "nccl":
        from pullback.distributed import nccl

        on_device = nccl.NcclCommunicator.join(world)
    communicator = CommunicatorByDevice(world.duplicate(), on_device)
    return ProcessGroup(communicator, range(world.size), backend, timeout, "0", "default_pg", _Registry.shared)


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
        _Registry.world = None
        _Registry.groups = {}
        return
    if not isinstance(group, ProcessGroup) or group.is_destroyed:
        raise ValueError(f"Invalid process group specified: {group}")
    group.is_destroyed = True
    _Registry.groups.pop(group.group_name, None)


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """A group of some processes. All processes must call this, in the same order; those outside get no group.

    >>> init_process_group("gloo", rank=0, world_size=1)
    >>> get_process_group_ranks(new_group([0]))
    [0]
    >>> destroy_process_group()
    """
    world = _get_default_group()
    check_timeout(timeout)
    chosen = list(range(world.size())) if ranks is None else [int(rank) for rank in ranks]
    if sort_ranks:
        chosen.sort()
    _check_ranks(chosen, world)
    number = _Registry.made
    _Registry.made += 1
    if world.rank() not in chosen:
        return NON_GROUP_MEMBER
    made = ProcessGroup(
        world.communicator.subgroup(chosen, number), chosen, world.name() if backend is None else _backend_name(backend),
        timeout or world.timeout, str(number), group_desc or "undefined", _Registry.shared if world.size() > 1 else None,
    )  # fmt: skip
    _Registry.groups[made.group_name] = made
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


def get_rank(group: Any = None) -> int:
    """The number of this process in a group; -1 outside of it."""
    return -1 if rank_not_in_group(group) else _registered(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes are in a group; -1 outside of it."""
    return -1 if rank_not_in_group(group) else group_of(group).size()


def get_backend(group: Any = None) -> str:
    """The name of the backend that was asked for."""
    if rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _registered(group).name()


def get_backend_config(group: Any = None) -> str:
    """The backend of each kind of device, as in `cpu:gloo,cuda:gloo`."""
    name = get_backend(group)
    return f"cuda:{name}" if name == "nccl" else f"cpu:{name},cuda:{name}"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers, among all processes, of those in a group."""
    return list(_registered(group).ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in `group` of the process that has `global_rank` among all."""
    return group_of(group).position(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number among all of the process that has `group_rank` in `group`."""
    ranks = group_of(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group_of(group).group_name}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, as LOCAL_RANK says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context, or start the program with pullback launch."
    )


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_Registry.groups)


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of this name."""
    if group_name not in _Registry.groups:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return _Registry.groups[group_name]


def _get_process_group_name(group: Any) -> str:
    return group_of(group).group_name
