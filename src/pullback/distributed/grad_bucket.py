"""GradBucket: gradients of several parameters, one after the other in memory, reduced in one message."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pullback.backend.array_module import empty_beside, ndarray, zeros_beside
from pullback.kernels.many_arrays import scale_into
from pullback.tensor.tensor import new_tensor
from pullback.typing import Array

__all__ = ["Bucket", "GradBucket", "assign_buckets"]

_DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024
"""The first bucket is small, so that the first message leaves early."""


def _references(values: Iterable[Any]) -> list[int]:
    """How many hold each of some values."""
    return [sys.getrefcount(value) for value in values]


_ALONE = _references([object()])[0]
"""What `_references` counts for a value that one container holds, which differs between versions of Python."""


def assign_buckets(parameters: Sequence[Any], order: Sequence[int], limits: Sequence[int]) -> list[list[int]]:
    """Put parameters, in this order, into buckets of one dtype and device, of `limits` bytes (the last for all that follow).

    >>> import pullback
    >>> assign_buckets([pullback.zeros(4), pullback.zeros(4), pullback.zeros(4)], [2, 1, 0], [16, 64])
    [[2], [1, 0]]
    """
    full: list[list[int]] = []
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    begun: dict[Any, int] = {}
    for index in order:
        parameter = parameters[index]
        kind = parameter.dtype, parameter.device
        bucket, used = open_buckets.get(kind, ([], 0))
        bucket.append(index)
        used += parameter.numel() * parameter.element_size()
        limit = limits[min(begun.get(kind, 0), len(limits) - 1)]
        if used >= limit:
            full.append(bucket)
            begun[kind] = begun.get(kind, 0) + 1
            open_buckets.pop(kind, None)
        else:
            open_buckets[kind] = (bucket, used)
    return full + [bucket for bucket, _ in open_buckets.values()]


class Bucket:
    """The memory of one bucket, and who is still missing."""

    def __init__(self, index: int, indices: Sequence[int], parameters: Sequence[Any]) -> None:
        self.index = index
        self.indices = list(indices)
        self.parameters = [parameters[number] for number in indices]
        self.size = sum(parameter.numel() for parameter in self.parameters)
        self.missing = len(self.indices)
        self.result: Any = None
        self.memory: Array | None = None
        self.slots: dict[int, Array] = {}
        self.arrived: dict[int, Array | None] = {}
        """The gradients that are complete and not yet in the bucket; None stands for zeros."""
        self.views: dict[int, Any] = {}

    def renew(self, keep: bool) -> None:
        """Wait for all gradients again; in new memory if a `.grad` holds the former, unless `keep`."""
        self.missing = len(self.indices)
        self.result = None
        self.arrived.clear()
        if self.memory is None or not (keep or self._is_free()):
            first = self.parameters[0]._array
            self.memory = empty_beside(first, (self.size,), first.dtype)
            self._divide()

    def _is_free(self) -> bool:
        """Whether nobody else holds the memory or a part of it: new memory costs a third of the time of filling it."""
        if type(self.memory) is not ndarray:
            return False
        own = _ALONE + 1 + len(self.slots)  # the attribute and every slot hold it too
        return _references([self.memory]) == [own] and set(_references(self.slots.values())) == {_ALONE}

    def pack(self, factor: float) -> None:
        """Copy the gradients into the bucket, multiplied by a factor."""
        slots, gradients = [], []
        for index, grad in self.arrived.items():
            slot = self.slots[index]
            if grad is None:
                slot[...] = 0
            elif index not in self.views or grad is not self.views[index]._array:
                slots.append(slot)
                gradients.append(grad)
            elif factor != 1.0:  # accumulated in place, in the bucket itself
                slot *= slot.dtype.type(factor)
        scale_into(slots, gradients, factor)
        self.arrived.clear()

    def view(self, index: int) -> Any:
        """The place of a parameter's gradient, as a view of a tensor of the whole bucket."""
        if index not in self.views:
            before = sum(parameter.numel() for parameter in self.parameters[: self.indices.index(index)])
            parameter = self.parameters[self.indices.index(index)]
            self.views[index] = new_tensor(self.memory)[before : before + parameter.numel()].view(parameter.shape)
        return self.views[index]

    def zeros(self) -> Array:
        """As many zeros: what a rank that has no gradients any more adds."""
        first = self.parameters[0]._array
        return zeros_beside(first, (self.size,), first.dtype)

    def _divide(self) -> None:
        assert self.memory is not None
        start = 0
        for index, parameter in zip(self.indices, self.parameters, strict=True):
            self.slots[index] = self.memory[start : start + parameter.numel()].reshape(parameter.shape)
            start += parameter.numel()


class GradBucket:
    """A bucket as a communication hook sees it: gradients that are not yet averaged."""

    def __init__(self, bucket: Bucket, count: int) -> None:
        self._bucket = bucket
        self._count = count
        self._buffer = new_tensor(bucket.memory)

    def index(self) -> int:
        """Its number; buckets are reduced in this order."""
        return self._bucket.index

    def buffer(self) -> Any:
        """All gradients, as one flat tensor."""
        return self._buffer

    def gradients(self) -> list[Any]:
        """The gradients, each in the shape of its parameter, as views of `buffer()`."""
        parts, start = [], 0
        for parameter in self._bucket.parameters:
            parts.append(self._buffer[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()
        return parts

    def parameters(self) -> list[Any]:
        """The parameters whose gradients these are."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Whether no bucket follows in this backward pass."""
        return self._bucket.index == self._count - 1

    def set_buffer(self, buffer: Any) -> None:
        """Take another flat tensor for `buffer()`."""
        self._buffer = buffer
