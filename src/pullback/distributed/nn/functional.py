"""PyTorch's differentiable collectives; `pullback.distributed.functional` has the same with sending and receiving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback
from pullback.distributed import functional
from pullback.distributed.process_group import group as groups
from pullback.distributed.process_group import group_of
from pullback.distributed.reduce_operation import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _meant(group: Any) -> Any:
    return None if group is groups else group


def broadcast(tensor: Any, src: int, group: Any = groups) -> Any:
    """The tensor of rank `src`."""
    return functional.broadcast(tensor, src, _meant(group))


def gather(tensor: Any, dst: int = 0, group: Any = groups) -> tuple[Any, ...]:
    """On rank `dst` the tensors of all ranks; zeros elsewhere."""
    return functional.gather(tensor, dst, _meant(group))


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = groups) -> Any:
    """The tensor for this rank of those that rank `src` has."""
    return functional.scatter(tensors, src, _meant(group))


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = groups) -> Any:
    """On rank `dst` the sum of the tensors of all ranks; elsewhere the tensor itself, as in PyTorch."""
    total = functional.reduce(tensor, dst, op, _meant(group))
    members = group_of(_meant(group))
    return total if members.global_rank() == dst else total + tensor.detach()


def reduce_scatter(output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = groups) -> Any:
    """The sum over all ranks of the tensors that are meant for this one, also written to `output`."""
    result = functional.reduce_scatter(input_list, op, _meant(group))
    with pullback.no_grad():
        output.copy_(result)
    return result


def all_gather(tensor: Any, group: Any = groups) -> tuple[Any, ...]:
    """The tensors of all ranks."""
    return functional.all_gather(tensor, _meant(group))


def all_to_all(
    output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = groups
) -> tuple[Any, ...]:
    """One tensor from every rank, for one tensor to every rank; also written to the list of outputs."""
    results = functional.all_to_all(output_tensor_list, input_tensor_list, _meant(group))
    with pullback.no_grad():
        for target, result in zip(output_tensor_list, results, strict=True):
            target.copy_(result)
    return results


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = groups,
) -> Any:  # fmt: skip
    """The rows that all ranks have for this one, also written to `output`."""
    result = functional.all_to_all_single(input, output_split_sizes, input_split_sizes, _meant(group))
    with pullback.no_grad():
        output.copy_(result)
    return result


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = groups) -> Any:
    """The sum, or mean, of the tensors of all ranks."""
    return functional.all_reduce(tensor, op, _meant(group))
