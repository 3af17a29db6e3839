"""Convolutions of any number of spatial dimensions, as products of the weight with the unrolled input.

The input's windows are copied into a matrix (one column per output position) and multiplied by the weight. Batches are
unrolled a chunk at a time, so that the matrix stays in the cache and memory stays bounded.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.halves import rounded
from pullback.backend.unpromised_bits import note_product
from pullback.checks.shapes import check_windows
from pullback.kernels.accumulation import widened
from pullback.kernels.windows import add_windows, offset_slices, pad_with, window_counts, window_view
from pullback.native import native
from pullback.typing import Array, Shape

# Elements of the unrolled matrix at a time. Measured: 2**19 to 2**21 are alike, 2**23 costs 1.3 times as much.
_CHUNK = 2**20
_CACHED = 2**15  # elements of samples that are added up together, where no matrix is formed


@native
def convolution(
    input: Array, weight: Array, bias: Array | None, stride: Shape, padding: Shape, dilation: Shape, transposed: bool,
    output_padding: Shape, groups: int,
) -> Array:  # fmt: skip
    """Convolve (N, C, *spatial) with (C_out, C / groups, *kernel); `transposed` gives the adjoint of that."""
    dtype = input.dtype
    x, w = widened(input), widened(weight)
    if transposed:
        result = _transposed(x, w, stride, padding, dilation, output_padding, groups)
    else:
        result = _forward(x, w, stride, padding, dilation, groups)
    if bias is not None:
        result += bias.reshape((-1,) + (1,) * (input.ndim - 2))
    return rounded(result, dtype)


def _forward(x: Array, w: Array, stride: Shape, padding: Shape, dilation: Shape, groups: int) -> Array:
    kernel = w.shape[2:]
    counts = window_counts(x.shape[2:], kernel, stride, padding, dilation)
    batch, channels, out_channels, places = x.shape[0], x.shape[1], w.shape[0], math.prod(counts)
    result = np.empty((batch, out_channels, *counts), x.dtype)
    if not result.size:
        return result
    if not x.size:
        result[...] = 0
        return result
    if channels == groups == out_channels and places > 1:
        return _depthwise(pad_with(x, padding), w, stride, dilation, result)
    matrix = w.reshape(groups, out_channels // groups, -1)
    step = _samples_per_chunk(math.prod(kernel) * channels * places)
    room: list[Array] = []
    for start in range(0, batch, step):
        part = x[start : start + step]
        columns = _columns(part, kernel, stride, padding, dilation, counts, groups, room)
        note_product(matrix, columns.shape[-1])
        if len(part) == 1:
            np.matmul(matrix, columns, out=result[start].reshape(groups, -1, places))
            continue
        target = result[start : start + step].reshape(len(part), groups, -1, places)
        target[...] = _samples_first(np.matmul(matrix, columns), len(part), _samples_last(len(part), kernel, counts))
    return result


def _samples_per_chunk(elements: int) -> int:
    return max(1, _CHUNK // max(1, elements))


# Note [Samples last]
# The columns of the unrolled matrix are positions of each sample in turn, or, where rows of positions are short, samples
# of each position in turn: then NumPy copies and adds runs of (row length times samples) elements instead of short rows.


def _samples_last(batch: int, kernel: Shape, counts: Shape) -> bool:
    """Which order of columns is faster; see Note [Samples last].

    Measured with 32 samples of 6x14x14 and a 5x5 kernel: samples last take 0.65 of the time forward, 0.49 backward to
    the input; with rows of 28 they take 1.15 and 0.9 of it.
    """
    return batch >= 4 and counts[-1] < 24 and math.prod(kernel) > 1


def _unrolled(part: Array, last: bool) -> Array:
    """Samples (N, groups, C, places) as a matrix per group whose columns are ordered as Note [Samples last] says."""
    ordered = part.transpose(1, 2, 3, 0) if last else part.transpose(1, 2, 0, 3)
    return ordered.reshape(*ordered.shape[:2], -1)


def _samples_first(product: Array, batch: int, last: bool) -> Array:
    """The inverse of `_unrolled`, as a view."""
    lead = product.shape[:2]
    if last:
        return product.reshape(*lead, -1, batch).transpose(3, 0, 1, 2)
    return product.reshape(*lead, batch, -1).transpose(2, 0, 1, 3)


def _columns(
    x: Array, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, counts: Shape, groups: int,
    room: list[Array],
) -> Array:  # fmt: skip
    """The windows of a few samples as a matrix per group: (groups, C / groups * kernel, N * places).

    `room` keeps the matrix for the next chunk, which is written over it: fresh pages cost as much as the copy.
    """
    batch, channels = x.shape[:2]
    if math.prod(kernel) == 1 and not any(padding) and all(s == 1 for s in stride):
        flat = x.reshape(batch, groups, channels // groups, -1)
        return flat.transpose(1, 2, 0, 3).reshape(groups, channels // groups, -1)
    dims = len(kernel)
    if _samples_last(batch, kernel, counts):
        moved = np.ascontiguousarray(pad_with(x, padding).transpose(*range(1, 2 + dims), 0))
        ordered = window_view(moved, (*kernel, 1), (*stride, 1), (*dilation, 1), (*counts, batch))
    else:
        windows = window_view(pad_with(x, padding), kernel, stride, dilation, counts)
        ordered = windows.transpose(*range(1, 2 + dims), 0, *range(2 + dims, 2 + 2 * dims))
    if not room or room[0].shape != ordered.shape:
        room[:] = [np.empty(ordered.shape, x.dtype)]
    room[0][...] = ordered
    return room[0].reshape(groups, channels // groups * math.prod(kernel), -1)


def _depthwise(padded: Array, w: Array, stride: Shape, dilation: Shape, result: Array) -> Array:
    """One filter per channel: a sum of shifted inputs, of as many samples at a time as stay in the cache."""
    dims = len(stride)
    counts = result.shape[2:]
    places = offset_slices(w.shape[2:], stride, dilation, counts)
    factors = [w[(slice(None), 0, *offset)].reshape((-1,) + (1,) * dims) for offset, _ in places]
    step = max(1, _CACHED // math.prod(result.shape[1:]))
    room = np.empty((step, *result.shape[1:]), result.dtype)
    for start in range(0, len(result), step):
        samples, total = padded[start : start + step], result[start : start + step]
        term = room[: len(total)]
        np.multiply(samples[(..., *places[0][1])], factors[0], out=total)
        for (_, place), factor in zip(places[1:], factors[1:], strict=True):
            np.multiply(samples[(..., *place)], factor, out=term)
            total += term
    return result


def _transposed(
    x: Array, w: Array, stride: Shape, padding: Shape, dilation: Shape, output_padding: Shape, groups: int
) -> Array:
    kernel, counts, dims = w.shape[2:], x.shape[2:], len(stride)
    sizes = tuple(
        [
            (n - 1) * s + d * (k - 1) + 1 + o
            for n, s, d, k, o in zip(counts, stride, dilation, kernel, output_padding, strict=True)
        ]
    )
    batch, channels, out_channels = x.shape[0], x.shape[1], w.shape[1] * groups
    inner = tuple([n - 2 * p for n, p in zip(sizes, padding, strict=True)])
    crop = (slice(None), slice(None), *[slice(p, p + n) for p, n in zip(padding, inner, strict=True)])
    result = np.zeros((batch, out_channels, *inner), x.dtype)
    if not result.size or not x.size:
        return result
    if channels == groups == out_channels:
        return np.ascontiguousarray(_depthwise_transposed(x, w, stride, dilation, sizes)[crop])
    around = tuple([d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)])
    if max(stride) == 1 and not any(output_padding) and min(around) >= 0 and channels <= 2 * out_channels:
        return _forward(x, _adjoint_weight(w, groups), stride, around, dilation, groups)
    matrix = w.reshape(groups, channels // groups, -1).transpose(0, 2, 1)
    places = math.prod(counts)
    step = _samples_per_chunk(math.prod(kernel) * out_channels * places)
    for start in range(0, batch, step):
        part = x[start : start + step].reshape(-1, groups, channels // groups, places)
        last = _samples_last(len(part), kernel, counts)
        unrolled = _unrolled(part, last)
        note_product(matrix, unrolled.shape[-1])
        columns = np.matmul(matrix, unrolled)
        if last:
            windows = columns.reshape(out_channels, *kernel, 1, *counts, len(part))
            total = add_windows(windows, (*sizes, len(part)), (*stride, 1), (*dilation, 1))
            result[start : start + step] = total.transpose(1 + dims, *range(1 + dims))[crop]
            continue
        windows = columns.reshape(out_channels, *kernel, -1, *counts)
        windows = windows.transpose(1 + dims, *range(1 + dims), *range(2 + dims, 2 + 2 * dims))
        result[start : start + step] = add_windows(windows, sizes, stride, dilation)[crop]
    return result


def _adjoint_weight(w: Array, groups: int) -> Array:
    """The weight whose convolution is the adjoint of a convolution by `w` with stride 1: turned round, channels swapped.

    Reading windows costs a third of adding them up, so this road is taken unless the input has many more channels.
    """
    turned = w[(slice(None), slice(None), *[slice(None, None, -1)] * (w.ndim - 2))]
    grouped = turned.reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
    return grouped.reshape(-1, w.shape[0] // groups, *w.shape[2:])


def _depthwise_transposed(x: Array, w: Array, stride: Shape, dilation: Shape, sizes: Shape) -> Array:
    """The adjoint of `_depthwise`: the gradient, times each weight, added where the weight had read."""
    total = np.zeros((*x.shape[:2], *sizes), x.dtype)
    tail = (1,) * len(sizes)
    step = max(1, _CACHED // math.prod(x.shape[1:]))
    room = np.empty((step, *x.shape[1:]), x.dtype)
    for start in range(0, len(x), step):
        samples, targets = x[start : start + step], total[start : start + step]
        term = room[: len(samples)]
        for offset, places in offset_slices(w.shape[2:], stride, dilation, x.shape[2:]):
            np.multiply(samples, w[(slice(None), 0, *offset)].reshape(-1, *tail), out=term)
            targets[(..., *places)] += term
    return total


def _depthwise_grad_weight(padded: Array, g: Array, weight_shape: Shape, stride: Shape, dilation: Shape) -> Array:
    """For each weight the product of the gradient with what the weight had read, summed per channel."""
    check_windows(padded.shape[2:], weight_shape[2:], stride, dilation, g.shape[2:])
    total = np.zeros(weight_shape, g.dtype)
    flat = (*g.shape[:2], -1)
    for offset, places in offset_slices(weight_shape[2:], stride, dilation, g.shape[2:]):
        read = padded[(slice(None), slice(None), *places)].conj().reshape(flat)
        total[(slice(None), 0, *offset)] = np.einsum("ncl,ncl->c", g.reshape(flat), read)
    return total


@native
def convolution_grad_weight(
    input: Array, output_grad: Array, weight_shape: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Array:
    """The gradient of a convolution with respect to its weight; linear in `input` and in the result's gradient."""
    kernel = weight_shape[2:]
    counts = output_grad.shape[2:]
    x, g = widened(input), widened(output_grad)
    batch, channels, out_channels = x.shape[0], x.shape[1], weight_shape[0]
    total = np.zeros((groups, out_channels // groups, channels // groups * math.prod(kernel)), x.dtype)
    if not total.size or not g.size:
        return np.zeros(weight_shape, input.dtype)
    if channels == groups == out_channels:
        weight = _depthwise_grad_weight(pad_with(x, padding), g, weight_shape, stride, dilation)
        return weight.astype(input.dtype, copy=False)
    step = _samples_per_chunk(math.prod(kernel) * channels * math.prod(counts))
    room: list[Array] = []
    for start in range(0, batch, step):
        columns = _columns(x[start : start + step], kernel, stride, padding, dilation, counts, groups, room)
        part = g[start : start + step].reshape(-1, groups, out_channels // groups, math.prod(counts))
        rows = _unrolled(part, _samples_last(len(part), kernel, counts))
        note_product(rows, columns.shape[1])
        total += np.matmul(rows, columns.conj().transpose(0, 2, 1))
    return rounded(total.reshape(weight_shape), input.dtype)
