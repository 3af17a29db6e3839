"""Norms of tensors whose rows are divided among ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pullback
from pullback.distributed import collectives
from pullback.distributed.reduce_operation import ReduceOp
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.tensor.placement_types import Replicate

__all__ = ["norms_of_wholes", "on_meshes"]


def norms_of_wholes(tensors: Sequence[Any], norms: Sequence[Any], norm_type: float) -> list[Any]:
    """The norms of whole tensors, from those of the parts; all ranks of a group in one message.

    >>> norms_of_wholes([pullback.ones(2)], [pullback.tensor(3.0)], 2.0)
    [tensor(3.)]
    """
    found = list(norms)
    groups: dict[str, tuple[Any, list[int]]] = {}
    for index, tensor in enumerate(tensors):
        group = tensor.shard_group() if hasattr(tensor, "shard_group") else None
        if group is not None:
            groups.setdefault(group.group_name, (group, []))[1].append(index)
    for group, places in groups.values():
        parts = pullback.stack([found[index] for index in places])
        if math.isinf(norm_type):
            collectives.all_reduce(parts, ReduceOp.MAX if norm_type > 0 else ReduceOp.MIN, group)
        else:
            parts = parts**norm_type
            collectives.all_reduce(parts, group=group)
            parts = parts ** (1.0 / norm_type)
        for index, value in zip(places, parts, strict=True):
            found[index] = value
    return found


def on_meshes(tensors: Sequence[Any], norm: Any) -> Any:
    """The norm of tensors that lie on a mesh, as a tensor that every rank of it has."""
    mesh = next(tensor.device_mesh for tensor in tensors if isinstance(tensor, DTensor))
    return DTensor(norm._array, norm.shape, mesh, (Replicate(),) * mesh.ndim)
