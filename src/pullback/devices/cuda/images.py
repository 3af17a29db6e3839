"""Batch norm and pooling on the GPU.

Batch norm is two launches each way: statistics of parts of a channel, then the rest.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.devices.cuda.convolutions import Geometry, numbers_text, width_of
from pullback.devices.cuda.family import Family, serves
from pullback.devices.cuda.rows import TYPES, compiled, dense_operands, name_of
from pullback.modes.determinism import are_deterministic_algorithms_enabled

_POOL = r"""
/* The first largest element of each window, and its place in the plane. A NaN wins. */
extern "C" __global__ void run(T *out, long long *indices, const T *input, const int height, const int width,
                               const int rows, const int columns, const long long count)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const int column = i % columns, row = i / columns % rows;
        const T *x = input + i / ((long long)rows * columns) * height * width;
        int h = row * S0 - P0, w = column * S1 - P1;
        while (h < 0) h += D0;
        while (w < 0) w += D1;
        int best_at = h * width + w;
        T best = (T)-INFINITE;
        bool is_nan = false;
        for (int ky = 0; ky < K0; ky++) {
            const int y = row * S0 - P0 + ky * D0;
            if (y < 0 || y >= height) continue;
            for (int kx = 0; kx < K1; kx++) {
                const int z = column * S1 - P1 + kx * D1;
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
def _channel_text(text: str, width: int, stored: str) -> str:
    return f"#define V {width}\n#define W {stored}\n{_CHANNEL_HEAD}{text}"


class Images(Family):
    """The kernels, for one library."""

    # Pooling.

    @serves()
    def max_pool2d_with_indices(
        self, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        """The largest elements of windows, and where they lie."""
        served = dense_operands(self._library, input) if input.ndim > 2 else None
        if served is None or ceil_mode:
            return NotImplemented
        (x,) = served
        geometry = Geometry(kernel_size, stride, padding, dilation)
        places = geometry.convolved(x.shape[-2:])
        if min(places) < 1:
            return NotImplemented
        out = self._cupy.ndarray((*x.shape[:-2], *places), x.dtype)
        indices = self._cupy.ndarray(out.shape, np.int64)
        sizes = [np.int32(n) for n in (*x.shape[-2:], *places)]
        text = numbers_text(geometry.key, 1) + _POOL
        blocks = min(-(-out.size // 256), 8448)
        compiled(self._library, text, name_of(x.dtype))((blocks,), (256,), (out, indices, x, *sizes, out.size))
        return self._library.wrapper(out), self._library.wrapper(indices)

    @serves()
    def put_in_planes(self, input: Any, indices: Any, sizes: Any) -> Any:
        """Add elements at their places in planes, in no fixed order."""
        served = dense_operands(self._library, input)
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
        width = width_of(places, x.dtype.itemsize) if x.data.ptr % 16 == 0 else 1
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
        served, stored = (
            dense_operands(self._library, input) if input.ndim > 1 else None,
            self._parameters(weight, bias),
        )
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
        served, stored = (
            dense_operands(self._library, input, grad) if input.ndim > 1 else None,
            self._parameters(weight),
        )
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


def _pointer(array: Any) -> Any:
    return np.uint64(0) if array is None else array.raw
