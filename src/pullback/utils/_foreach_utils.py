"""Grouping tensors by device and dtype, as optimizers outside of the package do before they update many at once."""

from __future__ import annotations

from typing import Any

from pullback.tensor.tensor import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Split parallel lists of tensors into groups of one device and dtype, by their first list."""
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for target, source in zip(lists, tensorlistlist, strict=True):
            target.append(source[index] if source else None)
        indices.append(index)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    return True


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    return all(t is None or type(t) is Tensor for t in tensors)
