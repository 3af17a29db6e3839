"""Geometry of views in bytes, and moving gradients between a base and a strided view of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pullback.backend.array_module import data_address, storage_of, storage_offset
from pullback.backend.dtype import dtype, from_numpy_dtype
from pullback.kernels.index_arrays import strided_positions
from pullback.native import by_device
from pullback.typing import Array, DType, Shape


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where an array's elements lie, relative to the first element of its base."""

    shape: Shape
    strides: tuple[int, ...]
    offset: int
    dtype: DType

    def span(self) -> int:
        """Bytes from the base's start to the end of the last element."""
        if 0 in self.shape:
            return self.offset
        steps = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return self.offset + steps + self.dtype.itemsize

    def overlaps(self) -> bool:
        """Whether two elements may lie at one address."""
        if 0 in self.shape:
            return False
        reach = self.dtype.itemsize
        pairs = zip(self.strides, self.shape, strict=True)
        for stride, size in sorted((abs(s), n) for s, n in pairs if n > 1):
            if stride < reach:
                return True
            reach = stride * (size - 1) + reach
        return False

    def lies_within(self, base: Geometry) -> bool:
        """Whether no element lies outside of the bytes from the base's first element to its last."""
        return 0 in self.shape or (self.offset >= 0 and self.span() <= base.span())

    def element_strides(self) -> tuple[int, ...]:
        return tuple(stride // self.dtype.itemsize for stride in self.strides)

    def in_dtype(self, dtype: DType) -> Geometry:
        """The same places, counted in elements, of another dtype."""
        if dtype == self.dtype:
            return self
        steps = [step * dtype.itemsize for step in self.element_strides()]
        return Geometry(self.shape, tuple(steps), self.offset // self.dtype.itemsize * dtype.itemsize, dtype)

    def public_dtype(self) -> dtype:
        return from_numpy_dtype(self.dtype)


def geometry_of(array: Array, base: Array | None = None) -> Geometry:
    """The geometry of `array` relative to `base`, itself by default.

    Where either was given other memory since, the offset is the difference of the places in their storages.
    """
    offset = 0
    if base is not None and array.size and base.size:
        offset = data_address(array) - data_address(base)
        if not 0 <= offset < base.nbytes and lie_apart(array, base):
            offset = (storage_offset(array) - storage_offset(base)) * array.itemsize
    return Geometry(array.shape, array.strides, offset, array.dtype)


def lie_apart(array: Array, base: Array) -> bool:
    """Whether two arrays lie in different storages, as a view and its base do of which one was given other memory."""
    return data_address(storage_of(array)) != data_address(storage_of(base))


def _view_in(buffer: Array, geometry: Geometry) -> Array:
    """The array of a geometry in a buffer of bytes."""
    return np.ndarray(geometry.shape, geometry.dtype, buffer, geometry.offset, geometry.strides)


def element_positions(geometry: Geometry) -> Array:
    """Where the elements lie, counted in elements from the first one of the base, in row-major order."""
    first = geometry.offset // geometry.dtype.itemsize
    return strided_positions(geometry.shape, geometry.element_strides(), first)


def _buffer_with(base: Geometry, view: Geometry, values: Any | None) -> Array:
    """Fresh bytes that hold base and view; zeros, with `values` written at the base's elements."""
    buffer: Array = np.zeros(max(base.span(), view.span()), np.uint8)
    if values is not None:
        _view_in(buffer, base)[...] = values
    return buffer


@by_device
def gather_strided(grad: Array, base: Geometry, view: Geometry) -> Array:
    """The part of the base's gradient that lies at the view's elements, as a fresh array."""
    return _view_in(_buffer_with(base, view, grad), view).copy()


@by_device
def overwrite_strided(grad: Array, base: Geometry, view: Geometry, part: Any | None) -> Array:
    """The base's gradient with the view's elements replaced by `part` (zeros if None)."""
    buffer = _buffer_with(base, view, grad)
    _view_in(buffer, view)[...] = 0 if part is None else part
    return _view_in(buffer, base)


@by_device
def scatter_strided(grad: Any, base: Geometry, view: Geometry) -> Array:
    """The gradient of the base of which `grad` is the gradient of a view: elements seen twice are summed."""
    if view.offset < 0:  # of a base that was given memory behind the view's
        base, view = replace(base, offset=-view.offset), replace(view, offset=0)
    buffer = _buffer_with(base, view, None)
    if not view.overlaps():
        _view_in(buffer, view)[...] = grad
    else:
        whole = buffer[: buffer.size // view.dtype.itemsize * view.dtype.itemsize].view(view.dtype)
        np.add.at(whole, element_positions(view), np.broadcast_to(grad, view.shape).reshape(-1))
    return _view_in(buffer, base)
