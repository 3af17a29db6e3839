"""PyTorch's collectives: what all ranks of a group do together, on tensors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pullback.backend.array_module import empty_beside
from pullback.backend.dtype import bool_ as bool_dtype
from pullback.backend.dtype import scalar_type_name
from pullback.distributed.buffers import (
    check_dtypes,
    check_tensor,
    check_tensors,
    divide,
    flat,
    joined,
    writable,
    write,
)
from pullback.distributed.errors import DistBackendError
from pullback.distributed.process_group import ProcessGroup, check_timeout, group_of, rank_not_in_group
from pullback.distributed.reduce_operation import RedOpType, ReduceOp, kind_of, supports_complex
from pullback.distributed.sparse_sums import sum_over_ranks
from pullback.distributed.work import Work
from pullback.modes.user_warnings import warn_user
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.typing import Array

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


def _outside(group: Any, name: str) -> bool:
    """Whether this process is not in the group, which is said once: the call then does nothing."""
    if not rank_not_in_group(group):
        return False
    warn_user(f"Running {name} on a global rank which does not belong to the given group.")
    return True


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The number in the group of a rank that is given among all, or in the group."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(f"Group rank {group_rank} is not part of group {group.group_name}")
        return group_rank
    if rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return group.position(rank)


class Joining:
    """A way of joining values, with what is done to them before and after."""

    def __init__(self, name: str, op: Any, tensor: Any, size: int) -> None:
        self.kind = kind_of(op)
        self._size = size
        self._factor = getattr(op, "factor", None)
        dtype = tensor.dtype
        if dtype.is_complex and not supports_complex(op):
            raise ValueError(f"{name} does not support {self.kind} on complex tensors")
        if self.kind in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and dtype.is_floating_point:
            raise RuntimeError(f"Cannot use ReduceOp.{self.kind.name} with non-integral dtype {dtype}")
        scales = self.kind is RedOpType.AVG
        if scales and not (dtype.is_floating_point or dtype.is_complex):
            wanted = scalar_type_name(tensor._array.dtype)
            raise RuntimeError(f"result type Float can't be cast to the desired output type {wanted}: sum and divide")
        self.op = RedOpType.MAX if dtype is bool_dtype and self.kind is RedOpType.SUM else self.kind

    def before(self, values: Array) -> None:
        """Multiply by the factor of a PREMUL_SUM."""
        if self._factor is not None:
            values *= values.dtype.type(float(self._factor))

    def after(self, values: Array) -> None:
        """Divide the sum of an AVG."""
        if self.kind is RedOpType.AVG:
            values /= values.dtype.type(self._size)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace the tensor of every rank by the sum (product, ...) of all of them.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> values = pullback.tensor([1.0, 2.0])
    >>> all_reduce(values)  # one rank: nothing is added
    >>> values
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    if isinstance(tensor, SparseTensor):
        return _sum_sparse(tensor, op, group, async_op)
    check_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    return _reduce_everywhere([tensor], op, group_of(group), "all_reduce", async_op)


def _sum_sparse(tensor: SparseTensor, op: Any, group: Any, async_op: bool) -> Work | None:
    if kind_of(op) is not RedOpType.SUM:
        raise RuntimeError(
            "all_reduce: unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)"
        )
    if _outside(group, "all_reduce"):
        return None
    members = group_of(group)
    tensor._sparse, tensor._dense = sum_over_ranks(tensor._sparse, members), None
    return (
        Work(members, "all_reduce", members._get_sequence_number_for_group(), [], None, [tensor]) if async_op else None
    )


def _reduce_everywhere(tensors: Sequence[Any], op: Any, group: ProcessGroup, name: str, async_op: bool) -> Work | None:
    """All-reduce tensors as one message."""
    joining = Joining(name, op, tensors[0], group.size())
    values = flat(tensors[0]) if len(tensors) == 1 else joined(tensors)
    joining.before(values)

    def finish() -> None:
        joining.after(values)
        divide(values, tensors)

    return group.start(
        name, lambda comm: comm.all_reduce(values, joining.op), tensors=tensors, details=joining.kind.name,
        finish=finish, result=tensors, async_op=async_op,
    )  # fmt: skip


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As `all_reduce` for several tensors of one dtype, in one message."""
    check_tensors(tensors, "tensor")
    if _outside(group, "all_reduce_coalesced"):
        return None
    return _reduce_everywhere(list(tensors), op, group_of(group), "all_reduce_coalesced", async_op)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `all_reduce`, but only `dst` gets the result."""
    check_tensor(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    members = group_of(group)
    root = root_of(members, dst, group_dst)
    joining = Joining("reduce", op, tensor, members.size())
    receives = members.rank() == root
    values = flat(tensor) if receives else flat(tensor).copy()
    joining.before(values)

    def finish() -> None:
        if receives:
            joining.after(values)
            write(tensor, values)

    return members.start(
        "reduce", lambda comm: comm.reduce(values, joining.op, root), tensors=[tensor],
        details=f"{joining.kind.name} to {root}", finish=finish, result=[tensor], async_op=async_op,
    )  # fmt: skip


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Replace the tensor of every rank by that of `src`."""
    check_tensor(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    members = group_of(group)
    root = root_of(members, src, group_src)
    values = flat(tensor)
    return members.start(
        "broadcast", lambda comm: comm.broadcast(values, root), tensors=[tensor], details=f"from {root}",
        finish=lambda: write(tensor, values), result=[tensor], async_op=async_op,
    )  # fmt: skip


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Copy the tensors of all ranks into the list of every rank.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> gathered = [pullback.zeros(2)]
    >>> all_gather(gathered, pullback.tensor([1.0, 2.0]))
    >>> gathered
    [tensor([1., 2.])]
    >>> dist.destroy_process_group()
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    if _outside(group, "all_gather"):
        return None
    members = group_of(group)
    _check_parts("allgather", tensor_list, tensor, members.size(), "output")
    values, own = empty_beside(tensor._array, (tensor.numel() * members.size(),), tensor._array.dtype), flat(tensor)
    return members.start(
        "all_gather", lambda comm: comm.all_gather(values, own), tensors=[tensor],
        finish=lambda: divide(values, tensor_list), result=tensor_list, async_op=async_op,
    )  # fmt: skip


def _check_parts(name: str, parts: Sequence[Any], tensor: Any, size: int, which: str) -> None:
    """One part for every rank, each as large as the tensor."""
    check_dtypes([*parts, tensor])
    if len(parts) != size:
        raise RuntimeError(
            f"{name}: invalid {which} tensor list at index 0 (expected length {size}, got {len(parts)}): there must be "
            "one tensor for every rank"
        )
    for index, part in enumerate(parts):
        if part.shape != tensor.shape:
            raise RuntimeError(
                f"{name}: invalid tensor size at index {index} (expected {tuple(tensor.shape)}, got {tuple(part.shape)})"
            )


def _check_multiple(name: str, large: Any, small: Any, size: int) -> None:
    if large.dtype is not small.dtype:
        raise TypeError(f"output tensor must have the same type as input tensor: {large.dtype} and {small.dtype}")
    if large.numel() != small.numel() * size:
        raise ValueError(
            f"{name}: the size of the larger tensor must be world_size times that of the smaller: "
            f"{list(large.shape)} is not {size} times {list(small.shape)}"
        )


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks, one after the other or stacked, into one tensor."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if _outside(group, "all_gather_into_tensor"):
        return None
    members = group_of(group)
    _check_multiple("all_gather_into_tensor", output_tensor, input_tensor, members.size())
    values, own = writable(output_tensor), flat(input_tensor)
    return members.start(
        "all_gather_into_tensor", lambda comm: comm.all_gather(values, own), tensors=[input_tensor],
        finish=lambda: write(output_tensor, values), result=[output_tensor], async_op=async_op,
    )  # fmt: skip


_all_gather_base = all_gather_single = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """As `all_gather` for several tensors of one dtype, in one message."""
    check_tensors(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for parts in output_tensor_lists:
        check_tensors(parts, "output_tensor_lists")
    if _outside(group, "all_gather_coalesced"):
        return None
    members = group_of(group)
    own = joined(input_tensor_list)
    values = empty_beside(own, (own.size * members.size(),), own.dtype)
    return members.start(
        "all_gather_coalesced", lambda comm: comm.all_gather(values, own), tensors=input_tensor_list,
        finish=lambda: divide(values, [tensor for parts in output_tensor_lists for tensor in parts]),
        result=output_tensor_lists, async_op=async_op,
    )  # fmt: skip


def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `all_gather`, but only `dst` (rank 0 unless given) gets the list."""
    check_tensor(tensor, "tensor")
    if _outside(group, "gather"):
        return None
    members = group_of(group)
    root = root_of(members, 0 if dst is None and group_dst is None else dst, group_dst)
    receives = members.rank() == root
    if gather_list is not None and not receives and len(gather_list):
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if receives:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_tensors(gather_list, "gather_list")
        _check_parts("gather", gather_list, tensor, members.size(), "output")
    own = flat(tensor)
    values = empty_beside(own, (tensor.numel() * members.size(),), own.dtype) if receives else None
    return members.start(
        "gather", lambda comm: comm.gather(values, own, root), tensors=[tensor], details=f"to {root}",
        finish=(lambda: divide(values, gather_list)) if receives else None, result=gather_list or [], async_op=async_op,
    )  # fmt: skip


def scatter(
    tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give every rank its tensor of the list that `src` (rank 0 unless given) has."""
    check_tensor(tensor, "tensor")
    if _outside(group, "scatter"):
        return None
    members = group_of(group)
    root = root_of(members, 0 if src is None and group_src is None else src, group_src)
    sends = members.rank() == root
    if scatter_list is not None and not sends and len(scatter_list):
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    if sends:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_tensors(scatter_list, "scatter_list")
        _check_parts("scatter", scatter_list, tensor, members.size(), "input")
    given = joined(scatter_list) if sends else None
    values = writable(tensor)
    return members.start(
        "scatter", lambda comm: comm.scatter(values, given, root), tensors=[tensor], details=f"from {root}",
        finish=lambda: write(tensor, values), result=[tensor], async_op=async_op,
    )  # fmt: skip


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Join the lists of all ranks tensor by tensor, and give every rank its tensor of the result."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    if _outside(group, "reduce_scatter"):
        return None
    check_dtypes([output, *input_list])
    members = group_of(group)
    if len(input_list) != members.size():
        raise RuntimeError(
            f"reduce_scatter: invalid input tensor list at index 0 (expected length {members.size()}, got {len(input_list)})"
        )
    if any(part.shape != output.shape for part in input_list):
        return _reduce_scatter_uneven(output, input_list, op, members, async_op)
    return _reduce_scatter(output, joined(input_list), op, members, "reduce_scatter", async_op)


def _reduce_scatter_uneven(output: Any, input_list: Any, op: Any, group: ProcessGroup, async_op: bool) -> Work | None:
    """Parts of different sizes: join all of them everywhere, and keep the own one."""
    joining = Joining("reduce_scatter", op, output, group.size())
    values = joined(input_list)
    joining.before(values)
    start = sum(part.numel() for part in input_list[: group.rank()])

    def finish() -> None:
        own = values[start : start + output.numel()]
        joining.after(own)
        write(output, own)

    return group.start(
        "reduce_scatter", lambda comm: comm.all_reduce(values, joining.op), tensors=input_list,
        details=joining.kind.name, finish=finish, result=[output], async_op=async_op,
    )  # fmt: skip


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As `reduce_scatter`, with the parts for all ranks one after the other, or stacked, in one tensor."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if _outside(group, "reduce_scatter_tensor"):
        return None
    members = group_of(group)
    _check_multiple("reduce_scatter_tensor", input, output, members.size())
    return _reduce_scatter(output, flat(input), op, members, "reduce_scatter_tensor", async_op)


_reduce_scatter_base = reduce_scatter_single = reduce_scatter_tensor


def _reduce_scatter(output: Any, given: Array, op: Any, group: ProcessGroup, name: str, async_op: bool) -> Work | None:
    joining = Joining(name, op, output, group.size())
    if joining.kind is RedOpType.PREMUL_SUM:
        given = given.copy()
        joining.before(given)
    values = writable(output)

    def finish() -> None:
        joining.after(values)
        write(output, values)

    return group.start(
        name, lambda comm: comm.reduce_scatter(values, given, joining.op), tensors=[output], details=joining.kind.name,
        finish=finish, result=[output], async_op=async_op,
    )  # fmt: skip


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Send the i-th tensor of a list to rank i, and receive as many."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    if _outside(group, "all_to_all"):
        return None
    check_dtypes([*output_tensor_list, *input_tensor_list])
    members = group_of(group)
    for parts in (input_tensor_list, output_tensor_list):
        if len(parts) != members.size():
            which = "input" if parts is input_tensor_list else "output"
            raise RuntimeError(
                f"all_to_all: {which} tensor list size {len(parts)} does not match world size {members.size()}: there must "
                "be one tensor for every rank"
            )
    given = joined(input_tensor_list)
    first = output_tensor_list[0]._array
    values = empty_beside(first, (sum(part.numel() for part in output_tensor_list),), first.dtype)
    counts = [part.numel() for part in output_tensor_list], [part.numel() for part in input_tensor_list]
    return members.start(
        "all_to_all", lambda comm: comm.all_to_all(values, counts[0], given, counts[1]),
        details=str(input_tensor_list[0].dtype), finish=lambda: divide(values, output_tensor_list),
        result=output_tensor_list, async_op=async_op,
    )  # fmt: skip


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the i-th part of `input`, along its first dimension, to rank i; the parts are even unless sizes are given."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if _outside(group, "all_to_all_single"):
        return None
    check_dtypes([output, input])
    members = group_of(group)
    counts = _counts(output, output_split_sizes, members.size()), _counts(input, input_split_sizes, members.size())
    values, given = writable(output), flat(input)
    return members.start(
        "all_to_all_single", lambda comm: comm.all_to_all(values, counts[0], given, counts[1]), details=str(input.dtype),
        finish=lambda: write(output, values), result=[output], async_op=async_op,
    )  # fmt: skip


def _counts(tensor: Any, sizes: Sequence[int] | None, ranks: int) -> list[int]:
    """The number of elements for every rank."""
    rows = tensor.shape[0] if tensor.ndim else 1
    if sizes is None or not len(sizes):
        if rows % ranks:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {rows} rows for {ranks} ranks"
            )
        sizes = [rows // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError(f"Number of tensor splits not equal to group size: {list(sizes)} for {ranks} ranks")
    if sum(sizes) != rows:
        raise RuntimeError(f"Split sizes doesn't match total dim 0 size: the sum of {list(sizes)} is not {rows}")
    row = tensor.numel() // rows if rows else 0
    return [size * row for size in sizes]


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until every rank is here."""
    if _outside(group, "barrier"):
        return None
    return group_of(group).start("barrier", lambda comm: comm.barrier(), async_op=async_op, timeout=timeout)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`; rank 0 names the first rank, or with `wait_all_ranks` all, that did not come in time."""
    if _outside(group, "monitored_barrier"):
        return
    check_timeout(timeout)
    members = group_of(group)
    limit = timeout or members.timeout
    start = time.monotonic()
    try:
        members.start("monitored_barrier", lambda comm: comm.barrier(), timeout=limit)
    except DistBackendError as error:
        if members.rank() != 0 or members.ledger is None or "Timed out" not in str(error):
            raise
        late = members.ledger.absent(members.ranks, members.group_name, members._get_sequence_number_for_group())
        shown = ", ".join(map(str, late if wait_all_ranks else late[:1])) or "unknown"
        passed = round(min(limit.total_seconds(), time.monotonic() - start) * 1000)
        raise DistBackendError(
            f"[Rank 0]: {'Ranks' if wait_all_ranks else 'Rank'} {shown} failed to pass monitoredBarrier in {passed} ms. "
            f"{error}"
        ) from None
