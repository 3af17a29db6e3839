"""Uneven inputs: ranks that have run out of data take part in the communication of those that have not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pullback
from pullback.distributed import collectives
from pullback.distributed.coalescing import broadcast_together
from pullback.distributed.process_group import ProcessGroup, group_of
from pullback.distributed.reduce_operation import ReduceOp
from pullback.modes.user_warnings import warn_user

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank without data does: once per pass of the others, and at the end."""

    def main_hook(self) -> None:
        """Take part in the communication of one pass."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Agree at the end; `is_last_joiner` says whether this rank was among the last to have data."""


@dataclass
class JoinConfig:
    """What a joinable knows of the block it is in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool
    divides_by_all: bool = True

    @staticmethod
    def disabled() -> JoinConfig:
        """Outside of every block."""
        return JoinConfig(False, False, False)


class Joinable:
    """What can take part in a `Join` block: it tells once per pass that it still has data."""

    def __init__(self) -> None:
        self._join_config = JoinConfig.disabled()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without data does."""
        raise NotImplementedError(f"{type(self).__name__} must say what a rank without data does")

    @property
    def join_device(self) -> Any:
        """Where the ranks count themselves."""
        return pullback.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The ranks that take part."""
        return None


@dataclass
class Pass:
    """What one pass of a rank communicates, and the rank whose values count for all."""

    has_data: bool
    synchronises: bool
    rebuilds: bool
    sends_buffers: bool
    source: int = 0

    def agree(self, group: ProcessGroup) -> Pass:
        """What the ranks that have data do; the highest of them is the source."""
        own = pullback.tensor(
            [self.has_data, self.synchronises, self.rebuilds, self.sends_buffers], dtype=pullback.int32
        )
        found = pullback.zeros(group.size(), 4, dtype=pullback.int32)
        collectives.all_gather_into_tensor(found, own, group)
        rows = found.tolist()
        source = max(rank for rank, row in enumerate(rows) if row[0])
        _, synchronises, rebuilds, sends_buffers = map(bool, rows[source])
        return Pass(self.has_data, synchronises, rebuilds, sends_buffers, source)


def _count(group: ProcessGroup, has_data: bool) -> int:
    count = pullback.tensor([int(has_data)])
    collectives.all_reduce(count, group=group)
    return int(count)


class Join:
    """A block in which ranks may run out of data at different times.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> module = pullback.nn.parallel.DistributedDataParallel(pullback.nn.Linear(1, 1))
    >>> with Join([module]):
    ...     for _ in range(2):
    ...         module(pullback.ones(1, 1)).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: Sequence[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = list(joinables)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in self._joinables]
        self._enable = enable
        self._throw = throw_on_early_termination
        self._group = group_of(joinables[0].join_process_group)
        for index, joinable in enumerate(self._joinables):
            joinable._join_config = JoinConfig(
                enable, throw_on_early_termination, index == 0, kwargs.get("divide_by_initial_world_size", True)
            )

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if self._enable and kind is None:
                self._stand_in()
        finally:
            for joinable in self._joinables:
                joinable._join_config = JoinConfig.disabled()

    def _stand_in(self) -> None:
        """Take part until no rank has data any more."""
        is_last = True
        passes = 0
        while _count(self._group, False):
            if self._throw:
                _count(self._group, True)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            is_last = False
            passes += 1
            if passes == 1000:
                warn_user(
                    "Detected uneven input skew of greater than 1000. This means that a rank runs ahead of another by more "
                    "than 1000 passes: divide the data more evenly."
                )
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Any) -> int:
        """Tell the ranks without data that this one begins a pass; return how many ranks have data.

        Of several joinables only the first tells; the others get the size of the group.
        """
        config = joinable._join_config
        group = group_of(joinable.join_process_group)
        if not config.enable or not config.is_first_joinable:
            return group.size()
        active = _count(group, True)
        if config.throw_on_early_termination and active < group.size():
            _count(group, False)
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return active


class DdpJoinHook(JoinHook):
    """What DistributedDataParallel does on a rank without data."""

    def __init__(self, module: Any, divides_by_all: bool) -> None:
        self._module = module

    def main_hook(self) -> None:
        """Take part in everything that one pass communicates."""
        module = self._module
        group = module.process_group
        others = Pass(False, False, False, False).agree(group)
        if others.synchronises and others.rebuilds:
            module.reducer.rebuild(others.source)
        if others.sends_buffers:
            broadcast_together([buffer for _, buffer in module._buffers_to_sync], group, others.source)
        if others.synchronises:
            module.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the module of a rank that had data to the end."""
        module = self._module
        group = module.process_group
        source = pullback.tensor([group.rank() if is_last_joiner else -1])
        collectives.all_reduce(source, ReduceOp.MAX, group)
        state = module.module.state_dict(keep_vars=True)
        broadcast_together(
            [value for value in state.values() if isinstance(value, pullback.Tensor)], group, int(source)
        )
