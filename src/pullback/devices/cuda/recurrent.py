"""LSTM layers on the GPU: all steps in one launch each way.

A block has some hidden units and keeps their part of the recurrent weight; after every step all blocks meet. Products for
all steps together (the input's part, the gradients of weights) are cuBLAS's. Packed sequences, 16-bit floats and layers
whose weight does not fit into the GPU's shared memory are declined.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback.devices.cuda.family import Family, serves

_HEAD = r"""
#ifndef POOL
#define POOL extern __shared__ REAL pool[];
#endif
/* Wait until all blocks are here for the time that `target` counts; what they wrote is seen then. */
static __device__ void meet(int *counter, const int target)
{
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) {
        atomicAdd(counter, 1);
        while (*(volatile int *)counter < target);
        __threadfence();
    }
    __syncthreads();
}
"""
_FORWARD = r"""
#define C (4 * U)
/* `gates` come as the input's part and leave as the gates; `turned` is h, units before samples, of this step and the
   next. */
extern "C" __global__ void run(REAL *output, REAL *gates, REAL *hidden_before, REAL *cell_before, REAL *hidden, REAL *cell,
                               REAL *turned, const REAL *weight, int *counter, const int steps, const int batch,
                               const int reverse)
{
    POOL
    REAL *w = pool, *parts = w + H * C, *acts = parts + WARPS * C * 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * U, padded = (batch + 31) / 32 * 32;
    for (int n = threadIdx.x; n < H * C; n += blockDim.x) {
        const int c = n / H, k = n % H, unit = first + c % U;
        w[k * C + c] = unit < H ? weight[(long long)(c / U * H + unit) * H + k] : (REAL)0;
    }
    for (int n = threadIdx.x; n < U * batch; n += blockDim.x) {
        const int unit = first + n % U, b = n / U;
        if (unit < H) turned[(long long)unit * padded + b] = hidden[(long long)b * H + unit];
    }
    meet(counter, gridDim.x);
    for (int s = 0; s < steps; s++) {
        const long long t = reverse ? steps - 1 - s : s;
        const REAL *from = turned + (long long)(s & 1) * H * padded;
        REAL *to = turned + (long long)(~s & 1) * H * padded;
        for (int group = 0; group < padded; group += 32) {
            const int b = group + lane;
            REAL sum[C];
            #pragma unroll
            for (int c = 0; c < C; c++) sum[c] = 0;
            #pragma unroll 8
            for (int k = warp; k < H; k += WARPS) {
                const REAL h = __ldcg(from + (long long)k * padded + b);
                #pragma unroll
                for (int c = 0; c < C; c++) sum[c] += h * w[k * C + c];
            }
            #pragma unroll
            for (int c = 0; c < C; c++) parts[(warp * C + c) * 32 + lane] = sum[c];
            __syncthreads();
            for (int c = warp; c < C; c += WARPS) {
                const int unit = first + c % U, gate = c / U;
                REAL x = 0;
                for (int p = 0; p < WARPS; p++) x += parts[(p * C + c) * 32 + lane];
                if (b < batch && unit < H) {
                    REAL *at = gates + (t * batch + b) * 4 * H + gate * H + unit;
                    x += *at;
                    x = gate == 2 ? tanh(x) : 1 / (1 + exp(-x));
                    *at = x;
                }
                acts[c * 32 + lane] = x;
            }
            __syncthreads();
            for (int u = warp; u < U; u += WARPS) {
                const int unit = first + u;
                if (b < batch && unit < H) {
                    const long long row = (t * batch + b) * H + unit, state = (long long)b * H + unit;
                    const REAL before = cell[state];
                    hidden_before[row] = __ldcg(from + (long long)unit * padded + b);
                    cell_before[row] = before;
                    const REAL now =
                        acts[(U + u) * 32 + lane] * before + acts[u * 32 + lane] * acts[(2 * U + u) * 32 + lane];
                    const REAL h = tanh(now) * acts[(3 * U + u) * 32 + lane];
                    cell[state] = now;
                    output[row] = h;
                    to[(long long)unit * padded + b] = h;
                    if (s + 1 == steps) hidden[state] = h;
                }
            }
            __syncthreads();
        }
        if (s + 1 < steps) meet(counter, gridDim.x * (s + 2));
    }
}
"""
_BACKWARD = r"""
/* `turned` are the gradients of the gates' sums, gates before samples, of the step before and of this one. */
extern "C" __global__ void run(REAL *to_gates, REAL *to_hidden, REAL *to_cell, REAL *turned, const REAL *to_output,
                               const REAL *gates, const REAL *cell_before, const REAL *weight, int *counter,
                               const int steps, const int batch, const int reverse)
{
    POOL
    REAL *w = pool, *parts = w + 4 * H * U;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * U, padded = (batch + 31) / 32 * 32;
    for (int n = threadIdx.x; n < 4 * H * U; n += blockDim.x) {
        const int k = n / U, unit = first + n % U;
        w[n] = unit < H ? weight[(long long)k * H + unit] : (REAL)0;
    }
    __syncthreads();
    for (int s = 0; s <= steps; s++) {
        const long long t = reverse ? s : steps - 1 - s;
        const REAL *from = turned + (long long)(s & 1) * 4 * H * padded;
        REAL *to = turned + (long long)(~s & 1) * 4 * H * padded;
        for (int group = 0; group < padded; group += 32) {
            const int b = group + lane;
            if (s) {
                REAL sum[U];
                #pragma unroll
                for (int u = 0; u < U; u++) sum[u] = 0;
                #pragma unroll 16
                for (int k = warp; k < 4 * H; k += WARPS) {
                    const REAL g = __ldcg(from + (long long)k * padded + b);
                    #pragma unroll
                    for (int u = 0; u < U; u++) sum[u] += g * w[k * U + u];
                }
                #pragma unroll
                for (int u = 0; u < U; u++) parts[(warp * U + u) * 32 + lane] = sum[u];
            }
            __syncthreads();
            for (int u = warp; u < U; u += WARPS) {
                const int unit = first + u;
                if (b >= batch || unit >= H) continue;
                const long long state = (long long)b * H + unit;
                REAL dh = s ? (REAL)0 : to_hidden[state];
                if (s) for (int p = 0; p < WARPS; p++) dh += parts[(p * U + u) * 32 + lane];
                if (s == steps) { to_hidden[state] = dh; continue; }
                const long long row = t * batch + b;
                const REAL *at = gates + row * 4 * H + unit;
                const REAL i = at[0], f = at[H], g = at[2 * H], o = at[3 * H], before = cell_before[row * H + unit];
                const REAL tanh_cell = tanh(f * before + i * g);
                dh += to_output[row * H + unit];
                const REAL dc = to_cell[state] + dh * o * (1 - tanh_cell * tanh_cell);
                to_cell[state] = dc * f;
                const REAL d[4] = {dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g),
                                   dh * tanh_cell * o * (1 - o)};
                for (int gate = 0; gate < 4; gate++) {
                    to_gates[row * 4 * H + gate * H + unit] = d[gate];
                    to[(long long)(gate * H + unit) * padded + b] = d[gate];
                }
            }
            __syncthreads();
        }
        if (s < steps) meet(counter, gridDim.x * (s + 1));
    }
}
"""
_MOST_SHARED = 200 * 1024


@cache
def _plan(hidden: int, itemsize: int, processors: int) -> tuple[int, int, int, int] | None:
    """Units and warps of a block, and bytes of memory it shares each way; None if the weight does not fit."""
    units = -(-hidden // processors)
    warps = 8
    forward = (hidden * 4 * units + warps * 4 * units * 32 + 4 * units * 32) * itemsize
    backward = (4 * hidden * units + warps * units * 32) * itemsize
    return (units, warps, forward, backward) if max(forward, backward) <= _MOST_SHARED and units <= 16 else None


class Recurrent(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, products: Any, rows: Any) -> None:
        super().__init__(library)
        self._products = products
        self._rows = rows
        self._kernels: dict[Any, Any] = {}

    def _planned(self, input: Any, hidden: int, arrays: Any, batch_sizes: Any) -> Any:
        wrapper, dtype = self._library.wrapper, input.dtype
        if batch_sizes is not None or dtype.char not in "fd" or not input.size:
            return None
        if any(type(a) is not wrapper or a.dtype != dtype for a in arrays if a is not None):
            return None
        return _plan(hidden, dtype.itemsize, self._library.processors)

    def _launch(self, text: str, plan: Any, shared: int, hidden: int, dtype: Any, arguments: Any) -> None:
        key = (text, plan, hidden, dtype.char)
        kernel = self._kernels.get(key)
        if kernel is None:
            real = "double" if dtype.char == "d" else "float"
            head = f"#define REAL {real}\n#define H {hidden}\n#define U {plan[0]}\n#define WARPS {plan[1]}\n"
            kernel = self._kernels[key] = self._library.compiled_to_meet(head + _HEAD + text, shared)
        kernel((-(-hidden // plan[0]), 1, 1), (32 * plan[1], 1, 1), arguments)

    @serves()
    def lstm_layer(
        self, input: Any, h0: Any, c0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, batch_sizes: Any,
        reverse: bool,
    ) -> Any:  # fmt: skip
        """Outputs, final h and c; the gates and the h and c before each step."""
        hidden = weight_hh.shape[1]
        plan = self._planned(input, hidden, (input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes)
        if plan is None:
            return NotImplemented
        cupy, wrapper, dtype = self._cupy, self._library.wrapper, input.dtype
        steps, batch, _ = input.shape
        gates: Any = self._products.linear_product(input, weight_ih)
        for bias in (bias_ih, bias_hh):
            if bias is not None:
                gates = self._library.kernels["add"](gates, bias)
        projected = gates.raw.reshape(steps * batch, 4 * hidden)
        output, before, cells = (cupy.ndarray((steps * batch, hidden), dtype) for _ in range(3))
        h, c = (cupy.array(a.raw, order="C") for a in (h0, c0))
        turned = cupy.zeros((2, hidden, -(-batch // 32) * 32), dtype)
        weight = cupy.ascontiguousarray(weight_hh.raw)
        arguments = (output, projected, before, cells, h, c, turned, weight, cupy.zeros(1, np.int32), np.int32(steps),
                     np.int32(batch), np.int32(reverse))  # fmt: skip
        self._launch(_FORWARD, plan, plan[2], hidden, dtype, arguments)
        found = (output.reshape(steps, batch, hidden), h, c, projected, before, cells)
        return tuple([wrapper(a) for a in found])

    @serves()
    def lstm_layer_back(
        self, grad_output: Any, grad_hidden: Any, grad_cell: Any, input: Any, h0: Any, c0: Any, weight_ih: Any,
        weight_hh: Any, bias_ih: Any, bias_hh: Any, batch_sizes: Any, reverse: bool, gates: Any, hidden_before: Any,
        cell_before: Any,
    ) -> Any:  # fmt: skip
        """The gradients of input, h0, c0, the weights and the biases."""
        hidden = weight_hh.shape[1]
        given = (grad_output, grad_hidden, grad_cell, input, weight_ih, weight_hh, gates, hidden_before, cell_before)
        plan = self._planned(input, hidden, given, batch_sizes)
        if plan is None:
            return NotImplemented
        cupy, wrapper, dtype = self._cupy, self._library.wrapper, input.dtype
        steps, batch, _ = input.shape
        to_gates = cupy.ndarray((steps * batch, 4 * hidden), dtype)
        dh, dc = (cupy.array(a.raw, order="C") for a in (grad_hidden, grad_cell))
        turned = cupy.zeros((2, 4 * hidden, -(-batch // 32) * 32), dtype)
        dense = [cupy.ascontiguousarray(a.raw) for a in (grad_output, gates, cell_before, weight_hh)]
        arguments = (to_gates, dh, dc, turned, *dense, cupy.zeros(1, np.int32), np.int32(steps), np.int32(batch),
                     np.int32(reverse))  # fmt: skip
        self._launch(_BACKWARD, plan, plan[3], hidden, dtype, arguments)
        whole = wrapper(to_gates)
        product = self._products.product
        rows = wrapper(input.raw.reshape(steps * batch, -1))
        turned_round = wrapper(to_gates.T)
        bias: Any = None if bias_ih is None and bias_hh is None else self._rows.add_rows_up(to_gates)
        to_input = wrapper(product(whole, weight_ih).raw.reshape(input.shape))
        return (
            to_input, wrapper(dh), wrapper(dc), product(turned_round, rows), product(turned_round, hidden_before),
            None if bias_ih is None else wrapper(bias), None if bias_hh is None else wrapper(bias.copy()),
        )  # fmt: skip
