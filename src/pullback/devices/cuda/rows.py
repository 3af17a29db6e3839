"""Kernels of the GPU along rows: softmax and layer norm with their gradients, sums, steps of Adam. One launch each.

A block of threads has a row (a warp, where rows are short); its threads reduce together. 16-bit floats are computed in
float32. What is not served (a dimension that is not last, gaps in memory, other dtypes) is declined.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from pullback.devices.cuda.family import Family, serves

TYPES = {"float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16"}
"""What CUDA calls the dtypes that are served."""


@cache
def name_of(dtype: Any) -> str:
    """The name of a dtype: NumPy takes four microseconds to make it."""
    return str(dtype.name)


_HEAD = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define INFINITE ((REAL)__longlong_as_double(0x7ff0000000000000LL))
static __device__ inline REAL larger(REAL a, REAL b) { return a != a || a > b ? a : b; }
static __device__ inline REAL plus(REAL a, REAL b) { return a + b; }
template <REAL (*join)(REAL, REAL)> static __device__ inline REAL reduce(REAL value, REAL start)
{
    __shared__ REAL parts[32];
    for (int step = 16; step; step >>= 1)
        value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    if (blockDim.x == 32)
        return value;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : start;
    for (int step = 16; step; step >>= 1)
        value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}
#define ALONG(i) for (long long i = threadIdx.x; i < length; i += blockDim.x)
"""
_SOFTMAX = r"""
extern "C" __global__ void run(T *out, const T *input, const long long length)
{
    const T *x = input + blockIdx.x * length;
    T *y = out + blockIdx.x * length;
    /* One pass: the largest so far, and the sum that goes with it; four elements at a time. */
    REAL own = -INFINITE, sum = 0;
    const long long step = 4LL * blockDim.x;
    long long start = threadIdx.x;
    for (; start + 3LL * blockDim.x < length; start += step) {
        const REAL a = (REAL)x[start], b = (REAL)x[start + blockDim.x], c = (REAL)x[start + 2 * blockDim.x],
                   d = (REAL)x[start + 3 * blockDim.x];
        const REAL now = larger(larger(larger(own, a), b), larger(c, d));
        if (now == -INFINITE) continue;
        sum = sum * exp(own - now) + exp(a - now) + exp(b - now) + exp(c - now) + exp(d - now);
        own = now;
    }
    for (; start < length; start += blockDim.x) {
        const REAL a = (REAL)x[start], now = larger(own, a);
        if (now == -INFINITE) continue;
        sum = sum * exp(own - now) + exp(a - now);
        own = now;
    }
    const REAL most = reduce<larger>(own, -INFINITE);
    const REAL total = reduce<plus>(own == -INFINITE && most != -INFINITE ? (REAL)0 : sum * exp(own - most), 0);
    RESULT
}
"""
_SOFTMAX_RESULTS = {
    "softmax": "const REAL scale = 1 / total; ALONG(i) y[i] = (T)(exp((REAL)x[i] - most) * scale);",
    "log_softmax": "const REAL shift = most + log(total); ALONG(i) y[i] = (T)((REAL)x[i] - shift);",
}
_SOFTMAX_GRAD = r"""
extern "C" __global__ void run(T *out, const T *grad, const T *result, const long long length)
{
    const T *g = grad + blockIdx.x * length, *y = result + blockIdx.x * length;
    T *to = out + blockIdx.x * length;
    REAL total = 0;
    ALONG(i) total += TERM;
    total = reduce<plus>(total, 0);
    ALONG(i) to[i] = (T)(RESULT);
}
"""
_SOFTMAX_GRADS = {
    "softmax_backward_data": ("(REAL)g[i] * (REAL)y[i]", "(REAL)y[i] * ((REAL)g[i] - total)"),
    "log_softmax_backward_data": ("(REAL)g[i]", "(REAL)g[i] - exp((REAL)y[i]) * total"),
}
_LAYER_NORM = r"""
extern "C" __global__ void run(T *out, REAL *means, REAL *rstds, const T *input, const T *weight, const T *bias,
                               const long long length, const double eps)
{
    const T *x = input + blockIdx.x * length;
    T *y = out + blockIdx.x * length;
    REAL total = 0;
    ALONG(i) total += (REAL)x[i];
    const REAL mean = reduce<plus>(total, 0) / length;
    total = 0;
    ALONG(i) { const REAL d = (REAL)x[i] - mean; total += d * d; }
    const REAL rstd = rsqrt(reduce<plus>(total, 0) / length + (REAL)eps);
    ALONG(i) {
        REAL n = ((REAL)x[i] - mean) * rstd;
        if (weight) n *= (REAL)weight[i];
        if (bias) n += (REAL)bias[i];
        y[i] = (T)n;
    }
    if (!threadIdx.x) { means[blockIdx.x] = mean; rstds[blockIdx.x] = rstd; }
}
"""
_LAYER_NORM_BACK = r"""
extern "C" __global__ void run(T *out, const T *grad, const T *input, const REAL *means, const REAL *rstds,
                               const T *weight, const long long length)
{
    const T *x = input + blockIdx.x * length, *g = grad + blockIdx.x * length;
    T *to = out + blockIdx.x * length;
    const REAL mean = means[blockIdx.x], rstd = rstds[blockIdx.x];
    REAL first = 0, second = 0;
    ALONG(i) {
        const REAL h = (REAL)g[i] * (weight ? (REAL)weight[i] : (REAL)1);
        first += h; second += h * ((REAL)x[i] - mean) * rstd;
    }
    first = reduce<plus>(first, 0) / length;
    second = reduce<plus>(second, 0) / length;
    ALONG(i) {
        const REAL h = (REAL)g[i] * (weight ? (REAL)weight[i] : (REAL)1);
        to[i] = (T)(rstd * (h - first - ((REAL)x[i] - mean) * rstd * second));
    }
}
"""
_COLUMNS = r"""
/* A block sums some rows of 32 columns, the TERM of each element; the last block of a column sums what all found, in a
   fixed order. COUNT sums are made side by side. */
extern "C" __global__ void run(T *out, REAL *found, int *counters, ARGUMENTS, const long long rows, const long long columns,
                               const long long step)
{
    const long long column = blockIdx.x * 32LL + threadIdx.x;
    const long long first = blockIdx.y * step, last = first + step < rows ? first + step : rows;
    __shared__ REAL parts[COUNT][8][33];
    __shared__ bool is_last;
    REAL total[COUNT];
    for (int c = 0; c < COUNT; c++) total[c] = 0;
    if (column < columns)
        for (long long row = first + threadIdx.y; row < last; row += 8) {
            const long long i = row * columns + column;
            TERM
        }
    for (int turn = 0;; turn++) {
        for (int c = 0; c < COUNT; c++) parts[c][threadIdx.y][threadIdx.x] = total[c];
        __syncthreads();
        if (!threadIdx.y && column < columns)
            for (int c = 0; c < COUNT; c++) {
                for (int k = 1; k < 8; k++) total[c] += parts[c][k][threadIdx.x];
                if (gridDim.y == 1 || turn) out[c * columns + column] = (T)total[c];
                else found[(c * (long long)gridDim.y + blockIdx.y) * columns + column] = total[c];
            }
        if (gridDim.y == 1 || turn) return;
        __threadfence();
        __syncthreads();
        if (!threadIdx.x && !threadIdx.y) {
            is_last = atomicAdd(counters + blockIdx.x, 1) == (int)gridDim.y - 1;
            if (is_last) counters[blockIdx.x] = 0;
        }
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        for (int c = 0; c < COUNT; c++) {
            total[c] = 0;
            if (column < columns)
                for (unsigned row = threadIdx.y; row < gridDim.y; row += 8)
                    total[c] += __ldcg(found + (c * (long long)gridDim.y + row) * columns + column);
        }
    }
}
"""
_ROW_SUM = r"""
struct __align__(sizeof(T) * V) Pack { T at[V]; };
extern "C" __global__ void run(T *out, const T *input, const long long length, const double scale)
{
    const Pack *x = (const Pack *)(input + blockIdx.x * length);
    const long long packs = length / V;
    REAL total = 0;
    #pragma unroll 4
    for (long long i = threadIdx.x; i < packs; i += blockDim.x) {
        const Pack p = x[i];
        #pragma unroll
        for (int k = 0; k < V; k++) total += (REAL)p.at[k];
    }
    total = reduce<plus>(total, 0);
    if (!threadIdx.x) out[blockIdx.x] = (T)(total * (REAL)scale);
}
"""
_ADAM = r"""
/* All parameters in one launch: a block has a piece of one of them, as the table says. */
extern "C" __global__ void run(const unsigned long long *arrays, const long long *pieces, const long long *sizes,
    const int kept, const double beta1, const double beta2, const double eps, const double weight_decay,
    const double shrink, const double root_correction, const double step_size, const int maximize)
{
    const long long row = pieces[2 * blockIdx.x], start = pieces[2 * blockIdx.x + 1];
    const long long end = start + PIECE < sizes[row] ? start + PIECE : sizes[row];
    const unsigned long long *at = arrays + row * kept;
    T *param = (T *)at[0], *first = (T *)at[2], *second = (T *)at[3], *largest = kept > 4 ? (T *)at[4] : 0;
    const T *grad = (const T *)at[1];
    for (long long i = start + threadIdx.x; i < end; i += blockDim.x) {
        REAL p = (REAL)param[i], g = (REAL)grad[i], m = (REAL)first[i], v = (REAL)second[i];
        if (maximize) g = -g;
        if (shrink != 1) p *= (REAL)shrink;
        if (weight_decay != 0) g += (REAL)weight_decay * p;
        m += (g - m) * (REAL)(1 - beta1);
        v = v * (REAL)beta2 + g * g * (REAL)(1 - beta2);
        first[i] = (T)m; second[i] = (T)v;
        if (largest) { v = larger((REAL)largest[i], v); largest[i] = (T)v; }
        param[i] = (T)(p - (REAL)step_size * m / (sqrt(v) / (REAL)root_correction + (REAL)eps));
    }
}
"""
_SGD = r"""
extern "C" __global__ void run(const unsigned long long *arrays, const long long *pieces, const long long *sizes,
    const int kept, const double lr, const double momentum, const double dampening, const double weight_decay,
    const int nesterov, const int maximize, const int is_first)
{
    const long long row = pieces[2 * blockIdx.x], start = pieces[2 * blockIdx.x + 1];
    const long long end = start + PIECE < sizes[row] ? start + PIECE : sizes[row];
    const unsigned long long *at = arrays + row * kept;
    T *param = (T *)at[0], *buffer = kept > 2 ? (T *)at[2] : 0;
    const T *grad = (const T *)at[1];
    for (long long i = start + threadIdx.x; i < end; i += blockDim.x) {
        const REAL p = (REAL)param[i];
        REAL g = maximize ? -(REAL)grad[i] : (REAL)grad[i];
        if (weight_decay != 0) g += (REAL)weight_decay * p;
        if (buffer) {
            const REAL b = is_first ? g : (REAL)momentum * (REAL)buffer[i] + (REAL)(1 - dampening) * g;
            buffer[i] = (T)b;
            g = nesterov ? g + (REAL)momentum * b : b;
        }
        param[i] = (T)(p - (REAL)lr * g);
    }
}
"""
_TOTAL = r"""
/* The sum of all elements: blocks sum parts, and the last one to finish sums what they found, in a fixed order. */
struct __align__(sizeof(T) * V) Pack { T at[V]; };
extern "C" __global__ void run(T *out, REAL *parts, int *counter, const T *input, const long long count, const double scale)
{
    __shared__ bool is_last;
    const Pack *x = (const Pack *)input;
    REAL total = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const Pack p = x[i];
        #pragma unroll
        for (int k = 0; k < V; k++) total += (REAL)p.at[k];
    }
    total = reduce<plus>(total, 0);
    if (!threadIdx.x) {
        parts[blockIdx.x] = total;
        __threadfence();
        is_last = atomicAdd(counter, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    total = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(parts + i);
    total = reduce<plus>(total, 0);
    if (!threadIdx.x) { *out = (T)(total * (REAL)scale); *counter = 0; }
}
"""
_PIECE = 8192


@cache
def _columns_text(parameters: str, *terms: str) -> str:
    text = _COLUMNS.replace("ARGUMENTS", parameters).replace("COUNT", str(len(terms)))
    return text.replace("TERM\n", "".join([f"total[{n}] += {term};\n" for n, term in enumerate(terms)]))


@cache
def with_width(text: str, width: int) -> str:
    """A text whose threads have so many elements at a time."""
    return f"#define V {width}\n{text}"


@cache
def compiled(library: Any, text: str, dtype: str, joins: bool = True) -> Any:
    """A kernel, compiled for a dtype at first use: T is what is stored, REAL what is computed in.

    `joins`: products and sums may be rounded as one.
    """
    real = "double" if dtype == "float64" else "float"
    return library.compiled(f"#define REAL {real}\n#define T {TYPES[dtype]}\n{_HEAD}{text}", joins)


def dense_operands(library: Any, *arrays: Any) -> list[Any] | None:
    """The library's arrays, made dense; None unless all are of one floating dtype that is served, and not empty."""
    wrapper, dtype = library.wrapper, arrays[0].dtype
    if name_of(dtype) not in TYPES or any(type(a) is not wrapper or a.dtype != dtype or not a.size for a in arrays):
        return None
    return [raw if raw._c_contiguous else library.module.ascontiguousarray(raw) for raw in [a.raw for a in arrays]]


def _threads(length: int) -> int:
    return 32 if length <= 128 else 128 if length <= 1024 else 256 if length <= 4096 else 512


class RowKernels(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, elementwise: dict[str, Any]) -> None:
        super().__init__(library)
        self._add = elementwise["add"]

    def kernels(self) -> dict[str, Any]:
        made = super().kernels()
        made |= {name: self._softmax(name) for name in _SOFTMAX_RESULTS}
        return made | {name: self._softmax_grad(name) for name in _SOFTMAX_GRADS}

    def _serves(self, *arrays: Any) -> bool:
        """Whether arrays are dense, of one floating dtype, and not empty."""
        wrapper, dtype = self._library.wrapper, None
        for array in arrays:
            if type(array) is not wrapper:
                return False
            raw = array.raw
            if dtype is None:
                dtype = raw.dtype
                if name_of(dtype) not in TYPES or not raw.size:
                    return False
            if not raw._c_contiguous or (raw.dtype is not dtype and raw.dtype != dtype):
                return False
        return True

    def _softmax(self, name: str) -> Any:
        text = _SOFTMAX.replace("RESULT", _SOFTMAX_RESULTS[name])

        def kernel(input: Any, dim: int) -> Any:
            if not self._serves(input) or not input.ndim or dim != input.ndim - 1:
                return NotImplemented
            raw = input.raw
            out = self._cupy.ndarray(raw.shape, raw.dtype)
            length = raw.shape[-1]
            compiled(self._library, text, name_of(raw.dtype))(
                (raw.size // length,), (_threads(length),), (out, raw, length)
            )
            return self._library.wrapper(out)

        return kernel

    def _softmax_grad(self, name: str) -> Any:
        term, result = _SOFTMAX_GRADS[name]
        text = _SOFTMAX_GRAD.replace("TERM", term).replace("RESULT", result)

        def kernel(grad: Any, result: Any, dim: int) -> Any:
            if (
                not self._serves(result, grad)
                or not result.ndim
                or dim != result.ndim - 1
                or grad.shape != result.shape
            ):
                return NotImplemented
            raw = result.raw
            out = self._cupy.ndarray(raw.shape, raw.dtype)
            length = raw.shape[-1]
            compiled(self._library, text, name_of(raw.dtype))(
                (raw.size // length,), (_threads(length),), (out, grad.raw, raw, length)
            )
            return self._library.wrapper(out)

        return kernel

    @serves()
    def native_layer_norm(self, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        """Normalize rows."""
        given = [a for a in (weight, bias) if a is not None]
        if not self._serves(input, *given):
            return NotImplemented
        raw, length = input.raw, math.prod(normalized_shape)
        rows = raw.size // length
        out = self._cupy.ndarray(raw.shape, raw.dtype)
        wide = np.float64 if raw.dtype == np.float64 else np.float32
        kept = raw.shape[: raw.ndim - len(normalized_shape)] + (1,) * len(normalized_shape)
        mean, rstd = self._cupy.ndarray(kept, wide), self._cupy.ndarray(kept, wide)
        arguments = (out, mean, rstd, raw, _pointer(weight), _pointer(bias), length, float(eps))
        compiled(self._library, _LAYER_NORM, name_of(raw.dtype))((rows,), (_threads(length),), arguments)
        return tuple([self._library.wrapper(a) for a in (out, mean, rstd)])

    @serves()
    def layer_norm_back(
        self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, normalized_shape: Any, eps: float
    ) -> Any:
        """The gradients of a layer norm."""
        given = [] if weight is None else [weight]
        if not self._serves(input, grad, *given) or mean.itemsize != max(4, input.itemsize):
            return NotImplemented
        raw, length = input.raw, math.prod(normalized_shape)
        rows = raw.size // length
        out = self._cupy.ndarray(raw.shape, raw.dtype)
        sources = (grad.raw, raw, mean.raw, rstd.raw)
        arguments = (out, *sources, _pointer(weight), length)
        kernel = compiled(self._library, _LAYER_NORM_BACK, name_of(raw.dtype), False)  # what is equal cancels out
        kernel((rows,), (_threads(length),), arguments)
        terms = ["(REAL)g[i]", "(REAL)g[i] * ((REAL)x[i] - mean[row]) * rstd[row]"][: 1 if weight is None else 2]
        parameters = "const T *g, const T *x, const REAL *mean, const REAL *rstd"
        found = self._columns(parameters, terms, sources, raw.dtype, rows, length)
        wrapper = self._library.wrapper
        parts = [wrapper(found[n].reshape(normalized_shape)) for n in range(len(terms))]
        return wrapper(out), None if weight is None else parts[1], parts[0]

    def _columns(self, parameters: str, terms: list[str], arrays: Any, dtype: Any, rows: int, columns: int) -> Any:
        """The sums of terms over rows, for each column: an array with a row for each term."""
        across = -(-columns // 32)
        down = max(1, min(rows // 64, 1056 // across))
        count = len(terms)
        out = self._cupy.ndarray((count, columns), dtype)
        wide = np.float64 if dtype == np.float64 else np.float32
        found = self._cupy.ndarray((count, down, columns), wide) if down > 1 else np.uint64(0)
        text = _columns_text(parameters, *terms)
        arguments = (out, found, self._library.counter(across), *arrays, rows, columns, -(-rows // down))
        compiled(self._library, text, name_of(dtype))((across, down), (32, 8), arguments)
        return out

    def add_rows_up(self, raw: Any) -> Any:
        """The sum of a matrix's rows."""
        return self._columns("const T *g", ["(REAL)g[i]"], (raw,), raw.dtype, raw.shape[0], raw.shape[1])[0]

    @serves()
    def linear_grad_bias(self, grad: Any) -> Any:
        """The gradient of a linear layer with respect to its bias."""
        if not self._serves(grad) or grad.ndim < 2:
            return NotImplemented
        raw = grad.raw
        columns = raw.shape[-1]
        return self._library.wrapper(
            self._columns("const T *g", ["(REAL)g[i]"], (raw,), raw.dtype, raw.size // columns, columns)[0]
        )

    def _reduced(self, input: Any, dim: Any, keepdim: bool, mean: bool) -> Any:
        """A sum or mean over the first or last dimensions; None where it is neither."""
        if not self._serves(input) or not input.ndim:
            return None
        raw = input.raw
        axes = tuple(range(raw.ndim)) if dim is None or dim == () else tuple(sorted(d % raw.ndim for d in dim))
        kept = tuple([1 if d in axes else n for d, n in enumerate(raw.shape)])
        shape = kept if keepdim else tuple([n for d, n in enumerate(raw.shape) if d not in axes])
        length = math.prod([raw.shape[d] for d in axes])
        if len(axes) == raw.ndim:
            return self._library.wrapper(self._total(raw, 1.0 / length if mean else 1.0).reshape(shape))
        if axes == tuple(range(raw.ndim - len(axes), raw.ndim)) and len(axes) < raw.ndim:
            rows = raw.size // length
            out = self._cupy.ndarray(shape, raw.dtype)
            self._row_sums(_ROW_SUM, out, raw, rows, length, 1.0 / length if mean else 1.0)
            return self._library.wrapper(out)
        if axes == (0, *range(2, raw.ndim)) and raw.ndim > 2 and not mean:
            inner = raw.size // (raw.shape[0] * raw.shape[1])
            rows = self._cupy.ndarray(
                (raw.shape[0], raw.shape[1]), np.float64 if raw.dtype == np.float64 else np.float32
            )
            text = _ROW_SUM.replace("T *out", "REAL *out").replace("(T)(total", "(total")
            self._row_sums(text, rows, raw, rows.size, inner, 1.0)
            total = self._columns("const T *g", ["(REAL)g[i]"], (rows,), rows.dtype, *rows.shape)[0]
            return self._library.wrapper(total.astype(raw.dtype, copy=False).reshape(shape))
        if axes == tuple(range(len(axes))) and len(axes) < raw.ndim and not mean:
            columns = raw.size // length
            return self._library.wrapper(
                self._columns("const T *g", ["(REAL)g[i]"], (raw,), raw.dtype, length, columns).reshape(shape)
            )
        return None

    def _row_sums(self, text: str, out: Any, raw: Any, rows: int, length: int, scale: float) -> None:
        """Write the sum of each row, times a number, to `out`; a thread reads 16 bytes at a time where rows allow it."""
        width = max(1, 16 // raw.dtype.itemsize)
        if length % width or raw.data.ptr % 16:
            width = 1
        kernel = compiled(self._library, with_width(text, width), name_of(raw.dtype))
        kernel((rows,), (_threads(length // width),), (out, raw, length, scale))

    def _total(self, raw: Any, scale: float) -> Any:
        """The sum of all elements, times a number."""
        width = max(1, 16 // raw.dtype.itemsize)
        if raw.size % width or raw.data.ptr % 16:
            width = 1
        count = raw.size // width
        blocks = max(1, min(-(-count // 1024), 528))
        wide = np.float64 if raw.dtype == np.float64 else np.float32
        out, parts = self._cupy.ndarray((), raw.dtype), self._cupy.ndarray((blocks,), wide)
        text = with_width(_TOTAL, width)
        arguments = (out, parts, self._library.counter(1), raw, count, scale)
        compiled(self._library, text, name_of(raw.dtype))((blocks,), (256,), arguments)
        return out

    @serves()
    def sum(self, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """Sum over dimensions."""
        found = self._reduced(input, dim, keepdim, False) if dtype is None or dtype == input.dtype else None
        return NotImplemented if found is None else found

    @serves()
    def sum_all(self, input: Any, *, dtype: Any = None) -> Any:
        """Sum everything."""
        return self.sum(input, dtype=dtype)

    @serves()
    def mean_all(self, input: Any, *, dtype: Any = None) -> Any:
        """The mean of everything."""
        return self.mean(input, dtype=dtype)

    @serves()
    def mean(self, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """The mean over dimensions."""
        found = self._reduced(input, dim, keepdim, True) if dtype is None or dtype == input.dtype else None
        return NotImplemented if found is None else found

    @serves()
    def sum_to(self, grad: Any, shape: Any) -> Any:
        """Undo broadcasting over leading dimensions."""
        if grad.shape == shape or 1 in shape or len(shape) >= grad.ndim or not shape:
            return NotImplemented
        found = self._reduced(grad, tuple(range(grad.ndim - len(shape))), False, False)
        return NotImplemented if found is None else found

    @serves()
    def add_in_place(self, total: Any, value: Any) -> Any:
        """Add into an array; to one that is still to be computed the sum is put instead. See Note [Deferred work]."""
        wrapper = self._library.wrapper
        if type(value) is not wrapper or type(total) is not wrapper:
            return NotImplemented
        if total.kept is None and self._add.call_into(total, (total, value)):
            return total
        if total.dtype != value.dtype or not self._add.add_to(total.raw, value.raw):
            self._cupy.add(total.raw, value.raw, total.raw)
        return total

    @serves()
    def scale_arrays(self, arrays: Any, factor: float) -> bool:
        """Multiply arrays by a number, in place; whether all results are finite, which is asked once."""
        finite = None
        for array in arrays:
            array.raw *= array.raw.dtype.type(factor)
            now = self._cupy.isfinite(array.raw).all()
            finite = now if finite is None else self._cupy.logical_and(finite, now)
        return finite is None or bool(finite)

    @serves()
    def add_rows(self, values: Any, indices: Any, rows: int) -> Any:
        """A table of zeros to whose rows `values` are added, in no fixed order."""
        raw = values.raw
        wide = raw.dtype if raw.dtype.itemsize >= 4 else np.dtype(np.float32)
        if wide.kind == "c":
            return NotImplemented
        table = self._cupy.zeros((rows, raw.shape[1]), wide)
        if raw.size:
            self._cupy.add.at(table, indices.raw, raw.astype(wide, copy=False))
        return self._library.wrapper(table.astype(raw.dtype, copy=False))

    @serves()
    def sgd_step(self, rows: Any, **numbers: Any) -> Any:
        """One launch for all parameters."""
        order = ("lr", "momentum", "dampening", "weight_decay")
        return self._step(_SGD, rows, numbers, order, ("nesterov", "maximize", "is_first"))

    @serves()
    def adam_step(self, rows: Any, **numbers: Any) -> Any:
        """One launch for all parameters."""
        order = ("beta1", "beta2", "eps", "weight_decay", "shrink", "root_correction", "step_size")
        return self._step(_ADAM, rows, numbers, order, ("maximize",))

    def _step(self, text: str, rows: Any, numbers: Any, order: Any, switches: Any) -> Any:
        rows = [[array for array in row if array is not None] for row in rows]
        kept = len(rows[0])
        if any(len(row) != kept for row in rows) or not self._serves(*[array for row in rows for array in row]):
            return NotImplemented
        cupy, dtype = self._cupy, rows[0][0].dtype
        raws = [[array.raw for array in row] for row in rows]
        table, lengths = _pieces(self._library, tuple([row[0].size for row in raws]), self._library.place())
        arrays = cupy.asarray(np.array([[raw.data.ptr for raw in row] for row in raws], np.uint64))
        given = [*[float(numbers[name]) for name in order], *[np.int32(numbers[name]) for name in switches]]
        kernel = compiled(self._library, text.replace("PIECE", str(_PIECE)), name_of(dtype))
        kernel((len(table),), (256,), (arrays, table, lengths, np.int32(kept), *given))
        return None


@lru_cache(maxsize=64)
def _pieces(library: Any, sizes: tuple[int, ...], place: Any) -> tuple[Any, Any]:
    """For each block the parameter and the place where its piece begins, and the sizes, in the memory of the GPU `place`."""
    cupy = library.module
    table = [(row, start) for row, size in enumerate(sizes) for start in range(0, size, _PIECE)]
    return cupy.asarray(np.array(table, np.int64)), cupy.asarray(np.array(sizes, np.int64))


def _pointer(array: Any) -> Any:
    """An array for a launch, or the null pointer."""
    return np.uint64(0) if array is None else array.raw
