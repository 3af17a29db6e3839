"""Collectives of any Python objects, which travel pickled. Only unpickle what ranks you trust have sent."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pullback
from pullback.distributed import collectives
from pullback.distributed.collectives import root_of
from pullback.distributed.point_to_point import recv, send
from pullback.distributed.process_group import group_of, rank_not_in_group

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def _packed(value: Any) -> Any:
    """An object as a tensor of bytes."""
    stream = io.BytesIO()
    pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    return pullback.frombuffer(bytearray(stream.getvalue()), dtype=pullback.uint8)


def _unpacked(data: Any) -> Any:
    return pickle.loads(bytes(data._array))


def _sizes(data: Any, group: Any) -> list[int]:
    """The length of what every rank has."""
    sizes = pullback.zeros(group_of(group).size(), dtype=pullback.int64)
    collectives.all_gather_into_tensor(sizes, pullback.tensor([data.numel()]), group)
    return list(map(int, sizes.tolist()))


def _padded(data: Any, size: int) -> Any:
    whole = pullback.zeros(size, dtype=pullback.uint8)
    whole[: data.numel()] = data
    return whole


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all ranks into the list of every rank.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> objects = [None]
    >>> all_gather_object(objects, {"epoch": 3})
    >>> objects
    [{'epoch': 3}]
    >>> dist.destroy_process_group()
    """
    if rank_not_in_group(group):
        return
    data = _packed(obj)
    sizes = _sizes(data, group)
    longest = max(sizes)
    everything = pullback.zeros(longest * len(sizes), dtype=pullback.uint8)
    collectives.all_gather_into_tensor(everything, _padded(data, longest), group)
    for index, size in enumerate(sizes):
        object_list[index] = _unpacked(everything[index * longest : index * longest + size])


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """As `all_gather_object`, but only `dst` (rank 0 unless given) gets the list."""
    if rank_not_in_group(group):
        return
    members = group_of(group)
    root = root_of(members, 0 if dst is None and group_dst is None else dst, group_dst)
    receives = members.rank() == root
    if receives and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not receives and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data = _packed(obj)
    sizes = _sizes(data, group)
    parts = [pullback.zeros(max(sizes), dtype=pullback.uint8) for _ in sizes] if receives else None
    collectives.gather(_padded(data, max(sizes)), parts, group=group, group_dst=root)
    if receives and parts is not None and object_gather_list is not None:
        object_gather_list[:] = [_unpacked(part[:size]) for part, size in zip(parts, sizes, strict=True)]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Replace the objects in the list of every rank by those of `src` (rank 0 unless given)."""
    if rank_not_in_group(group):
        return
    members = group_of(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    data = _packed(object_list) if members.rank() == root else None
    size = pullback.tensor([0 if data is None else data.numel(), len(object_list)])
    collectives.broadcast(size, group=group, group_src=root)
    if data is None:
        if int(size[1]) != len(object_list):
            raise ValueError(
                f"broadcast_object_list: the source has {int(size[1])} objects, this rank {len(object_list)}"
            )
        data = pullback.zeros(int(size[0]), dtype=pullback.uint8)
    collectives.broadcast(data, group=group, group_src=root)
    if members.rank() != root:
        object_list[:] = _unpacked(data)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put the i-th object of the list of `src` (rank 0 unless given) first in the output list of rank i."""
    if rank_not_in_group(group):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    members = group_of(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    parts, largest = None, pullback.zeros(1, dtype=pullback.int64)
    if members.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != members.size():
            raise ValueError(f"scatter_object_list: the source must give {members.size()} objects, one for every rank")
        data = [_packed(value) for value in scatter_object_input_list]
        largest.fill_(max(each.numel() for each in data))
        parts = [_padded(each, int(largest)) for each in data]
    collectives.broadcast(largest, group=group, group_src=root)
    own = pullback.zeros(int(largest), dtype=pullback.uint8)
    collectives.scatter(own, parts, group=group, group_src=root)
    scatter_object_output_list[0] = _unpacked(own)


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send objects to one rank."""
    if rank_not_in_group(group):
        return
    data = _packed(object_list)
    send(pullback.tensor([data.numel()]), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """Receive objects from one rank, or from any; return whose they were."""
    if rank_not_in_group(group):
        return -1
    size = pullback.zeros(1, dtype=pullback.int64)
    source = recv(size, src, group, group_src=group_src)
    data = pullback.zeros(int(size), dtype=pullback.uint8)
    recv(data, source, group)
    object_list[:] = _unpacked(data)
    return source
