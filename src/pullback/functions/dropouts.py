"""Dropout: elements or whole channels set to zero at random, from the same random stream as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend import random as draw
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import bool_, float32, float64, scalar_type_name
from pullback.creation import empty, empty_like, ones_like, zeros
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.modes.interception import dispatch, draws, interceptable
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor

# The value that a self-normalizing network's units take at minus infinity.
_ALPHA = 1.7580993408473766


@draws("parts")
@interceptable
@declare(structure="elementwise", found="torch")
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set each element to zero with probability `p` and scale the rest by 1 / (1 - p).

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> pullback.dropout(pullback.ones(4), 0.5, True)
    tensor([0., 0., 2., 0.])
    """
    return _drop(input, p, train, feature=False, alpha=False)


@declare(found="torch")
@draws("parts")
@interceptable
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `dropout`, in place."""
    return _drop(input, p, train, feature=False, alpha=False, inplace=True)


@declare(found="torch")
@draws("parts")
@interceptable
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set whole channels of (N, C, ...) to zero."""
    return _drop(input, p, train, feature=True, alpha=False)


@declare(found="torch")
@draws("parts")
@interceptable
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `feature_dropout`, in place."""
    return _drop(input, p, train, feature=True, alpha=False, inplace=True)


@declare(found="torch")
@draws("parts")
@interceptable
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Drop elements to the value that keeps mean and variance of a self-normalizing network."""
    return _drop(input, p, train, feature=False, alpha=True)


@declare(found="torch")
@draws("parts")
@interceptable
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `alpha_dropout`, in place."""
    return _drop(input, p, train, feature=False, alpha=True, inplace=True)


@declare(found="torch")
@draws("parts")
@interceptable
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """As `alpha_dropout`, for whole channels of (N, C, ...)."""
    return _drop(input, p, train, feature=True, alpha=True)


@declare(found="torch")
@draws("parts")
@interceptable
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """As `feature_alpha_dropout`, in place."""
    return _drop(input, p, train, feature=True, alpha=True, inplace=True)


@declare(found="torch")
@draws("parts")
@interceptable
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """As `dropout`, with the mask of what was kept."""
    if not input._array.size:
        return input, empty_like(input)
    if train is False:
        return G.clone(input), ones_like(input, dtype=bool_)
    mask = _noise(input, p, feature=False, scaled=False, fused=False)
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
        return _combined(G.mul, input, zeros((), dtype=input.dtype, device=input.device), inplace)
    noise = _noise(input, p, feature=feature, scaled=not alpha, fused=not inplace)
    if not alpha:
        return _combined(G.mul, input, noise, inplace)
    scale: float = 1 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    # Rounded after each step, as the sum of the three is not.
    shifts = G.add(G.mul(G.add(noise, -1), _ALPHA * scale), _ALPHA * scale * p)
    return _combined(G.add, _combined(G.mul, input, G.mul(noise, scale), inplace), shifts, inplace)


def _noise(input: Tensor, p: float, *, feature: bool, scaled: bool, fused: bool) -> Tensor:
    """What the elements (or the features) of `input` are multiplied by: zero with probability `p`.

    `fused`: a GPU is to draw as PyTorch's kernel does that draws and multiplies in one.
    """
    if feature and input._array.ndim < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {input._array.ndim}")
    return _drawn_feature_noise(input, p, scaled) if feature else _drawn_noise(input, p, scaled, fused)


@draws("noise")
@interceptable
@declare(profiled="bernoulli_")
def _drawn_noise(input: Tensor, p: float, scaled: bool, fused: bool) -> Tensor:
    """Draw one factor for each element: 0, or 1 / (1 - p) if `scaled` and 1 if not."""
    return _filled(empty_like(input), p, scaled, fused)


@draws("feature noise")
@interceptable
@declare(profiled="bernoulli_")
def _drawn_feature_noise(input: Tensor, p: float, scaled: bool) -> Tensor:
    """Draw one factor for each sample and channel, shaped to broadcast."""
    sizes = input._array.shape
    return _filled(empty(*sizes[:2], *[1] * (len(sizes) - 2), dtype=input.dtype, device=input.device), p, scaled, False)


def _filled(noise: Tensor, p: float, scaled: bool, fused: bool) -> Tensor:
    array: Any = noise._array
    if _is_shown(noise):
        from pullback.dispatch.chains import operator  # lazy: above this layer, and only where somebody looks

        operator("bernoulli_.float", noise, 1 - p)
        if scaled:
            operator("div_.Scalar", noise, 1 - p)
        return noise
    if scaled and not fused and isinstance(array, DeviceArray):
        draw.bernoulli_(array, 1 - p)
        array /= 1 - p  # type: ignore[operator]  # operators are put into the class one by one
    elif scaled:
        draw.bernoulli_(noise._array, 1 - p, success=_kept_value(noise._array.dtype, p))
    else:
        draw.bernoulli_(noise._array, 1 - p)
    return noise


def _is_shown(noise: Tensor) -> bool:
    """Whether somebody is shown how the noise is drawn; a selective checkpoint, which keeps results, could not keep any."""
    return type(noise) in dispatch.types or not all(
        getattr(mode, "keeps_results", False) for mode in switches.dispatch_modes
    )


def _kept_value(dtype: Any, p: float) -> float:
    """1 / (1 - p), divided in the precision of the elements, that of narrow ones in float32."""
    if dtype.kind == "c":
        return 1.0
    exact = float64.numpy_dtype if dtype.itemsize == 8 else float32.numpy_dtype
    return float(exact.type(1) / exact.type(1 - p))


def _combined(operation: Callable[..., Any], input: Tensor, other: Tensor, inplace: bool) -> Tensor:
    return in_place(operation, input, other) if inplace else operation(input, other)
