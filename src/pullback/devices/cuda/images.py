"""Convolutions, batch norm and pooling on the GPU.

A convolution of one or two dimensions unfolds its input (one launch) and is one batched product of cuBLAS's; its adjoint
is a product whose result is folded (one launch). Batch norm is two launches each way: statistics of parts of a channel,
then the rest. What is not served (groups, three dimensions, gaps in memory) is declined.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from pullback.backend.precision import allows_tf32
from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.devices.cuda.family import Family, serves
from pullback.devices.cuda.rows import TYPES, compiled, name_of
from pullback.modes.determinism import are_deterministic_algorithms_enabled

_GEOMETRY = "KH KW SH SW PH PW DH DW"
_UNFOLD = r"""
/* A block has one row: one channel, one place in the window, one sample. A thread has V places next to each other. */
struct __align__(sizeof(T) * V) Pack { T at[V]; };
extern "C" __global__ void run(T *out, const T *input, const int height, const int width, const int rows,
                               const int columns)
{
    const int place = blockIdx.x % (KH * KW), kx = place % KW, ky = place / KW;
    const T *x = input + (long long)(blockIdx.x / (KH * KW)) * height * width;
    T *y = out + (long long)blockIdx.x * rows * columns;
    for (int i = (blockIdx.y * blockDim.x + threadIdx.x) * V; i < rows * columns; i += gridDim.y * blockDim.x * V) {
        const int row = i / columns, column = i - row * columns;
        const int h = row * SH - PH + ky * DH;
        Pack pack;
        #pragma unroll
        for (int k = 0; k < V; k++) {
            const int w = (column + k) * SW - PW + kx * DW;
            pack.at[k] = h >= 0 && h < height && w >= 0 && w < width ? x[h * width + w] : (T)(REAL)0;
        }
        *(Pack *)(y + i) = pack;
    }
}
"""
_FOLD = r"""
/* A block has one channel of one sample; a thread adds up what windows hold of its place. */
extern "C" __global__ void run(T *out, const T *input, const int height, const int width, const int rows,
                               const int columns)
{
    const T *x = input + (long long)blockIdx.x * (KH * KW) * rows * columns;
    T *y = out + (long long)blockIdx.x * height * width;
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < height * width; i += gridDim.y * blockDim.x) {
        const int h = i / width + PH, w = i % width + PW;
        REAL total = 0;
        #pragma unroll
        for (int ky = 0; ky < KH; ky++) {
            const int down = h - ky * DH, row = down / SH;
            if (down < 0 || down - row * SH || row >= rows) continue;
            #pragma unroll
            for (int kx = 0; kx < KW; kx++) {
                const int along = w - kx * DW, column = along / SW;
                if (along < 0 || along - column * SW || column >= columns) continue;
                total += (REAL)x[((ky * KW + kx) * rows + row) * columns + column];
            }
        }
        y[i] = (T)total;
    }
}
"""
_POOL = r"""
/* The first largest element of each window, and its place in the plane. A NaN wins. */
extern "C" __global__ void run(T *out, long long *indices, const T *input, const int height, const int width,
                               const int rows, const int columns, const long long count)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const int column = i % columns, row = i / columns % rows;
        const T *x = input + i / ((long long)rows * columns) * height * width;
        int h = row * SH - PH, w = column * SW - PW;
        while (h < 0) h += DH;
        while (w < 0) w += DW;
        int best_at = h * width + w;
        T best = (T)-INFINITE;
        bool is_nan = false;
        for (int ky = 0; ky < KH; ky++) {
            const int y = row * SH - PH + ky * DH;
            if (y < 0 || y >= height) continue;
            for (int kx = 0; kx < KW; kx++) {
                const int z = column * SW - PW + kx * DW;
                if (z < 0 || z >= width) continue;
                const T value = x[y * width + z];
                const bool wins = (REAL)value != (REAL)value || (!is_nan && (REAL)value > (REAL)best);
                if (wins) { best = value; best_at = y * width + z; is_nan = (REAL)value != (REAL)value; }
            }
        }
        out[i] = best;
        indices[i] = best_at;
    }
}
"""
_PUT = r"""
extern "C" __global__ void run(T *out, const T *input, const long long *indices, const long long plane,
                               const long long places, const long long count)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x)
        atomicAdd(out + i / places * plane + indices[i], input[i]);
}
"""
_CHANNEL_HEAD = r"""
struct __align__(sizeof(T) * V) Pack { T at[V]; };
/* The packs of a channel are counted through all samples; a block of grid (channels, parts) has a run of them. */
#define BEGIN const unsigned length = places / V, all = samples * length, step = (all + gridDim.y - 1) / gridDim.y; \
    const unsigned first = blockIdx.y * step, last = first + step < all ? first + step : all;
#define OVER(i) for (unsigned i##_n = first + threadIdx.x; i##_n < last; i##_n += blockDim.x) { \
    const unsigned i##_s = i##_n / length; \
    const unsigned long long i = ((unsigned long long)i##_s * gridDim.x + blockIdx.x) * length + (i##_n - i##_s * length);
"""
_BATCH_STATISTICS = r"""
/* The mean and the sum of squared differences from it of each part of a channel. */
extern "C" __global__ void run(REAL *parts, const T *input, const int samples, const int places)
{
    BEGIN
    const Pack *x = (const Pack *)input;
    REAL total = 0;
    OVER(i) const Pack p = x[i]; for (int k = 0; k < V; k++) total += (REAL)p.at[k]; }
    const REAL count = first < last ? (REAL)(last - first) * V : (REAL)1;
    const REAL mean = reduce<plus>(total, 0) / count;
    total = 0;
    OVER(i) const Pack p = x[i]; for (int k = 0; k < V; k++) { const REAL d = (REAL)p.at[k] - mean; total += d * d; } }
    total = reduce<plus>(total, 0);
    if (!threadIdx.x) {
        REAL *to = parts + 2 * ((long long)blockIdx.x * gridDim.y + blockIdx.y);
        to[0] = mean;
        to[1] = total;
    }
}
"""
_BATCH_NORM = r"""
extern "C" __global__ void run(T *out, REAL *means, REAL *rstds, REAL *variances, const REAL *parts, const T *input,
                               const W *weight, const W *bias, const int samples, const int places, const double eps)
{
    BEGIN
    const REAL *from = parts + 2LL * blockIdx.x * gridDim.y;
    REAL mean = 0, total = 0;
    for (unsigned p = 0; p < gridDim.y; p++) {
        const unsigned start = p * step, end = start + step < all ? start + step : all;
        if (start < end) mean += from[2 * p] * (REAL)((double)(end - start) / all);
    }
    for (unsigned p = 0; p < gridDim.y; p++) {
        const unsigned start = p * step, end = start + step < all ? start + step : all;
        const REAL d = from[2 * p] - mean;
        if (start < end) total += from[2 * p + 1] + d * d * (REAL)((double)(end - start) * V);
    }
    const REAL variance = (REAL)(total / ((double)all * V)), rstd = 1 / sqrt(variance + (REAL)eps);
    if (!threadIdx.x && !blockIdx.y) {
        means[blockIdx.x] = mean;
        rstds[blockIdx.x] = rstd;
        variances[blockIdx.x] = variance;
    }
    const REAL factor = weight ? rstd * (REAL)weight[blockIdx.x] : rstd, shift = bias ? (REAL)bias[blockIdx.x] : (REAL)0;
    OVER(i)
        const Pack p = ((const Pack *)input)[i];
        Pack q;
        for (int k = 0; k < V; k++) q.at[k] = (T)(((REAL)p.at[k] - mean) * factor + shift);
        ((Pack *)out)[i] = q;
    }
}
"""
_BATCH_NORM_SUMS = r"""
/* The sums of the gradient, and of its products with the normalized input, of each part of a channel. */
extern "C" __global__ void run(REAL *parts, const T *grad, const T *input, const REAL *means, const REAL *rstds,
                               const int samples, const int places)
{
    BEGIN
    const REAL mean = means[blockIdx.x], rstd = rstds[blockIdx.x];
    REAL total = 0, along = 0;
    OVER(i)
        const Pack g = ((const Pack *)grad)[i], p = ((const Pack *)input)[i];
        for (int k = 0; k < V; k++) { total += (REAL)g.at[k]; along += (REAL)g.at[k] * (((REAL)p.at[k] - mean) * rstd); }
    }
    total = reduce<plus>(total, 0);
    along = reduce<plus>(along, 0);
    if (!threadIdx.x) {
        REAL *to = parts + 2 * ((long long)blockIdx.x * gridDim.y + blockIdx.y);
        to[0] = total;
        to[1] = along;
    }
}
"""
_BATCH_NORM_BACK = r"""
extern "C" __global__ void run(T *out, W *to_weight, T *to_bias, const REAL *parts, const T *grad, const T *input,
                               const REAL *means, const REAL *rstds, const W *weight, const int samples, const int places)
{
    BEGIN
    const REAL *from = parts + 2LL * blockIdx.x * gridDim.y, mean = means[blockIdx.x], rstd = rstds[blockIdx.x];
    REAL total = 0, along = 0;
    for (unsigned p = 0; p < gridDim.y; p++) { total += from[2 * p]; along += from[2 * p + 1]; }
    if (!threadIdx.x && !blockIdx.y) { to_weight[blockIdx.x] = (W)along; to_bias[blockIdx.x] = (T)total; }
    const REAL count = (REAL)((double)all * V), factor = weight ? rstd * (REAL)weight[blockIdx.x] : rstd;
    total /= count;
    along /= count;
    OVER(i)
        const Pack g = ((const Pack *)grad)[i], p = ((const Pack *)input)[i];
        Pack q;
        for (int k = 0; k < V; k++)
            q.at[k] = (T)(((REAL)g.at[k] - total - ((REAL)p.at[k] - mean) * rstd * along) * factor);
        ((Pack *)out)[i] = q;
    }
}
"""


@cache
def _with_geometry(text: str, geometry: tuple[int, ...], width: int) -> str:
    """A text with the numbers of a window, and of elements that a thread has, put in."""
    names = [*_GEOMETRY.split(), "V"]
    return "".join([f"#define {n} {v}\n" for n, v in zip(names, (*geometry, width), strict=True)]) + text


@cache
def _channel_text(text: str, width: int, stored: str) -> str:
    return f"#define V {width}\n#define W {stored}\n{_CHANNEL_HEAD}{text}"


class Images(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, products: Any, rows: Any) -> None:
        super().__init__(library)
        self._products = products
        self._rows = rows

    def _served(self, *arrays: Any) -> list[Any] | None:
        """The library's arrays, made dense; None unless all are of one floating dtype that is served, and not empty."""
        wrapper = self._library.wrapper
        dtype = arrays[0].dtype
        if name_of(dtype) not in TYPES or any(type(a) is not wrapper or a.dtype != dtype or not a.size for a in arrays):
            return None
        return [raw if raw._c_contiguous else self._cupy.ascontiguousarray(raw) for raw in [a.raw for a in arrays]]

    # Convolutions. With x (N, C, H, W), w (O, C, KH, KW): the unfolded x is (N, C * KH * KW, places).

    @serves()
    def convolution(
        self, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int,
    ) -> Any:  # fmt: skip
        """Convolve one or two dimensions; `transposed` gives the adjoint of that."""
        dims = len(stride)
        if groups != 1 or dims > 2 or input.ndim != dims + 2 or (bias is not None and bias.dtype != input.dtype):
            return NotImplemented
        served = self._served(input, weight)
        if served is None:
            return NotImplemented
        x, w = served
        geometry = (*w.shape[2:], *stride, *padding, *dilation)
        sizes = self._transposed_sizes if transposed else self._convolved_sizes
        places = sizes(x.shape[2:], w.shape[2:], stride, padding, dilation, output_padding)
        if min(places) < 1:
            return NotImplemented
        if dims == 1:
            geometry, x, w = _flat_geometry(geometry), x[:, :, None], w[:, :, None]
        run = self._transposed if transposed else self._convolved
        out = run(x, w, geometry, (1, *places) if dims == 1 else places)
        result = self._library.wrapper(out.reshape(*out.shape[:2], *places))
        if bias is None:
            return result
        return self._library.kernels["add"](result, bias.reshape((-1,) + (1,) * dims))

    def _convolved_sizes(self, sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, _: Any) -> Any:
        parts = zip(sizes, kernel, stride, padding, dilation, strict=True)
        return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in parts])

    def _transposed_sizes(self, sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, rest: Any) -> Any:
        parts = zip(sizes, kernel, stride, padding, dilation, rest, strict=True)
        return tuple([(n - 1) * s + d * (k - 1) + 1 + o - 2 * p for n, k, s, p, d, o in parts])

    def _convolved(self, x: Any, w: Any, geometry: tuple[int, ...], places: Any) -> Any:
        """w @ unfolded x."""
        columns = self._unfolded(x, geometry, places)
        return self._batched(w.reshape(1, w.shape[0], -1), columns, (x.shape[0], w.shape[0], *places))

    def _transposed(self, x: Any, w: Any, geometry: tuple[int, ...], places: Any) -> Any:
        """The folded w.T @ x, where w is (C, O, KH, KW)."""
        samples, channels = x.shape[:2]
        matrix = w.reshape(1, channels, -1).transpose(0, 2, 1)
        flat = x.reshape(samples, channels, -1)
        if geometry[:8] == _POINT and tuple(places) == x.shape[2:]:
            return self._batched(matrix, flat, (samples, w.shape[1], *places))
        windows = self._batched(matrix, flat, (samples, matrix.shape[1], flat.shape[2]))
        out = self._cupy.ndarray((samples, w.shape[1], *places), x.dtype)
        text = _with_geometry(_FOLD, geometry, 1)
        count = places[0] * places[1]
        threads, parts = _threads_and_parts(count, samples * w.shape[1])
        sizes = [np.int32(n) for n in (*places, *x.shape[2:])]
        compiled(self._library, text, name_of(x.dtype))(
            (samples * w.shape[1], parts), (threads,), (out, windows, *sizes)
        )
        return out

    def _unfolded(self, x: Any, geometry: tuple[int, ...], places: Any) -> Any:
        samples, channels = x.shape[:2]
        count = places[0] * places[1]
        if geometry[:8] == _POINT:
            return x.reshape(samples, channels, count)
        kernel = geometry[0] * geometry[1]
        out = self._cupy.ndarray((samples, channels * kernel, count), x.dtype)
        width = _width(places[1], x.dtype.itemsize)
        rows = samples * channels * kernel
        threads, parts = _threads_and_parts(count // width, rows)
        sizes = [np.int32(n) for n in (*x.shape[2:], *places)]
        text = _with_geometry(_UNFOLD, geometry, width)
        compiled(self._library, text, name_of(x.dtype))((rows, parts), (threads,), (out, x, *sizes))
        return out

    def _batched(self, first: Any, second: Any, shape: tuple[int, ...]) -> Any:
        """Products of batches; a batch of one matrix is multiplied with all of the other."""
        return self._products.batched(first, second, shape, allows_tf32(True))

    @serves()
    def convolution_grad_weight(
        self, input: Any, output_grad: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        """The gradient of a convolution with respect to its weight: the sum of grad @ unfolded input.T."""
        dims = len(stride)
        if groups != 1 or dims > 2 or input.ndim != dims + 2:
            return NotImplemented
        served = self._served(input, output_grad)
        if served is None:
            return NotImplemented
        x, g = served
        geometry = (*weight_shape[2:], *stride, *padding, *dilation)
        places = g.shape[2:]
        if dims == 1:
            geometry, x, places = _flat_geometry(geometry), x[:, :, None], (1, *places)
        columns = self._unfolded(x, geometry, places)
        samples, outputs, rest = x.shape[0], g.shape[1], columns.shape[1]
        wide = columns.dtype if columns.dtype.itemsize > 2 else np.dtype(np.float32)
        flat = g.reshape(samples, outputs, -1)
        found = self._products.batched(
            flat, columns.transpose(0, 2, 1), (samples, outputs, rest), allows_tf32(True), wide
        )
        if samples > 1:
            found = self._rows.add_rows_up(found.reshape(samples, -1))
        return self._library.wrapper(found.reshape(weight_shape).astype(x.dtype, copy=False))

    # Pooling.

    @serves()
    def max_pool2d_with_indices(
        self, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        """The largest elements of windows, and where they lie."""
        served = self._served(input) if input.ndim > 2 else None
        if served is None or ceil_mode:
            return NotImplemented
        (x,) = served
        places = self._convolved_sizes(x.shape[-2:], kernel_size, stride, padding, dilation, None)
        if min(places) < 1:
            return NotImplemented
        out = self._cupy.ndarray((*x.shape[:-2], *places), x.dtype)
        indices = self._cupy.ndarray(out.shape, np.int64)
        sizes = [np.int32(n) for n in (*x.shape[-2:], *places)]
        text = _with_geometry(_POOL, (*kernel_size, *stride, *padding, *dilation), 1)
        blocks = min(-(-out.size // 256), 8448)
        compiled(self._library, text, name_of(x.dtype))((blocks,), (256,), (out, indices, x, *sizes, out.size))
        return self._library.wrapper(out), self._library.wrapper(indices)

    @serves()
    def put_in_planes(self, input: Any, indices: Any, sizes: Any) -> Any:
        """Add elements at their places in planes, in no fixed order."""
        served = self._served(input)
        if served is None or input.dtype.itemsize < 4 or type(indices) is not self._library.wrapper:
            return NotImplemented
        if are_deterministic_algorithms_enabled():
            return NotImplemented
        note_unpromised(ARRIVAL, "sums at positions on a GPU")
        (x,), dims = served, len(sizes)
        places = self._cupy.ascontiguousarray(indices.raw)
        out = self._cupy.zeros((*x.shape[: x.ndim - dims], *sizes), x.dtype)
        numbers = (math.prod(sizes), math.prod(x.shape[x.ndim - dims :]), x.size)
        blocks = min(-(-x.size // 256), 8448)
        compiled(self._library, _PUT, name_of(x.dtype))((blocks,), (256,), (out, x, places, *numbers))
        return self._library.wrapper(out)

    # Batch norm.

    def _channels(self, x: Any) -> tuple[int, int, int, tuple[int, int]]:
        """Elements a thread has at a time, samples, places of a sample, and the grid."""
        samples, channels = x.shape[:2]
        places = x.size // (samples * channels)
        width = _width(places, x.dtype.itemsize) if x.data.ptr % 16 == 0 else 1
        parts = max(1, min(528 // channels, samples * places // 2048))
        return width, samples, places, (channels, parts)

    def _parameters(self, *parameters: Any) -> str | None:
        """CUDA's name of the parameters' dtype; None where they are not dense and of one dtype."""
        given = [p for p in parameters if p is not None]
        wrapper = self._library.wrapper
        if any(type(p) is not wrapper or not p.raw._c_contiguous or p.dtype != given[0].dtype for p in given):
            return None
        return TYPES.get(name_of(given[0].dtype)) if given else "REAL"

    @serves()
    def batch_norm_training(self, input: Any, weight: Any, bias: Any, eps: float) -> Any:
        """Normalize channels by their own statistics."""
        served, stored = self._served(input) if input.ndim > 1 else None, self._parameters(weight, bias)
        if served is None or stored is None or not self._fit(input, weight, bias):
            return NotImplemented
        (x,) = served
        width, samples, places, grid = self._channels(x)
        real = np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)
        parts = self._cupy.ndarray((*grid, 2), real)
        out = self._cupy.ndarray(x.shape, x.dtype)
        mean, rstd, variance = (self._cupy.ndarray((x.shape[1],), real) for _ in range(3))
        sizes = (np.int32(samples), np.int32(places))
        self._launch(_BATCH_STATISTICS, width, stored, x, grid, (parts, x, *sizes))
        given = (out, mean, rstd, variance, parts, x, _pointer(weight), _pointer(bias), *sizes, float(eps))
        self._launch(_BATCH_NORM, width, stored, x, grid, given)
        return tuple([self._library.wrapper(a) for a in (out, mean, rstd, variance)])

    @serves()
    def batch_norm_training_back(self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, eps: float) -> Any:
        """The gradients of a batch norm with respect to its input, its weight and its bias."""
        served, stored = self._served(input, grad) if input.ndim > 1 else None, self._parameters(weight)
        if served is None or stored is None or not self._fit(input, weight):
            return NotImplemented
        x, g = served
        width, samples, places, grid = self._channels(x)
        if g.data.ptr % 16:
            width = 1
        real = np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)
        if mean.dtype != real:
            return NotImplemented
        parts = self._cupy.ndarray((*grid, 2), real)
        out = self._cupy.ndarray(x.shape, x.dtype)
        to_weight = self._cupy.ndarray((x.shape[1],), real if weight is None else weight.dtype)
        to_bias = self._cupy.ndarray((x.shape[1],), x.dtype)
        sizes = (np.int32(samples), np.int32(places))
        self._launch(_BATCH_NORM_SUMS, width, stored, x, grid, (parts, g, x, mean.raw, rstd.raw, *sizes))
        given = (out, to_weight, to_bias, parts, g, x, mean.raw, rstd.raw, _pointer(weight), *sizes)
        self._launch(_BATCH_NORM_BACK, width, stored, x, grid, given)
        return tuple([self._library.wrapper(a) for a in (out, to_weight, to_bias)])

    def _fit(self, input: Any, *parameters: Any) -> bool:
        """Whether parameters have a dtype that goes with the input's; what does not is the text's to refuse."""
        dtype = input.dtype
        return input.size < 2**31 and all(
            p is None or p.dtype == dtype or (dtype.itemsize == 2 and p.dtype == np.float32) for p in parameters
        )

    def _launch(self, text: str, width: int, stored: str, x: Any, grid: Any, arguments: Any) -> None:
        compiled(self._library, _channel_text(text, width, stored), name_of(x.dtype))(grid, (256,), arguments)


_POINT = (1, 1, 1, 1, 0, 0, 1, 1)
"""A window of one place: nothing is to be unfolded."""


def _flat_geometry(geometry: tuple[int, ...]) -> tuple[int, ...]:
    """Kernel, stride, padding and dilation of one dimension as those of two."""
    kernel, stride, padding, dilation = geometry
    return (1, kernel, 1, stride, 0, padding, 1, dilation)


def _width(count: int, itemsize: int) -> int:
    """How many elements a thread has at a time: as many of a row of `count` as make 16 bytes, or fewer."""
    width = 16 // itemsize
    while count % width:
        width //= 2
    return width


def _threads_and_parts(count: int, rows: int) -> tuple[int, int]:
    """Threads of a block, and blocks to a row of `count` pieces of work."""
    threads = 32 if count <= 32 else 128 if count <= 128 else 256
    return threads, max(1, min(-(-count // threads), 2112 // max(rows, 1)))


def _pointer(array: Any) -> Any:
    return np.uint64(0) if array is None else array.raw
