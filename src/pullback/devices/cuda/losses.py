"""The negative log likelihood and embeddings on the GPU, without waiting for it.

Targets and indices are looked at by the kernels. One that is not a class, or not a row, is told to the host through memory
that both see, and raised when the host next reads a value (`Complaints`). The gradient of a loss, which has one element to
a row, is made only for who asks for the array: `log_softmax_backward_data` takes the elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.unpromised_bits import ARRIVAL, note_unpromised
from pullback.devices.cuda.family import Family, serves
from pullback.devices.cuda.rows import TYPES, compiled, name_of, with_width
from pullback.modes.determinism import are_deterministic_algorithms_enabled

_LOSS = r"""
/* One block. Without reduction the losses are written, else their sum (or mean). */
extern "C" __global__ void run(T *out, const T *input, const long long *target, const T *weight, const long long count,
                               const long long classes, const long long ignored, const int reduction, long long *wrong)
{
    REAL total = 0, weights = 0;
    for (long long n = threadIdx.x; n < count; n += blockDim.x) {
        const long long t = target[n];
        REAL loss = 0;
        if (t != ignored) {
            if (t < 0 || t >= classes) { wrong[0] = 1; wrong[1] = t; wrong[2] = classes; continue; }
            const REAL w = weight ? (REAL)weight[t] : (REAL)1;
            loss = -(REAL)input[n * classes + t] * w;
            weights += w;
        }
        if (!reduction) out[n] = (T)loss;
        total += loss;
    }
    if (!reduction) return;
    total = reduce<plus>(total, 0);
    weights = reduce<plus>(weights, 0);
    if (!threadIdx.x) *out = (T)(reduction == 1 ? total / weights : total);
}
"""
_LOSS_GRAD = r"""
/* One block: what each row's target gets. */
extern "C" __global__ void run(T *out, const T *grad, const long long *target, const T *weight, const long long count,
                               const long long classes, const long long ignored, const int reduction, long long *wrong)
{
    REAL weights = 0;
    for (long long n = threadIdx.x; n < count; n += blockDim.x) {
        const long long t = target[n];
        if (t == ignored) continue;
        if (t < 0 || t >= classes) { wrong[0] = 1; wrong[1] = t; wrong[2] = classes; continue; }
        weights += weight ? (REAL)weight[t] : (REAL)1;
    }
    weights = reduction == 1 ? reduce<plus>(weights, 0) : (REAL)1;
    for (long long n = threadIdx.x; n < count; n += blockDim.x) {
        const long long t = target[n];
        const REAL w = t == ignored || t < 0 || t >= classes ? (REAL)0 : weight ? (REAL)weight[t] : (REAL)1;
        out[n] = (T)(w == 0 ? (REAL)0 : -(REAL)grad[reduction ? 0 : n] * w / weights);
    }
}
"""
_SPREAD = r"""
extern "C" __global__ void run(T *out, const T *values, const long long *target, const long long count,
                               const long long classes)
{
    for (long long n = blockIdx.x * (long long)blockDim.x + threadIdx.x; n < count; n += (long long)gridDim.x * blockDim.x)
        if (target[n] >= 0 && target[n] < classes) out[n * classes + target[n]] = values[n];
}
"""
_LOG_SOFTMAX_GRAD = r"""
/* The gradient of a log softmax whose result has a gradient of one element to a row. */
struct __align__(sizeof(T) * V) Pack { T at[V]; };
extern "C" __global__ void run(T *out, const T *values, const long long *target, const T *result, const long long length)
{
    const Pack *y = (const Pack *)(result + blockIdx.x * length);
    Pack *to = (Pack *)(out + blockIdx.x * length);
    const REAL value = (REAL)values[blockIdx.x];
    const long long place = target[blockIdx.x];
    for (long long i = threadIdx.x; i < length / V; i += blockDim.x) {
        Pack p = y[i];
        #pragma unroll
        for (int k = 0; k < V; k++) p.at[k] = (T)((i * V + k == place ? value : (REAL)0) - exp((REAL)p.at[k]) * value);
        to[i] = p;
    }
}
"""


_TAKE_ROWS = r"""
extern "C" __global__ void run(T *out, const T *table, const long long *indices, const long long rows,
                               const long long width, const long long count, long long *wrong)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const long long row = indices[i / width];
        const bool is_row = row >= 0 && row < rows;
        if (!is_row) { wrong[0] = 2; wrong[1] = row; wrong[2] = rows; }
        out[i] = is_row ? table[row * width + i % width] : (T)(REAL)0;
    }
}
"""
_ADD_ROWS = r"""
extern "C" __global__ void run(REAL *table, const T *values, const long long *indices, const long long rows,
                               const long long width, const long long count, const long long left_out)
{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        const long long row = indices[i / width];
        if (row >= 0 && row < rows && row != left_out) atomicAdd(table + row * width + i % width, (REAL)values[i]);
    }
}
"""


class OneToRow:
    """A matrix with at most one element that is not zero in every row, to be made when somebody asks for it."""

    def __init__(self, kernels: Losses, values: Any, target: Any, shape: tuple[int, int]) -> None:
        self._kernels = kernels
        self.values = values
        self.target = target
        self._shape = shape

    def make(self) -> Any:
        """The library's array."""
        return self._kernels.spread(self.values, self.target, self._shape)


class Losses(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, rows: Any) -> None:
        super().__init__(library)
        self._general_log_softmax_grad = rows.kernels()["log_softmax_backward_data"]

    def _served(self, dtype: Any, shape: Any, target: Any, weight: Any) -> bool:
        wrapper = self._library.wrapper
        if name_of(dtype) not in TYPES or len(shape) != 2 or type(target) is not wrapper or target.shape != shape[:1]:
            return False
        if target.dtype != np.int64 or not target.size or not shape[1] or not target.raw._c_contiguous:
            return False
        return weight is None or (type(weight) is wrapper and weight.dtype == dtype and weight.raw._c_contiguous)

    @serves()
    def nll_loss(
        self, input: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
    ) -> Any:
        """Minus the input at the targets."""
        if type(input) is not self._library.wrapper or not self._served(input.dtype, input.shape, target, weight):
            return NotImplemented
        raw = input.raw
        if not raw._c_contiguous:
            return NotImplemented
        out = self._cupy.ndarray(target.shape if reduction == 0 else (), raw.dtype)
        self._launch(_LOSS, out, raw, target, weight, raw.shape, ignore_index, reduction)
        return self._library.wrapper(out)

    def _launch(
        self, text: str, out: Any, raw: Any, target: Any, weight: Any, shape: Any, ignored: int, kind: int
    ) -> None:
        pointer = np.uint64(0) if weight is None else weight.raw
        arguments = (out, raw, target.raw, pointer, *shape, ignored, np.int32(kind), self._library.complaints.address)
        compiled(self._library, text, name_of(out.dtype))((1,), (1024,), arguments)

    @serves()
    def nll_loss_grad(self, input: Any, target: Any, weight: Any, shape: Any, reduction: int, ignore_index: int) -> Any:
        """The gradient, one element to a row."""
        if type(input) is not self._library.wrapper or not self._served(input.dtype, shape, target, weight):
            return NotImplemented
        raw = self._cupy.ascontiguousarray(input.raw)
        values = self._cupy.ndarray(target.shape, raw.dtype)
        self._launch(_LOSS_GRAD, values, raw, target, weight, shape, ignore_index, reduction)
        return self._library.pending.later(OneToRow(self, values, target.raw, tuple(shape)), tuple(shape), raw.dtype)

    @serves()
    def embedding(
        self, weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
    ) -> Any:
        """The rows of a table."""
        if not self._is_table(weight, indices) or not weight.raw._c_contiguous:
            return NotImplemented
        table, places = weight.raw, self._cupy.ascontiguousarray(indices.raw)
        out = self._cupy.ndarray((*indices.raw.shape, table.shape[1]), table.dtype)
        arguments = (out, table, places, *table.shape, out.size, self._library.complaints.address)
        kernel = compiled(self._library, _TAKE_ROWS, name_of(table.dtype))
        kernel((min(-(-out.size // 256), 8448),), (256,), arguments)
        return self._library.wrapper(out)

    def _is_table(self, weight: Any, indices: Any) -> bool:
        wrapper = self._library.wrapper
        return (
            type(weight) is wrapper and type(indices) is wrapper and weight.ndim >= 2 and bool(weight.size)
            and name_of(weight.dtype) in TYPES and indices.dtype == np.int64 and bool(indices.size)
        )  # fmt: skip

    @serves()
    def embedding_back(self, input: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
        """Gradients added to the rows of a table, in no fixed order."""
        if scale_grad_by_freq or not self._is_table(input, indices) or are_deterministic_algorithms_enabled():
            return NotImplemented
        note_unpromised(ARRIVAL, "sums at positions on a GPU")
        values, places = self._cupy.ascontiguousarray(input.raw), self._cupy.ascontiguousarray(indices.raw)
        width = values.shape[-1]
        wide = values.dtype if values.dtype.itemsize > 2 else np.dtype(np.float32)
        table = self._cupy.zeros((rows, width), wide)
        left_out = padding_idx if padding_idx >= 0 else -1
        kernel = compiled(self._library, _ADD_ROWS, name_of(values.dtype))
        arguments = (table, values, places, rows, width, values.size, left_out)
        kernel((min(-(-values.size // 256), 8448),), (256,), arguments)
        made = self._library.wrapper(table)
        if wide == values.dtype:
            return made
        cast = self._library.kernels["cast_half"](made, values.dtype)
        return self._library.wrapper(table.astype(values.dtype)) if cast is NotImplemented else cast

    def spread(self, values: Any, target: Any, shape: tuple[int, int]) -> Any:
        """The matrix of a OneToRow."""
        out = self._cupy.zeros(shape, values.dtype)
        blocks = min(-(-values.size // 256), 8448)
        compiled(self._library, _SPREAD, name_of(values.dtype))((blocks,), (256,), (out, values, target, *shape))
        return out

    @serves()
    def log_softmax_backward_data(self, grad: Any, result: Any, dim: int) -> Any:
        """The gradient of a log softmax along the last dimension."""
        recipe = self._library.pending.recipe_of(grad)
        if type(recipe) is not OneToRow or dim != 1 or result.dtype != grad.dtype or result.shape != grad.shape:
            return self._general_log_softmax_grad(grad, result, dim)
        raw = result.raw
        if not raw._c_contiguous:
            return self._general_log_softmax_grad(grad, result, dim)
        out = self._cupy.ndarray(raw.shape, raw.dtype)
        rows, length = raw.shape
        width = 16 // raw.dtype.itemsize
        while length % width or raw.data.ptr % 16:
            width //= 2
            if width == 1:
                break
        threads = 32 if length <= 128 else 128 if length <= 2048 else 512
        text = with_width(_LOG_SOFTMAX_GRAD, width)
        arguments = (out, recipe.values, recipe.target, raw, length)
        compiled(self._library, text, name_of(raw.dtype))((rows,), (threads,), arguments)
        return self._library.wrapper(out)
