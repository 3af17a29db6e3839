"""Discrete Fourier transforms over several dimensions: complex to complex, real to complex and complex to real.

`scale` says what the sum is divided by: "none", "sqrt" (the root of the number of points) or "count".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.checks.elements import value_out_of_range
from pullback.native import by_device
from pullback.typing import Array, DType, Shape

_FORWARD: dict[str, Any] = {"none": "backward", "sqrt": "ortho", "count": "forward"}
_INVERSE: dict[str, Any] = {"none": "forward", "sqrt": "ortho", "count": "backward"}


@by_device
def fft_c2c(input: Array, dim: Shape, scale: str, forward: bool) -> Array:
    """The transform of complex numbers, or its inverse."""
    if not dim or input.size == 0:
        return input.copy()
    function, norms = (np.fft.fft, _FORWARD) if forward else (np.fft.ifft, _INVERSE)
    return _back(_along_each(function, _innermost(input, dim), _last(dim), norms[scale]), dim)


@by_device
def fft_r2c(input: Array, dim: Shape, scale: str, onesided: bool) -> Array:
    """The transform of real numbers; one-sided without the conjugate half of the last of the dimensions."""
    norm = _FORWARD[scale]
    half = (np.fft.rfft if onesided else np.fft.fft)(_innermost(input, dim), norm=norm)
    return _back(_along_each(np.fft.fft, half, _last(dim)[:-1], norm), dim)


@by_device
def fft_c2r(input: Array, dim: Shape, scale: str, last_size: int) -> Array:
    """The inverse of the one-sided transform of `last_size` real numbers along the last of the dimensions."""
    norm = _INVERSE[scale]
    half = _along_each(np.fft.ifft, _innermost(input, dim), _last(dim)[:-1], norm)
    return _back(np.fft.irfft(half, last_size, norm=norm), dim)


def _along_each(function: Any, array: Array, axes: Shape, norm: str) -> Array:
    """One dimension after the other, the last one first: NumPy's functions of several check much that is known here."""
    for axis in reversed(axes):
        array = function(array, axis=axis, norm=norm)
    return array


def _innermost(input: Array, dim: Shape) -> Array:
    """The dimensions to transform moved to the end: results lie in memory that way, as PyTorch's do."""
    return np.ascontiguousarray(input if _are_last(input, dim) else np.moveaxis(input, dim, _last(dim)))


def _last(dim: Shape) -> Shape:
    return tuple(range(-len(dim), 0))


def _are_last(array: Array, dim: Shape) -> bool:
    return all(d == array.ndim - len(dim) + i for i, d in enumerate(dim))


def _back(result: Array, dim: Shape) -> Array:
    return result if _are_last(result, dim) else np.moveaxis(result, _last(dim), dim)


@by_device
def double_conjugate_pairs(input: Array, dim: int, count: int) -> Array:
    """Twice the `count` elements after the first along `dim`: those that stand for their conjugates too."""
    result = np.array(input)
    result[(*[slice(None)] * dim, slice(1, 1 + count))] *= 2
    return result


@by_device
def fft_frequencies(n: int, d: float, dtype: DType, onesided: bool) -> Array:
    """The frequencies of a transform of `n` points at distance `d`, the negative ones last or left out."""
    half = (n - 1) // 2 + 1
    if onesided:
        counts: Array = np.arange(n // 2 + 1)
    else:
        counts = np.concatenate([np.arange(half), np.arange(-(n // 2), 0)])
    return (counts.astype(dtype) * dtype.type(1.0 / (n * d))).astype(dtype)


@by_device
def overlap_add(input: Array, step: int) -> Array:
    """Sum frames (..., frame, position) where they overlap, each `step` after the one before."""
    *batch, frames, size = input.shape
    chunks = -(-size // step)
    padded = np.zeros((*batch, frames, chunks * step), input.dtype)
    padded[..., :size] = input
    blocks = padded.reshape(*batch, frames, chunks, step)
    result = np.zeros((*batch, frames + chunks - 1, step), input.dtype)
    for chunk in range(chunks):
        result[..., chunk : chunk + frames, :] += blocks[..., chunk, :]
    flat = result.reshape(*batch, (frames + chunks - 1) * step)
    return flat[..., : (frames - 1) * step + size]


@by_device
def check_envelope(input: Array, call: str) -> Array:
    """The smallest magnitude of summed windows, which must not vanish. (A kernel, so that batches are checked too.)"""
    smallest = np.min(np.abs(input)) if input.size else np.ones(())
    if smallest <= 1e-11:
        raise value_out_of_range(f"{call} window overlap add min: 1")
    return smallest
