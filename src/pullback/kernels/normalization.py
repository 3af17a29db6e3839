"""Normalization by the mean and the variance of rows, channels or groups. Statistics are kept in at least float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backend.halves import rounded
from pullback.backend.unpromised_bits import note_product
from pullback.checks import checked
from pullback.kernels.accumulation import add_up, widened
from pullback.kernels.broadcasting import sum_to
from pullback.native import by_device, native
from pullback.typing import Array, DType, Shape

_FLOAT32 = np.dtype(np.float32)

# Elements of rows that are treated together, which bounds temporary memory; smaller parts are not faster (measured).
_CHUNK = 2**20

# Sums of more numbers than this are taken in float64 where they are of float32.
_LONG_ROW = 4096


@native
@checked
def native_layer_norm(
    input: Array, normalized_shape: Shape, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Normalize over the last dimensions; the result, the means and the reciprocal standard deviations."""
    if input.dtype.itemsize == 2:
        factor, shift = (None if p is None else widened(p) for p in (weight, bias))
        result, mean, rstd = native_layer_norm(widened(input), normalized_shape, factor, shift, eps)
        return rounded(result, input.dtype), mean, rstd
    lead = input.shape[: input.ndim - len(normalized_shape)]
    rows = widened(input).reshape(math.prod(lead), math.prod(normalized_shape))
    factor, shift = (None if p is None else widened(p).reshape(-1) for p in (weight, bias))
    normalized, mean, rstd = _normalize_rows(rows, eps, factor, shift)
    kept = lead + (1,) * len(normalized_shape)
    result = rounded(normalized.reshape(input.shape), input.dtype)
    return result, mean.reshape(kept), rstd.reshape(kept)


def _chunks(rows: Array) -> list[slice]:
    step = max(1, _CHUNK // max(1, rows.shape[1]))
    return [slice(start, start + step) for start in range(0, len(rows), step)]


def _normalize_rows(
    rows: Array, eps: float, factor: Array | None = None, shift: Array | None = None
) -> tuple[Array, Array, Array]:
    """Rows with mean 0 and variance 1, times `factor` plus `shift`; columns of means and of reciprocal deviations."""
    count = rows.dtype.type(max(rows.shape[1], 1))
    result = np.empty(rows.shape, rows.dtype)
    mean, rstd = np.empty((len(rows), 1), rows.dtype), np.empty((len(rows), 1), rows.dtype)
    for part in _chunks(rows):
        mean[part] = _row_means(rows[part])
        centered = np.subtract(rows[part], mean[part], out=result[part])
        variance = _row_products(centered, centered) / count
        variance += variance * 0  # nan where it overflowed: a deviation of infinity would hide that as zeros
        rstd[part] = 1 / np.sqrt(variance + rows.dtype.type(eps))
        centered *= rstd[part]
        if factor is not None:
            centered *= factor
        if shift is not None:
            centered += shift
    return result, mean, rstd


def _row_means(rows: Array) -> Array:
    # A product with a vector is one BLAS call; a sum over a short axis costs NumPy twice that.
    if rows.shape[1] > _LONG_ROW and rows.dtype == _FLOAT32:
        return (add_up(rows, 1, True, dtype=np.float64) / rows.shape[1]).astype(rows.dtype)
    note_product(rows)
    return rows @ _mean_vector(rows.shape[1], rows.dtype)


def _row_products(a: Array, b: Array) -> Array:
    """The sums of products along rows, as a column; einsum adds one after the other, so long ones in float64."""
    if a.shape[1] > _LONG_ROW and a.dtype == _FLOAT32:
        return np.einsum("ij,ij->i", a, b, dtype=np.float64)[:, None].astype(a.dtype)
    return np.einsum("ij,ij->i", a, b)[:, None]


@lru_cache(maxsize=64)
def _mean_vector(count: int, dtype: DType) -> Array:
    return np.full((count, 1), 1 / max(count, 1), dtype)


@native
def layer_norm_back(
    grad: Array, input: Array, mean: Array, rstd: Array, weight: Array | None, normalized_shape: Shape, eps: float
) -> tuple[Array, Array | None, Array]:
    """The gradients of a layer norm with respect to its input, its weight and its bias."""
    if input.dtype.itemsize == 2:
        factor = None if weight is None else widened(weight)
        wide = layer_norm_back(widened(grad), widened(input), mean, rstd, factor, normalized_shape, eps)
        to_weight = None if weight is None else rounded(wide[1], weight.dtype)
        return rounded(wide[0], input.dtype), to_weight, rounded(wide[2], grad.dtype)
    count = math.prod(normalized_shape)
    rows, g = widened(input).reshape(mean.size, count), widened(grad).reshape(mean.size, count)
    factor = None if weight is None else widened(weight).reshape(-1)
    to_input, along = _normalization_back(g, rows, mean.reshape(-1, 1), rstd.reshape(-1, 1), factor)
    to_input = rounded(to_input.reshape(input.shape), input.dtype)
    to_weight = None if weight is None else rounded(along.reshape(normalized_shape), weight.dtype)
    return to_input, to_weight, sum_to(grad, normalized_shape)


def _normalization_back(
    g: Array, rows: Array, mean: Array | None, scale: Array, factor: Array | None
) -> tuple[Array, Array]:
    """The gradients of rows and of the factor of normalized rows; without `mean` rows were only scaled.

    With n = (rows - mean) * scale and h = g * factor: scale * (h - mean(h) - n * mean(h * n)), and the sum of g * n.
    """
    count = g.dtype.type(max(g.shape[1], 1))
    result, to_factor = np.empty(rows.shape, rows.dtype), np.zeros(rows.shape[1], rows.dtype)
    for part in _chunks(rows):
        n = result[part]
        np.multiply(rows[part] if mean is None else rows[part] - mean[part], scale[part], out=n)
        h = g[part]
        if factor is not None:
            note_product(h)
            to_factor += np.ones(len(h), h.dtype) @ (h * n)
            h = h * factor
        n *= _row_products(h, n) / -count
        n += h
        if mean is not None:
            n -= _row_means(h)
        n *= scale[part]
    return result, to_factor


@native
@checked
def batch_norm_training(
    input: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array, Array]:
    """Normalize each channel by its own statistics; the result, means, reciprocal deviations and variances."""
    x = widened(input)
    count = x.dtype.type(max(1, input.size // max(1, input.shape[1])))
    mean = _channel_sums(x) / count
    centered = np.subtract(x, _as_channels(mean, input), order="C")
    variance = _channel_products(centered, centered) / count
    rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
    factor = rstd if weight is None else rstd * weight
    centered *= _as_channels(factor, input)
    if bias is not None:
        centered += _as_channels(bias, input)
    return rounded(centered, input.dtype), mean, rstd, variance


def _as_channels(values: Array, input: Array) -> Array:
    return values.reshape((-1,) + (1,) * (input.ndim - 2))


def _channel_sums(x: Array) -> Array:
    flat = x.reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    if flat.shape[0] * flat.shape[2] > _LONG_ROW and x.dtype == _FLOAT32:
        return add_up(flat, (0, 2), dtype=np.float64).astype(x.dtype)
    return flat.sum(2).sum(0) if flat.shape[2] != 1 else flat[:, :, 0].sum(0)


def _channel_products(a: Array, b: Array) -> Array:
    flat = (a.shape[0], a.shape[1], math.prod(a.shape[2:]))
    if flat[0] * flat[2] > _LONG_ROW and a.dtype == _FLOAT32:
        return np.einsum("ncl,ncl->c", a.reshape(flat), b.reshape(flat), dtype=np.float64).astype(a.dtype)
    return np.einsum("ncl,ncl->nc", a.reshape(flat), b.reshape(flat)).sum(0)


@native
def batch_norm_training_back(
    grad: Array, input: Array, mean: Array, rstd: Array, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """The gradients of a batch norm in training with respect to its input, its weight and its bias."""
    x, g = widened(input), widened(grad)
    count = x.dtype.type(max(1, input.size // max(1, input.shape[1])))
    normalized = x - _as_channels(mean, input)
    normalized *= _as_channels(rstd, input)
    along, total = _channel_products(g, normalized), _channel_sums(g)
    normalized *= _as_channels(-along / count, input)
    normalized += g
    normalized -= _as_channels(total / count, input)
    normalized *= _as_channels(rstd if weight is None else rstd * weight, input)
    kept = along if weight is None else rounded(along, weight.dtype)
    return rounded(normalized, input.dtype), kept, rounded(total, grad.dtype)


@native
@checked
def batch_norm_evaluation(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: float
) -> Array:
    """Normalize each channel by given statistics."""
    x = widened(input)
    factor = 1 / np.sqrt(widened(running_var) + x.dtype.type(eps))
    if weight is not None:
        factor = factor * weight
    shift = -running_mean * factor if bias is None else bias - running_mean * factor
    result = x * _as_channels(factor.astype(x.dtype, copy=False), input)
    result += _as_channels(shift, input)
    return rounded(result, input.dtype)


@native
def batch_norm_evaluation_back(grad: Array, weight: Array | None, running_var: Array, eps: float) -> Array:
    """The gradient of a batch norm by given statistics with respect to its input."""
    factor = 1 / np.sqrt(widened(running_var) + eps)
    if weight is not None:
        factor = factor * weight
    return grad * _as_channels(factor, grad).astype(grad.dtype, copy=False)


@native
def batch_norm_evaluation_weight_back(
    grad: Array, input: Array, dtype: DType, running_mean: Array, running_var: Array, eps: float
) -> Array:
    """The gradient of a batch norm by given statistics with respect to its weight."""
    centered = widened(input) - _as_channels(running_mean, input)
    total = _channel_products(widened(grad), centered) / np.sqrt(widened(running_var) + eps)
    return rounded(total, dtype)


@native
@checked
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Array, Array, Array]:
    """Normalize groups of channels; the result, and the means and reciprocal deviations of (N, group)."""
    rows = widened(input).reshape(N * group, C // group * HxW)
    normalized, mean, rstd = _normalize_rows(rows, eps)
    result = normalized.reshape(input.shape)
    if weight is not None:
        result *= _as_channels(weight, input)
    if bias is not None:
        result += _as_channels(bias, input)
    return rounded(result, input.dtype), mean.reshape(N, group), rstd.reshape(N, group)


@native
def group_norm_back(
    grad: Array, input: Array, mean: Array, rstd: Array, weight: Array | None, group: int, eps: float
) -> tuple[Array, Array, Array]:
    """The gradients of a group norm with respect to its input, its weight and its bias."""
    x, g = widened(input), widened(grad)
    scale = rstd.reshape(-1, 1)
    rows = (mean.size, math.prod(input.shape[1:]) // group)
    normalized = ((x.reshape(rows) - mean.reshape(-1, 1)) * scale).reshape(input.shape)
    to_weight, to_bias = _channel_products(g, normalized), rounded(_channel_sums(g), grad.dtype)
    if weight is not None:
        g = g * _as_channels(widened(weight), input)
        to_weight = rounded(to_weight, weight.dtype)
    to_input, _ = _normalization_back(g.reshape(rows), x.reshape(rows), mean.reshape(-1, 1), scale, None)
    return rounded(to_input.reshape(input.shape), input.dtype), to_weight, to_bias


@native
@checked
def rms_norm_fused(input: Array, normalized_shape: Shape, weight: Array | None, eps: float | None) -> Array:
    """Divide the last dimensions by their root mean square."""
    x = widened(input)
    rows = _as_rows(x, normalized_shape)
    result = rows * _root_mean_square(rows, eps)
    if weight is not None:
        result *= weight.reshape(-1)
    return rounded(result.reshape(input.shape), input.dtype)


def rms_norm_rounded(input: Array, normalized_shape: Shape, weight: Array | None, eps: float | None) -> Array:
    """The same in half precision: computed in float32, rounded at the end."""
    return rms_norm_fused(input, normalized_shape, weight, eps)


def _as_rows(x: Array, normalized_shape: Shape) -> Array:
    lead = x.shape[: x.ndim - len(normalized_shape)]
    return x.reshape(math.prod(lead), math.prod(normalized_shape))


def _root_mean_square(rows: Array, eps: float | None) -> Array:
    """The reciprocal root mean square of each row, as a column; `eps` is the dtype's own if not given."""
    bound = np.finfo(rows.dtype).eps if eps is None else eps
    square = _row_products(rows, rows) / rows.dtype.type(max(rows.shape[1], 1))
    return 1 / np.sqrt(square + rows.dtype.type(bound))


@native
def rms_norm_back(
    grad: Array, input: Array, normalized_shape: Shape, weight: Array | None, eps: float | None
) -> tuple[Array, Array | None]:
    """The gradients of an RMS norm with respect to its input and its weight."""
    rows, g = _as_rows(widened(input), normalized_shape), _as_rows(widened(grad), normalized_shape)
    factor = None if weight is None else widened(weight).reshape(-1)
    to_input, to_weight = _normalization_back(g, rows, None, _root_mean_square(rows, eps), factor)
    to_input = rounded(to_input.reshape(input.shape), input.dtype)
    return to_input, None if weight is None else rounded(to_weight.reshape(normalized_shape), weight.dtype)


@by_device
def weight_norm_interface(v: Array, g: Array, dim: int) -> tuple[Array, Array]:
    """Weights of the directions of `v` and the norms `g` over all dimensions but `dim`; the weights and the norms of `v`."""
    wide = widened(v)
    norms = np.sqrt(np.sum(wide * wide, axis=_all_but(dim, v.ndim), keepdims=True))
    return rounded(wide * (widened(g) / norms), v.dtype), norms


def _all_but(dim: int, ndim: int) -> tuple[int, ...]:
    return tuple([d for d in range(ndim) if d != dim % ndim])


_Wanted = tuple[bool, ...]
_Maybe = Array | None


def _rows_again(
    grads: tuple[_Maybe, _Maybe, _Maybe], g: Array, n: Array, rstd: Array, w: _Maybe, of_rows: bool
) -> tuple[Any, Any, Any]:
    """The gradients of those of normalized rows `n`: of their gradient `g`, of the rows, and, times `g`, of the factor `w`.

    With P(v) = rstd (v - mean(v) - n mean(v n)), which is its own adjoint, and h = g w, the gradient of rows is P(h). That
    of rstd, which the rows decide, is -rstd^2 n / count.
    """
    to_rows, to_factor, to_shift = grads
    count = n.dtype.type(max(n.shape[1], 1))
    to_g = pulled = v = None
    spread: Any = 0
    if to_rows is not None:
        along, level = _row_products(to_rows, n) / count, _row_means(to_rows)
        pulled = (to_rows - level - n * along) * rstd
        to_g = pulled if w is None else pulled * w
        if of_rows:
            h = g if w is None else g * w
            share = _row_products(h, n) / count
            v = (to_rows * share + h * along) * -rstd
            spread = _row_products(to_rows, h) / count - level * _row_means(h) - along * share
    if to_factor is not None:
        to_g = n * to_factor if to_g is None else to_g + n * to_factor
        if of_rows:
            v = g * to_factor if v is None else v + g * to_factor
    if to_shift is not None:
        to_g = np.broadcast_to(to_shift, n.shape) if to_g is None else to_g + to_shift
    if v is not None:
        v = (v - _row_means(v) - n * (_row_products(v, n) / count + rstd * spread)) * rstd
    return to_g, v, pulled


def native_layer_norm_again(
    wanted: _Wanted, grads: Sequence[_Maybe], grad: Array, input: Array, mean: Array, rstd: Array, weight: _Maybe
) -> tuple[_Maybe, ...]:
    """The gradients of `layer_norm_back`: of the gradient that it was given, of the input and of the weight."""
    shape = (mean.size, input.size // max(mean.size, 1))
    x, g, scale = input.reshape(shape), grad.reshape(shape), rstd.reshape(-1, 1)
    w = None if weight is None else weight.reshape(1, -1)
    to_rows, to_factor, to_shift = [
        None if a is None else a.reshape(-1 if i == 0 else 1, shape[1]) for i, a in enumerate(grads)
    ]
    n = (x - mean.reshape(-1, 1)) * scale
    to_g, to_x, pulled = _rows_again((to_rows, to_factor, to_shift), g, n, scale, w, wanted[1])
    to_weight = None
    if wanted[4] and weight is not None and pulled is not None:
        to_weight = np.einsum("ij,ij->j", g, pulled).reshape(weight.shape)
    pair = [None if part is None else part.reshape(input.shape) for part in (to_g, to_x)]
    return pair[0], pair[1], None, None, to_weight, None


def batch_norm_training_again(
    wanted: _Wanted, grads: Sequence[_Maybe], grad: Array, input: Array, mean: Array, rstd: Array, weight: _Maybe
) -> tuple[_Maybe, ...]:
    """The gradients of `batch_norm_training_back`: of the gradient that it was given, of the input and of the weight."""

    def columns(values: Any) -> Any:
        return None if values is None else values.reshape(-1, 1)

    def rows(values: Any) -> Any:
        return (
            None if values is None else values.swapaxes(0, 1).reshape(values.shape[1], values.size // values.shape[1])
        )

    def back(part: _Maybe) -> _Maybe:
        if part is None:
            return None
        return np.ascontiguousarray(part.reshape(input.shape[1], input.shape[0], *input.shape[2:]).swapaxes(0, 1))

    g, scale = rows(grad), columns(rstd)
    n = (rows(input) - columns(mean)) * scale
    given = (rows(grads[0]), columns(grads[1]), columns(grads[2]))
    to_g, to_x, pulled = _rows_again(given, g, n, scale, columns(weight), wanted[1])
    to_weight = None
    if wanted[2] and weight is not None and pulled is not None:
        to_weight = np.einsum("ij,ij->i", g, pulled)
    return back(to_g), back(to_x), to_weight, None, None
