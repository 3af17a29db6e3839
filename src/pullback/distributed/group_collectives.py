"""Collectives as methods of a process group, which libraries written for PyTorch's C++ classes call.

They begin the collective and return its Work. Tensors come alone or in lists of one; ranks are those of the group; an
object of `options` may take the place of an operation or a root.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pullback.distributed.reduce_operation import ReduceOp
from pullback.distributed.work import Work

__all__ = ["GroupCollectives"]


def _alone(value: Any) -> Any:
    """A tensor that may come in a list."""
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError(f"requires a single tensor, but {len(value)} are given")
        return value[0]
    return value


def _lists(value: Any) -> Any:
    """A list of tensors that may come in a list."""
    return value[0] if value and isinstance(value[0], list | tuple) else value


def _chosen(given: Any, name: str, default: Any) -> Any:
    """An operation or a root: as it is, or from options."""
    return default if given is None else getattr(given, name, given)


def _limited(work: Work | None, timeout: timedelta | None, options: Any = None) -> Work:
    assert work is not None
    limit = timeout if timeout is not None else getattr(options, "timeout", None)
    if isinstance(limit, timedelta) and limit > timedelta(0):
        work.limit = limit
    return work


class GroupCollectives:
    """The methods of a ProcessGroup that communicate.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> values = pullback.ones(2)
    >>> dist.group.WORLD.allreduce([values]).wait()
    True
    >>> dist.destroy_process_group()
    """

    bound_device_id: Any = None

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, op: Any = None) -> Work:
        """See `distributed.all_reduce`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        how = _chosen(opts if op is None else op, "reduceOp", ReduceOp.SUM)
        return _limited(collectives.all_reduce(_alone(tensors), how, self, async_op=True), timeout, opts)

    def allreduce_coalesced(self, tensors: Sequence[Any], opts: Any = None) -> Work:
        """See `distributed.all_reduce_coalesced`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        how = _chosen(opts, "reduceOp", ReduceOp.SUM)
        return _limited(collectives.all_reduce_coalesced(list(tensors), how, self, async_op=True), None, opts)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, root: Any = None) -> Work:
        """See `distributed.broadcast`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        source = _chosen(opts if root is None else root, "rootRank", 0)
        work = collectives.broadcast(_alone(tensors), group=self, async_op=True, group_src=source)
        return _limited(work, timeout, opts)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> Work:
        """See `distributed.reduce`; the second argument is the root, or options."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        how = op if op is not None else getattr(opts, "reduceOp", ReduceOp.SUM)
        root = _chosen(opts, "rootRank", 0)
        work = collectives.reduce(_alone(tensors), op=how, group=self, async_op=True, group_dst=root)
        return _limited(work, timeout, opts)

    def allgather(self, output: Any, tensor: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """See `distributed.all_gather`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        return _limited(collectives.all_gather(_lists(output), _alone(tensor), self, async_op=True), timeout, opts)

    def _allgather_base(self, output: Any, tensor: Any, opts: Any = None) -> Work:
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        return _limited(collectives.all_gather_into_tensor(output, tensor, self, async_op=True), None, opts)

    def gather(self, output: Any, tensor: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """See `distributed.gather`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        root = _chosen(opts, "rootRank", 0)
        work = collectives.gather(_alone(tensor), _lists(output) or None, group=self, async_op=True, group_dst=root)
        return _limited(work, timeout, opts)

    def scatter(self, output: Any, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """See `distributed.scatter`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        root = _chosen(opts, "rootRank", 0)
        work = collectives.scatter(_alone(output), _lists(tensors) or None, group=self, async_op=True, group_src=root)
        return _limited(work, timeout, opts)

    def reduce_scatter(
        self, output: Any, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, op: Any = None
    ) -> Work:
        """See `distributed.reduce_scatter`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        how = _chosen(opts if op is None else op, "reduceOp", ReduceOp.SUM)
        work = collectives.reduce_scatter(_alone(output), _lists(tensors), how, self, async_op=True)
        return _limited(work, timeout, opts)

    def _reduce_scatter_base(self, output: Any, tensor: Any, opts: Any = None) -> Work:
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        how = _chosen(opts, "reduceOp", ReduceOp.SUM)
        return _limited(collectives.reduce_scatter_tensor(output, tensor, how, self, async_op=True), None, opts)

    def alltoall(self, output: Any, tensors: Any, opts: Any = None) -> Work:
        """See `distributed.all_to_all`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        return _limited(collectives.all_to_all(output, tensors, self, async_op=True), None, opts)

    def alltoall_base(
        self, output: Any, tensor: Any, output_split_sizes: Any, input_split_sizes: Any, opts: Any = None
    ) -> Work:
        """See `distributed.all_to_all_single`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        work = collectives.all_to_all_single(output, tensor, output_split_sizes, input_split_sizes, self, async_op=True)
        return _limited(work, None, opts)

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """See `distributed.isend`."""
        from pullback.distributed import point_to_point  # lazy: messages ask for groups

        return _limited(point_to_point.isend(_alone(tensors), group=self, tag=tag, group_dst=dstRank), None)

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """See `distributed.irecv`."""
        from pullback.distributed import point_to_point  # lazy: messages ask for groups

        return _limited(point_to_point.irecv(_alone(tensors), group=self, tag=tag, group_src=srcRank), None)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """See `distributed.irecv`."""
        from pullback.distributed import point_to_point  # lazy: messages ask for groups

        return _limited(point_to_point.irecv(_alone(tensors), group=self, tag=tag), None)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """See `distributed.barrier`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        return _limited(collectives.barrier(self, async_op=True), timeout, opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """See `distributed.monitored_barrier`."""
        from pullback.distributed import collectives  # lazy: collectives ask for groups

        collectives.monitored_barrier(self, timeout, wait_all_ranks)

    def _get_backend(self, device: Any) -> Any:
        """PyTorch has an object for every kind of device; here the group is all of them."""
        return self
