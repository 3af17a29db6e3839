"""Products on the GPU: cuBLAS on 16-bit floats as they are, and attention whose softmax and its gradient are one launch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.devices.cuda.rows import TYPES, compiled, name_of

_WEIGHTS = r"""
/* A row of scores to weights, and the logarithm of its sum; with `causal` a query sees the keys up to its own place. */
extern "C" __global__ void run(T *out, REAL *sums, const T *scores, const long long length, const long long queries,
                               const double scale, const int causal)
{
    const T *x = scores + blockIdx.x * length;
    T *y = out + blockIdx.x * length;
    const long long seen = causal ? (blockIdx.x % queries + 1 < length ? blockIdx.x % queries + 1 : length) : length;
    REAL most = -INFINITE;
    for (long long i = threadIdx.x; i < seen; i += blockDim.x) most = larger(most, (REAL)x[i] * (REAL)scale);
    most = reduce<larger>(most, -INFINITE);
    REAL total = 0;
    for (long long i = threadIdx.x; i < seen; i += blockDim.x) total += exp((REAL)x[i] * (REAL)scale - most);
    total = reduce<plus>(total, 0);
    ALONG(i) y[i] = i < seen ? (T)(exp((REAL)x[i] * (REAL)scale - most) / total) : (T)(REAL)0;
    if (!threadIdx.x) sums[blockIdx.x] = most + log(total);
}
"""
_WEIGHTS_BACK = r"""
/* Scores to weights again, and the gradient of the weights to that of the scores, which is written over it. */
extern "C" __global__ void run(T *scores, T *grads, const REAL *sums, const REAL *inner, const long long length,
                               const long long queries, const double scale, const int causal)
{
    T *x = scores + blockIdx.x * length, *g = grads + blockIdx.x * length;
    const long long seen = causal ? (blockIdx.x % queries + 1 < length ? blockIdx.x % queries + 1 : length) : length;
    const REAL sum = sums[blockIdx.x], mean = inner[blockIdx.x];
    ALONG(i) {
        const REAL weight = i < seen ? exp((REAL)x[i] * (REAL)scale - sum) : (REAL)0;
        x[i] = (T)weight;
        g[i] = (T)(weight * ((REAL)g[i] - mean) * (REAL)scale);
    }
}
"""
_INNER = r"""
extern "C" __global__ void run(REAL *out, const T *first, const T *second, const long long length)
{
    const T *x = first + blockIdx.x * length, *y = second + blockIdx.x * length;
    REAL total = 0;
    ALONG(i) total += (REAL)x[i] * (REAL)y[i];
    total = reduce<plus>(total, 0);
    if (!threadIdx.x) out[blockIdx.x] = total;
}
"""


class Products:
    """The kernels, for one library."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy = library.module

    def kernels(self) -> dict[str, Any]:
        """By the names of the operations."""
        return {
            "multiply_halves": self.multiply_halves,
            "add_product_of_halves": self.add_product_of_halves,
            "attention_fused": self.attention_fused,
            "attention_back": self.attention_back,
        }

    def matmul(self, a: Any, b: Any) -> Any:
        """CuPy's product; batches of 16-bit matrices go to cuBLAS directly, since CuPy has no bfloat16 there."""
        if a.ndim != 3 or b.ndim != 3 or a.dtype.itemsize != 2 or a.shape[0] != b.shape[0] or not a.size or not b.size:
            if a.ndim > 2 and a.dtype.itemsize == 2:  # other batches, in float32
                return self._cupy.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
            return self._cupy.matmul(a, b)
        cupy = self._cupy
        cublas = cupy.cuda.cublas
        (a, flip_a, step_a), (b, flip_b, step_b) = self._operand(a), self._operand(b)
        batch, rows, inner = a.shape
        columns = b.shape[2]
        out = cupy.ndarray((batch, rows, columns), a.dtype)
        kind = 2 if name_of(a.dtype) == "float16" else 14
        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        # cuBLAS counts along columns: it is asked for the transposed product.
        cublas.gemmStridedBatchedEx(
            cupy.cuda.device.get_cublas_handle(), flip_b, flip_a, columns, rows, inner, one.ctypes.data,
            b.data.ptr, kind, step_b, inner * columns, a.data.ptr, kind, step_a, rows * inner, zero.ctypes.data,
            out.data.ptr, kind, columns, rows * columns, batch, 68, -1,
        )  # fmt: skip
        return out

    def _operand(self, a: Any) -> tuple[Any, int, int]:
        """A batch of matrices without gaps, whether each lies transposed, and the step between its rows."""
        if a._c_contiguous:
            return a, 0, a.shape[2]
        if a.transpose(0, 2, 1)._c_contiguous:
            return a, 1, a.shape[1]
        return self._cupy.ascontiguousarray(a), 0, a.shape[2]

    def multiply_halves(self, a: Any, b: Any) -> Any:
        """A product of 16-bit floats, which cuBLAS adds up in float32."""
        return self._library.wrapper(self.matmul(a.raw, b.raw))

    def add_product_of_halves(self, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
        """beta * input + alpha * (mat1 @ mat2), where that is a plain sum."""
        if beta != 1 or alpha != 1:
            return NotImplemented
        product = self._cupy.matmul(mat1.raw, mat2.raw)
        self._cupy.add(product, input.raw, product)
        return self._library.wrapper(product)

    def _serves(self, *arrays: Any) -> bool:
        wrapper, dtype = self._library.wrapper, arrays[0].dtype
        return name_of(dtype) in TYPES and all(
            type(a) is wrapper and a.raw.dtype == dtype and a.raw.size for a in arrays
        )

    def _flat(self, array: Any) -> Any:
        """Batches and heads as one dimension."""
        raw = array.raw
        return self._cupy.ascontiguousarray(raw).reshape(-1, *raw.shape[2:])

    def _threads(self, length: int) -> int:
        return 32 if length <= 128 else 128 if length <= 1024 else 256

    def attention_fused(self, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
        """softmax(query @ key.T * scale) @ value, and the logarithms of the rows' sums."""
        if attn_mask is not None or not self._serves(query, key, value):
            return NotImplemented
        q, k, v = self._flat(query), self._flat(key), self._flat(value)
        scores = self.matmul(q, k.transpose(0, 2, 1))
        rows, length = math.prod(scores.shape[:2]), scores.shape[2]
        sums = self._cupy.ndarray(query.shape[:3], np.float64 if q.dtype == np.float64 else np.float32)
        arguments = (scores, sums, scores, length, scores.shape[1], float(scale), np.int32(is_causal))
        compiled(_WEIGHTS, name_of(q.dtype))((rows,), (self._threads(length),), arguments)
        shape = (*query.shape[:3], value.shape[-1])
        result = self.matmul(scores, v).reshape(shape)
        if query.strides[1] < query.strides[2]:  # (N, L, H, E) seen as (N, H, L, E): so is the output
            result = self._cupy.ascontiguousarray(result.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        return self._library.wrapper(result), self._library.wrapper(sums)

    def attention_back(
        self, grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float, result: Any,
        logsumexp: Any,
    ) -> Any:  # fmt: skip
        """The gradients with respect to query, key and value; the weights are computed anew."""
        if attn_mask is not None or not self._serves(query, key, value, grad, result):
            return NotImplemented
        matmul = self.matmul
        q, k, v, g, out = (self._flat(a) for a in (query, key, value, grad, result))
        name = name_of(q.dtype)
        sums = logsumexp.raw.reshape(-1)
        rows, width = math.prod(g.shape[:2]), g.shape[2]
        inner = self._cupy.ndarray((rows,), sums.dtype)
        compiled(_INNER, name)((rows,), (32,), (inner, g, out, width))
        scores, grads = matmul(q, k.transpose(0, 2, 1)), matmul(g, v.transpose(0, 2, 1))
        length = scores.shape[2]
        arguments = (scores, grads, sums, inner, length, scores.shape[1], float(scale), np.int32(is_causal))
        compiled(_WEIGHTS_BACK, name)((rows,), (self._threads(length),), arguments)
        made = (matmul(grads, k), matmul(grads.transpose(0, 2, 1), q), matmul(scores.transpose(0, 2, 1), g))
        parts = zip(made, (query, key, value), strict=True)
        return tuple([self._library.wrapper(part.reshape(array.shape)) for part, array in parts])
