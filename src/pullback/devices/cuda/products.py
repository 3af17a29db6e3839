"""Products on the GPU: cuBLAS on 16-bit floats as they are, and attention whose softmax and its gradient are one launch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backend.precision import allows_tf32
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
            "mm": self.product,
            "bmm": self.product,
            "multiply_halves": self.product,
            "add_product_of_halves": self.add_product_of_halves,
            "linear_bias": self.linear_bias,
            "linear_product": self.linear_product,
            "linear_grad_input": self.linear_grad_input,
            "linear_grad_weight": self.linear_grad_weight,
            "attention_fused": self.attention_fused,
            "attention_back": self.attention_back,
        }

    def product(self, a: Any, b: Any) -> Any:
        """The product of two matrices, or of two batches of them; 16-bit floats are added up in float32."""
        found = self._product(a, b)
        return NotImplemented if found is None else self._library.wrapper(found)

    def _product(self, a: Any, b: Any, lead: tuple[int, ...] | None = None) -> Any:
        """The library's array of a product; None where it is not cuBLAS's. `lead` are its dimensions but the last."""
        wrapper = self._library.wrapper
        if type(a) is not wrapper or type(b) is not wrapper:
            return None
        return self._multiplied(a.raw, b.raw, lead)

    def _multiplied(self, a: Any, b: Any, lead: tuple[int, ...] | None = None) -> Any:
        if a.dtype != b.dtype or a.ndim != b.ndim or name_of(a.dtype) not in TYPES or not a.size or not b.size:
            return None
        if a.ndim == 3:
            if a.shape[0] != b.shape[0]:
                return None
        elif a.ndim != 2:
            return None
        rows, inner = a.shape[-2:]
        columns = b.shape[-1]
        if b.shape[-2] != inner:
            return None
        (a, flip_a, step_a), (b, flip_b, step_b) = self._operand(a), self._operand(b)
        out = self._cupy.ndarray((*(a.shape[:-1] if lead is None else lead), columns), a.dtype)
        item = a.dtype.itemsize
        batch = (1, 0, 0, 0)
        if a.ndim == 3:
            batch = (a.shape[0], b.strides[0] // item, a.strides[0] // item, rows * columns)
        # cuBLAS counts along columns: it is asked for the transposed product.
        self._library.gemm(
            name_of(a.dtype), (flip_b, flip_a), (columns, rows, inner), b.data.ptr, a.data.ptr, out.data.ptr,
            (step_b, step_a, columns), batch, 0.0, allows_tf32(False),
        )  # fmt: skip
        return out

    def batched(self, a: Any, b: Any, shape: tuple[int, ...], wide: bool, dtype: Any = None) -> Any:
        """Products of two batches of matrices, one of which may hold a single one for all, as an array of `shape`.

        With a dtype, they are computed and returned in it; `wide`: float32 as TF32.
        """
        if dtype is not None and dtype != a.dtype:
            a, b = a.astype(dtype), b.astype(dtype)
        (a, flip_a, step_a), (b, flip_b, step_b) = self._operand(a), self._operand(b)
        rows, inner, columns = a.shape[1], a.shape[2], b.shape[2]
        count, item = max(a.shape[0], b.shape[0]), a.dtype.itemsize
        out = self._cupy.ndarray(shape, a.dtype)
        apart = [0 if m.shape[0] == 1 else m.strides[0] // item for m in (b, a)]
        self._library.gemm(
            name_of(a.dtype), (flip_b, flip_a), (columns, rows, inner), b.data.ptr, a.data.ptr, out.data.ptr,
            (step_b, step_a, columns), (count, *apart, rows * columns), 0.0, wide,
        )  # fmt: skip
        return out

    def _operand(self, a: Any) -> tuple[Any, int, int]:
        """Matrices whose rows or columns have no gaps, whether they lie transposed, and the step between lines."""
        item = a.dtype.itemsize
        rows, columns = a.shape[-2:]
        down, along = a.strides[-2] // item, a.strides[-1] // item
        if (along == 1 or columns == 1) and (down >= columns or rows == 1):
            return a, 0, columns if rows == 1 else down
        if (down == 1 or rows == 1) and (along >= rows or columns == 1):
            return a, 1, rows if columns == 1 else along
        return self._cupy.ascontiguousarray(a), 0, columns

    def matmul(self, a: Any, b: Any, out: Any = None) -> Any:
        """np.matmul on the library's arrays."""
        found = None if out is not None else self._multiplied(a, b)
        if found is not None:
            return found
        if a.ndim > 2 and a.dtype.itemsize == 2 and a.dtype.kind in "fV":  # other batches, in float32
            return self._cupy.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
        return self._cupy.matmul(a, b) if out is None else self._cupy.matmul(a, b, out=out)

    def add_product_of_halves(self, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
        """beta * input + alpha * (mat1 @ mat2), where that is a plain sum."""
        if beta != 1 or alpha != 1:
            return NotImplemented
        product = self._product(mat1, mat2)
        return NotImplemented if product is None else self._plus(self._library.wrapper(product), input)

    def _plus(self, product: Any, bias: Any) -> Any:
        """A product with a row added, for which it waits. See Note [Deferred work]."""
        return self._library.kernels["add"](product, bias)

    def linear_bias(self, input: Any, weight: Any, bias: Any) -> Any:
        """input @ weight.T + bias."""
        product = self._linear(input, weight)
        if product is None or type(bias) is not self._library.wrapper or bias.dtype != input.dtype:
            return NotImplemented
        if bias.shape != weight.shape[:1]:
            return NotImplemented
        return self._plus(self._library.wrapper(product), bias)

    def linear_product(self, input: Any, weight: Any) -> Any:
        """input @ weight.T."""
        product = self._linear(input, weight)
        return NotImplemented if product is None else self._library.wrapper(product)

    def _linear(self, input: Any, weight: Any) -> Any:
        wrapper = self._library.wrapper
        if type(input) is not wrapper or type(weight) is not wrapper or weight.ndim != 2 or input.ndim < 2:
            return None
        return self._multiplied(self._rows(input), weight.raw.T, input.shape[:-1])

    def _rows(self, array: Any) -> Any:
        """All dimensions but the last as one."""
        raw = array.raw
        return raw if raw.ndim == 2 else raw.reshape(raw.size // max(raw.shape[-1], 1), raw.shape[-1])

    def linear_grad_input(self, grad: Any, weight: Any) -> Any:
        """The gradient of a linear layer with respect to its input."""
        if type(grad) is not self._library.wrapper or grad.ndim < 2 or not grad.size:
            return NotImplemented
        found = self._multiplied(self._rows(grad), weight.raw, grad.shape[:-1])
        return NotImplemented if found is None else self._library.wrapper(found)

    def linear_grad_weight(self, grad: Any, input: Any) -> Any:
        """The gradient of a linear layer with respect to its weight."""
        if type(grad) is not self._library.wrapper or grad.ndim < 2 or not grad.size or not input.size:
            return NotImplemented
        found = self._multiplied(self._rows(grad).T, self._rows(input))
        return NotImplemented if found is None else self._library.wrapper(found)

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
        compiled(self._library, _WEIGHTS, name_of(q.dtype))((rows,), (self._threads(length),), arguments)
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
        compiled(self._library, _INNER, name)((rows,), (32,), (inner, g, out, width))
        scores, grads = matmul(q, k.transpose(0, 2, 1)), matmul(g, v.transpose(0, 2, 1))
        length = scores.shape[2]
        arguments = (scores, grads, sums, inner, length, scores.shape[1], float(scale), np.int32(is_causal))
        compiled(self._library, _WEIGHTS_BACK, name)((rows,), (self._threads(length),), arguments)
        made = (matmul(grads, k), matmul(grads.transpose(0, 2, 1), q), matmul(scores.transpose(0, 2, 1), g))
        parts = zip(made, (query, key, value), strict=True)
        return tuple([self._library.wrapper(part.reshape(array.shape)) for part, array in parts])
