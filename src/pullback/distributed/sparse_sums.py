"""Sums of sparse tensors over ranks: every rank gets the indices and values of all, and adds them up in their order.

Ranks have different numbers of values, so these numbers come first, and shorter lists are filled up to the longest.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from pullback.backend.array_module import empty
from pullback.backend.array_module import zeros as new_zeros
from pullback.backend.dtype import int64
from pullback.backend.sparse_array import SparseArray
from pullback.distributed.process_group import ProcessGroup
from pullback.tensor.tensor import new_tensor
from pullback.typing import Array

__all__ = ["empty_rows", "sum_over_ranks"]


def sum_over_ranks(own: SparseArray, group: ProcessGroup) -> SparseArray:
    """The sum of the sparse arrays of all ranks, with every index once."""
    own = own.coalesce()
    counts = new_zeros((1,), own.indices.dtype)
    counts[0] = own.values.shape[0]
    lengths = [int(count) for count in _gather(counts, group)]
    longest = max(lengths)
    indices = _gather(_filled(own.indices.T, longest), group)
    values = _gather(_filled(own.values, longest), group)
    parts = [
        SparseArray(indices[start : start + length].T, values[start : start + length], own.shape)
        for start, length in ((rank * longest, length) for rank, length in enumerate(lengths))
    ]
    return reduce(add, parts).coalesce()


def empty_rows(table: Array) -> SparseArray:
    """No rows of a table: what a rank adds that has not used any."""
    return SparseArray(empty((1, 0), int64.numpy_dtype), table[:0], table.shape, coalesced=True)


def _filled(rows: Array, length: int) -> Array:
    filled = new_zeros((length, *rows.shape[1:]), rows.dtype)
    filled[: rows.shape[0]] = rows
    return filled


def _gather(rows: Array, group: ProcessGroup) -> Array:
    """The rows of all ranks, one rank after the other."""
    gathered = empty((group.size() * rows.shape[0], *rows.shape[1:]), rows.dtype)
    if gathered.size:
        group.start(
            "all_reduce (sparse)", lambda comm: comm.all_gather(gathered.reshape(-1), rows.reshape(-1)),
            tensors=[new_tensor(rows)],
        )  # fmt: skip
    return gathered
