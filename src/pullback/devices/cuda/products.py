"""Products on the GPU: cuBLAS on 16-bit floats as they are, and attention whose softmax and its gradient are one launch."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from pullback.backend.precision import allows_tf32
from pullback.devices.cuda.family import Family, serves
from pullback.devices.cuda.rows import TYPES, compiled, name_of, with_width

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


_MOVE = r"""
/* Copies of COUNT arrays of four dimensions, the last without gaps; a thread has a pack of V elements. */
struct __align__(sizeof(T) * V) Pack { T at[V]; };
extern "C" __global__ void run(ARGUMENTS, const int second, const int third, const int packs, const int count)
{
    PLACES
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int e = i % packs, rest = i / packs, c = rest % third, b = rest / third % second, a = rest / third / second;
        const Pack pack = *(const Pack *)(from + a * from_a + b * from_b + c * from_c + e * V);
        *(Pack *)(to + a * to_a + b * to_b + c * to_c + e * V) = pack;
    }
}
"""


class Products(Family):
    """The kernels, for one library."""

    @serves("mm", "bmm", "multiply_halves")
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

    def batched(self, a: Any, b: Any, shape: tuple[int, ...], wide: bool, dtype: Any = None, into: Any = None) -> Any:
        """Products of two batches of matrices, one of which may hold a single one for all, as an array of `shape`.

        With a dtype, they are computed and returned in it; `wide`: float32 as TF32. `into` is an array for them, in which
        only the batches may lie apart.
        """
        if dtype is not None and dtype != a.dtype:
            a, b = a.astype(dtype), b.astype(dtype)
        (a, flip_a, step_a), (b, flip_b, step_b) = self._operand(a), self._operand(b)
        rows, inner, columns = a.shape[1], a.shape[2], b.shape[2]
        count, item = max(a.shape[0], b.shape[0]), a.dtype.itemsize
        out = self._cupy.ndarray(shape, a.dtype) if into is None else into
        between = rows * columns if into is None else into.strides[0] // item
        apart = [0 if m.shape[0] == 1 else m.strides[0] // item for m in (b, a)]
        self._library.gemm(
            name_of(a.dtype), (flip_b, flip_a), (columns, rows, inner), b.data.ptr, a.data.ptr, out.data.ptr,
            (step_b, step_a, columns), (count, *apart, between), 0.0, wide,
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

    @serves()
    def add_product_of_halves(self, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
        """beta * input + alpha * (mat1 @ mat2), where that is a plain sum."""
        if beta != 1 or alpha != 1:
            return NotImplemented
        product = self._product(mat1, mat2)
        return NotImplemented if product is None else self._plus(self._library.wrapper(product), input)

    def _plus(self, product: Any, bias: Any) -> Any:
        """A product with a row added, for which it waits. See Note [Deferred work]."""
        return self._library.kernels["add"](product, bias)

    @serves()
    def linear_bias(self, input: Any, weight: Any, bias: Any) -> Any:
        """input @ weight.T + bias."""
        product = self._linear(input, weight)
        if product is None or type(bias) is not self._library.wrapper or bias.dtype != input.dtype:
            return NotImplemented
        if bias.shape != weight.shape[:1]:
            return NotImplemented
        return self._plus(self._library.wrapper(product), bias)

    @serves()
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

    @serves()
    def linear_grad_input(self, grad: Any, weight: Any) -> Any:
        """The gradient of a linear layer with respect to its input."""
        if type(grad) is not self._library.wrapper or grad.ndim < 2 or not grad.size:
            return NotImplemented
        found = self._multiplied(self._rows(grad), weight.raw, grad.shape[:-1])
        return NotImplemented if found is None else self._library.wrapper(found)

    @serves()
    def linear_grad_weight(self, grad: Any, input: Any) -> Any:
        """The gradient of a linear layer with respect to its weight."""
        if type(grad) is not self._library.wrapper or grad.ndim < 2 or not grad.size or not input.size:
            return NotImplemented
        found = self._multiplied(self._rows(grad).T, self._rows(input))
        return NotImplemented if found is None else self._library.wrapper(found)

    def _serves(self, *arrays: Any) -> bool:
        wrapper, dtype = self._library.wrapper, arrays[0].dtype
        for array in arrays:
            if type(array) is not wrapper or array.dtype != dtype or not array.size:
                return False
        return name_of(dtype) in TYPES

    def _flat(self, *arrays: Any) -> list[Any]:
        """Batches and heads as one dimension."""
        raws = [a.raw for a in arrays]
        loose = [n for n, raw in enumerate(raws) if not raw._c_contiguous]
        if len(loose) > 1 and len({raws[n].shape for n in loose}) == 1:
            dense = self._cupy.ndarray((len(loose), *raws[loose[0]].shape), raws[0].dtype)
            if self._moved([raws[n] for n in loose], dense):
                for place, n in enumerate(loose):
                    raws[n] = dense[place]
        return [self._cupy.ascontiguousarray(raw).reshape(-1, *raw.shape[2:]) for raw in raws]

    def _moved(self, sources: list[Any], targets: Any) -> bool:
        """Copy arrays of four dimensions and one shape into others in one launch; False where that does not serve."""
        first = sources[0]
        item, last = first.dtype.itemsize, first.shape[3]
        if first.size >= 2**31 or len(sources) > 6 or any(a.strides[3] != item for a in (*sources, *targets)):
            return False
        width = 16 // item
        while width > 1 and (last % width or not _at_packs((*sources, *targets), width)):
            width //= 2
        steps = [
            s // item for to, source in zip(targets, sources, strict=True) for a in (to, source) for s in a.strides[:3]
        ]
        arrays = [a for pair in zip(targets, sources, strict=True) for a in pair]
        count = first.size // width
        sizes = [np.int32(n) for n in (first.shape[1], first.shape[2], last // width, count)]
        kernel = compiled(self._library, with_width(_move_text(len(sources)), width), name_of(first.dtype))
        kernel((min(-(-count // 256), 4224), len(sources)), (256,), (*arrays, *steps, *sizes))
        return True

    @serves()
    def split_with_sizes_back(self, grads: Any, shape: Any, dtype: Any, split_sizes: Any, dim: int) -> Any:
        """The parts' gradients side by side along the last dimension, in one launch."""
        wrapper = self._library.wrapper
        if dim % len(shape) != len(shape) - 1 or len(shape) > 4 or len(set(split_sizes)) != 1 or not all(shape):
            return NotImplemented
        if (
            len(grads) > 6
            or any(type(g) is not wrapper or g.dtype != dtype for g in grads)
            or name_of(dtype) not in TYPES
        ):
            return NotImplemented
        out = self._cupy.ndarray(shape, dtype)
        lead = (1,) * (4 - len(shape))
        whole, size = out.reshape(*lead, *shape), split_sizes[0]
        targets = [whole[..., n * size : (n + 1) * size] for n in range(len(grads))]
        sources = [g.raw[(None,) * len(lead)] for g in grads]
        return wrapper(out) if self._moved(sources, targets) else NotImplemented

    def _threads(self, length: int) -> int:
        return 32 if length <= 128 else 128 if length <= 1024 else 256

    @serves()
    def attention_fused(self, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
        """softmax(query @ key.T * scale) @ value, and the logarithms of the rows' sums."""
        if attn_mask is not None or not self._serves(query, key, value):
            return NotImplemented
        q, k, v = self._flat(query, key, value)
        scores = self.matmul(q, k.transpose(0, 2, 1))
        rows, length = math.prod(scores.shape[:2]), scores.shape[2]
        sums = self._cupy.ndarray(query.shape[:3], np.float64 if q.dtype == np.float64 else np.float32)
        arguments = (scores, sums, scores, length, scores.shape[1], float(scale), np.int32(is_causal))
        compiled(self._library, _WEIGHTS, name_of(q.dtype))((rows,), (self._threads(length),), arguments)
        shape = (*query.shape[:3], value.shape[-1])
        result = self.matmul(scores, v).reshape(shape)
        if query.strides[1] < query.strides[2]:  # (N, L, H, E) seen as (N, H, L, E): so is the output
            (result,) = self._laid_as_rows([result])
        return self._library.wrapper(result), self._library.wrapper(sums)

    @serves()
    def attention_back(
        self, grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float, result: Any,
        logsumexp: Any,
    ) -> Any:  # fmt: skip
        """The gradients with respect to query, key and value; the weights are computed anew."""
        if attn_mask is not None or not self._serves(query, key, value, grad, result):
            return NotImplemented
        matmul = self.matmul
        q, k, v, g, out = self._flat(query, key, value, grad, result)
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
        parts = [part.reshape(a.shape) for part, a in zip(made, (query, key, value), strict=True)]
        if query.shape == key.shape == value.shape and query.strides[1] < query.strides[2]:
            parts = self._laid_as_rows(parts)
        return tuple([self._library.wrapper(part) for part in parts])

    def _laid_as_rows(self, arrays: list[Any]) -> list[Any]:
        """Arrays (N, H, L, E) with the memory of (N, L, H, E), in one launch."""
        batch, heads, length, width = arrays[0].shape
        room = self._cupy.ndarray((len(arrays), batch, length, heads, width), arrays[0].dtype).transpose(0, 1, 3, 2, 4)
        targets = [room[k] for k in range(len(arrays))]
        if not self._moved(arrays, targets):
            for source, target in zip(arrays, targets, strict=True):
                target[...] = source
        return targets


@cache
def _move_text(count: int) -> str:
    """CUDA's text for copies of so many arrays."""
    parts = ("to_a", "to_b", "to_c", "from_a", "from_b", "from_c")
    given = [f"T *to_{n}, const T *from_{n}" for n in range(count)]
    given += [f"const long long s{n}_{part}" for n in range(count) for part in parts]
    places = ["T *to = to_0; const T *from = from_0; long long to_a = s0_to_a, to_b = s0_to_b, to_c = s0_to_c;"]
    places.append("long long from_a = s0_from_a, from_b = s0_from_b, from_c = s0_from_c;")
    for n in range(1, count):
        moves = " ".join(f"{part} = s{n}_{part};" for part in parts)
        places.append(f"if (blockIdx.y == {n}) {{ to = to_{n}; from = from_{n}; {moves} }}")
    return _MOVE.replace("ARGUMENTS", ", ".join(given)).replace("PLACES", "\n    ".join(places))


def _at_packs(arrays: Any, width: int) -> bool:
    """Whether all rows of arrays begin at multiples of so many elements."""
    step = width * arrays[0].dtype.itemsize
    for array in arrays:
        a, b, c, *_ = array.strides
        if array.data.ptr % step or a % step or b % step or c % step:
            return False
    return True
