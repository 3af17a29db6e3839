"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from pullback.distributed.buffers import check_tensor, flat, writable, write
from pullback.distributed.by_device import CommunicatorByDevice
from pullback.distributed.collectives import root_of
from pullback.distributed.process_group import ProcessGroup, group_of, rank_not_in_group
from pullback.distributed.work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _peer(group: ProcessGroup, rank: int | None, group_rank: int | None, which: str) -> int:
    found = root_of(group, rank, group_rank)
    if found == group.rank():
        raise ValueError(
            f"Invalid {which} rank: {which} rank should not be the same as the rank of the current process."
        )
    return found


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to `dst`; it must not be written to before the Work is done."""
    check_tensor(tensor, "tensor")
    if rank_not_in_group(group):
        return None
    members = group_of(group)
    peer = _peer(members, dst, group_dst, "destination")
    values = flat(tensor)
    return members.start_message(
        f"send to rank {members.ranks[peer]}", lambda comm: comm.send(values, peer, tag), [tensor], async_op=True
    )


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive a tensor from `src`, or from any rank."""
    check_tensor(tensor, "tensor")
    if rank_not_in_group(group):
        return None
    members = group_of(group)
    peer = None if src is None and group_src is None else _peer(members, src, group_src, "source")
    values = writable(tensor)
    name = "recv from any rank" if peer is None else f"recv from rank {members.ranks[peer]}"
    return members.start_message(
        name,
        lambda comm: comm.receive(values, peer, tag),
        [tensor],
        finish=lambda: write(tensor, values),
        async_op=True,
    )


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to `dst`."""
    if dst is None and group_dst is None:
        raise ValueError("Must specify global_rank or group_rank")
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None and group_of(group).batch is None:
        work.wait()


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from `src`, or from any rank; return whose it was (-1 outside of the group)."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One `isend` or `irecv` of several that are to begin together."""

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = group
        self.tag = tag
        members = group_of(group)
        self.group_peer = root_of(members, peer, group_peer)
        self.peer = members.ranks[self.group_peer]

    def __repr__(self) -> str:
        members = group_of(self.group)
        return (
            f"P2POp({self.op.__name__} pg={members.group_name}, group_src={members.rank()}, group_dst={self.group_peer}, "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages at once; their order does not matter."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    by_group: dict[str, list[P2POp]] = {}
    for each in p2p_op_list:
        by_group.setdefault(group_of(each.group).group_name, []).append(each)
    with ExitStack() as blocks:
        for ops in by_group.values():
            communicator = group_of(ops[0].group).communicator
            if isinstance(communicator, CommunicatorByDevice):
                blocks.enter_context(communicator.together([each.tensor._array for each in ops]))
        begun = [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
    return [work for work in begun if work is not None]
