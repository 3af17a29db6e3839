"""Dropout: elements or whole channels set to zero at random, from the same random stream as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend import random as draw
from pullback.backend.dtype import float32, float64, scalar_type_name
from pullback.creation import empty, empty_like, zeros
from pullback.graph.in_place import in_place
from pullback.modes.interception import interceptable
from pullback.tensor.tensor import Tensor

# The value that a self-normalizing network's units take at minus infinity.
_ALPHA = 1.7580993408473766


@interceptable
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set each element to zero with probability `p` and scale the rest by 1 / (1 - p).

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> pullback.dropout(pullback.ones(4), 0.5, True)
    tensor([0., 0., 2., 0.])
    """
    return _drop(input, p, train, feature=False, alpha=False)


@interceptable
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `dropout`, in place."""
    return _drop(input, p, train, feature=False, alpha=False, inplace=True)


@interceptable
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set whole channels of (N, C, ...) to zero."""
    return _drop(input, p, train, feature=True, alpha=False)


@interceptable
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `feature_dropout`, in place."""
    return _drop(input, p, train, feature=True, alpha=False, inplace=True)


@interceptable
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Drop elements to the value that keeps mean and variance of a self-normalizing network."""
    return _drop(input, p, train, feature=False, alpha=True)


@interceptable
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `alpha_dropout`, in place."""
    return _drop(input, p, train, feature=False, alpha=True, inplace=True)


@interceptable
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """As `alpha_dropout`, for whole channels of (N, C, ...)."""
    return _drop(input, p, train, feature=True, alpha=True)


@interceptable
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `feature_alpha_dropout`, in place."""
    return _drop(input, p, train, feature=True, alpha=True, inplace=True)


@interceptable
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """As `dropout`, with the mask of what was kept."""
    mask = empty_like(input, dtype=None)
    if not input._array.size:
        return input, mask
    if train is False:
        mask._array[...] = 1
        return G.clone(input), G.to_integer(mask, bool)
    draw.bernoulli_(mask._array, 1 - p)
    scale = 0.0 if p == 1 else float(mask._array.dtype.type(1 / (1 - p)))
    return G.mul(G.mul(input, mask), scale), G.to_integer(mask, bool)


def _drop(input: Tensor, p: float, train: bool, *, feature: bool, alpha: bool, inplace: bool = False) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or not input._array.size:
        return input
    if input._array.dtype.kind in "iub" and p < 1:
        name = scalar_type_name(input._array.dtype)
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}: dropout needs floats")
    if p == 1:
        return _combined(G.mul, input, zeros((), dtype=input.dtype), inplace)
    noise = _feature_noise(input) if feature else empty_like(input)
    if not alpha:
        draw.bernoulli_(noise._array, 1 - p, success=_kept_value(noise._array.dtype, p))
        return _combined(G.mul, input, noise, inplace)
    draw.bernoulli_(noise._array, 1 - p)
    scale: float = 1 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    # Rounded after each step, as the sum of the three is not.
    shifts = G.add(G.mul(G.add(noise, -1), _ALPHA * scale), _ALPHA * scale * p)
    return _combined(G.add, _combined(G.mul, input, G.mul(noise, scale), inplace), shifts, inplace)


def _kept_value(dtype: Any, p: float) -> float:
    """1 / (1 - p), divided in the precision of the elements, that of narrow ones in float32."""
    if dtype.kind == "c":
        return 1.0
    exact = float64.numpy_dtype if dtype.itemsize == 8 else float32.numpy_dtype
    return float(exact.type(1) / exact.type(1 - p))


def _combined(operation: Callable[..., Any], input: Tensor, other: Tensor, inplace: bool) -> Tensor:
    return in_place(operation, input, other) if inplace else operation(input, other)


def _feature_noise(input: Tensor) -> Tensor:
    """One number per sample and channel, shaped to broadcast."""
    sizes = input._array.shape
    if len(sizes) < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {len(sizes)}")
    return empty(*sizes[:2], *[1] * (len(sizes) - 2), dtype=input.dtype)
