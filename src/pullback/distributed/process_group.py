"""ProcessGroup: processes that take part in collectives together, and the registry of groups."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pullback.backend.array_module import empty
from pullback.backend.dtype import uint8
from pullback.creation import tensor as new_bytes
from pullback.distributed import debug, mpi
from pullback.distributed.by_device import CommunicatorByDevice
from pullback.distributed.communicator import Communicator, Request
from pullback.distributed.errors import DistBackendError
from pullback.distributed.group_collectives import GroupCollectives
from pullback.distributed.ledger import Ledger
from pullback.distributed.meeting import Meeting
from pullback.distributed.progress import Progress
from pullback.distributed.work import Work

__all__ = [
    "GroupMember", "ProcessGroup", "get_backend", "get_backend_config", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "is_initialized",
]  # fmt: skip

default_pg_timeout = timedelta(minutes=30)
"""How long a collective waits for other ranks unless another timeout is given."""

NON_GROUP_MEMBER = -100
"""What `new_group` returns to ranks that are not in the group."""


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
        group_desc: str = "undefined", state: Shared | None = None,
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

    def _getbackend_name(self) -> str:
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


class Shared:
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


class Registry(type):
    """PyTorch's names for the group of all processes, and for no group."""

    world: ProcessGroup | None = None
    shared: Shared | None = None
    meeting: Meeting | None = None
    groups: dict[str, ProcessGroup] = {}
    made = 0
    NON_GROUP_MEMBER: Any = NON_GROUP_MEMBER

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return Registry.world

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        Registry.world = value


class group(metaclass=Registry):
    """The group of all processes: none while nothing is initialised."""


class GroupMember(metaclass=Registry):
    """The same, under an older name."""


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return Registry.world is not None


def _get_default_group() -> ProcessGroup:
    if Registry.world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return Registry.world


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


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that is not a timedelta."""
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


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
    return len(Registry.groups)


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of this name."""
    if group_name not in Registry.groups:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return Registry.groups[group_name]


def _get_process_group_name(group: Any) -> str:
    return group_of(group).group_name
