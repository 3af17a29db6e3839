"""What a tensor is to the transforms that run around it, under the names of PyTorch's compiled module."""

from __future__ import annotations

from typing import Any

from pullback.func.batched_tensor import BatchedTensor, innermost
from pullback.func.transform_level import leads_outside
from pullback.graph.tangents import levels_of
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor

__all__ = [
    "current_level",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
]


def maybe_current_level() -> int | None:
    """How many transforms run; None outside of all.

    >>> import pullback
    >>> seen = []
    >>> _ = pullback.vmap(lambda x: seen.append(maybe_current_level()) or x)(pullback.ones(2))
    >>> seen, maybe_current_level()
    ([1], None)
    """
    return switches.transforms or None


def current_level() -> int:
    """How many transforms run; an error outside of all."""
    if not switches.transforms:
        raise RuntimeError("no transform of func runs here: there is no current level")
    return switches.transforms


def _batched_level(tensor: Tensor) -> int:
    """The place among the running transforms of the innermost `vmap` that batches a tensor; -1 where none does."""
    return tensor._level.depth if isinstance(tensor, BatchedTensor) else -1


def _tracked_level(tensor: Tensor) -> int:
    """The place of the innermost transform that differentiates by a tensor; -1 where none does."""
    bottom, transform = innermost(tensor), switches.transform
    depths = [switches.dual_depths.get(level, 0) for level in levels_of(bottom)]
    if transform is not None and bottom._requires_grad and not leads_outside(bottom, transform):
        depths.append(transform.depth)
    return max(depths, default=-1)


def maybe_get_level(tensor: Tensor) -> int:
    """The place of the innermost transform that a tensor belongs to; -1 where it belongs to none."""
    return max(_batched_level(tensor), _tracked_level(tensor))


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor is one example of a batch, and no transform inside of that `vmap` differentiates by it.

    >>> import pullback
    >>> seen = []
    >>> _ = pullback.vmap(lambda x: seen.append(is_batchedtensor(x)) or x)(pullback.ones(2))
    >>> seen, is_batchedtensor(pullback.ones(2))
    ([True], False)
    """
    return _batched_level(tensor) > _tracked_level(tensor)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether the innermost transform that a tensor belongs to differentiates by it."""
    return _tracked_level(tensor) > _batched_level(tensor)


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a transform."""
    return maybe_get_level(tensor) >= 0


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension of the batch that counts the examples; -1 for a tensor that is not one of them."""
    return int(tensor._dim) if isinstance(tensor, BatchedTensor) and is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Tensor) -> Any:
    """The whole batch that a tensor is one example of; the tensor itself where a transform differentiates by it."""
    if is_batchedtensor(tensor):
        return tensor._value
    if is_gradtrackingtensor(tensor):
        return tensor
    raise RuntimeError("No wrappers present! The tensor belongs to no transform.")
