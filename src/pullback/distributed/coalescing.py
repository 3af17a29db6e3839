"""Several collectives begun together and waited for once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.distributed.buffers import divide, joined
from pullback.distributed.process_group import ProcessGroup, group_of
from pullback.distributed.work import Work

__all__ = ["_CoalescingManager", "_coalescing_manager", "broadcast_together"]


class _CoalescingManager:
    """The collectives that were begun in the block."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Wait for this one too."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of them."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Begin the collectives of the block without waiting for each; with `async_ops` wait with the manager's `wait()`."""
    members = group_of(group)
    if members.batch is not None:
        raise RuntimeError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = _CoalescingManager()
    members.batch = manager.works
    try:
        yield manager
    finally:
        members.batch = None
    for work in manager.works:
        members.watch(work)
    if not async_ops:
        manager.wait()


def broadcast_together(tensors: Sequence[Any], group: ProcessGroup, source: int = 0) -> None:
    """Replace the tensors of every rank by those of one rank of the group, those of one dtype in one message."""
    by_dtype: dict[Any, list[Any]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    works = [_begin_broadcast(alike, group, source) for alike in by_dtype.values()]
    for work in works:
        work.wait()


def _begin_broadcast(tensors: Sequence[Any], group: ProcessGroup, source: int) -> Work:
    values = joined(tensors)
    work = group.start(
        "broadcast", lambda comm: comm.broadcast(values, source), tensors=tensors, details=f"from {source}",
        finish=None if group.rank() == source else lambda: divide(values, tensors), async_op=True,
    )  # fmt: skip
    assert work is not None
    return work


def _broadcast_coalesced(process_group: Any, tensors: Sequence[Any], buffer_size: int = 0, src: int = 0) -> None:
    """PyTorch's name for `broadcast_together`."""
    broadcast_together(tensors, group_of(process_group), src)
