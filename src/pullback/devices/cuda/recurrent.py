"""Recurrent layers on the GPU, LSTM, GRU and plain ones: all steps in one launch each way.

A block has some hidden units and keeps their part of the recurrent weight; after every step all blocks meet. Products for
all steps together (the input's part, the gradients of weights) are cuBLAS's. The three kinds share the texts: a `Cell` says
what becomes of the sums of a step. Packed sequences, 16-bit floats and layers whose weight does not fit into the GPU's
shared memory are declined.
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
#define C (G * U)
/* `gates` come as the input's part and leave as the gates; `turned` is h, units before samples, of this step and the
   next. `kept` and `cell` are what the kind of layer makes of them. */
extern "C" __global__ void run(REAL *output, REAL *gates, REAL *hidden_before, REAL *kept, REAL *hidden, REAL *cell,
                               REAL *turned, const REAL *weight, const REAL *bias, int *counter, const int steps,
                               const int batch, const int reverse)
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
                    const long long row = t * batch + b;
                    REAL *at = gates + row * G * H + gate * H + unit;
                    GATE
                }
                acts[c * 32 + lane] = x;
            }
            __syncthreads();
            for (int u = warp; u < U; u += WARPS) {
                const int unit = first + u;
                if (b < batch && unit < H) {
                    const long long row = (t * batch + b) * H + unit, state = (long long)b * H + unit;
                    const REAL before = __ldcg(from + (long long)unit * padded + b), *act = acts + u * 32 + lane;
                    hidden_before[row] = before;
                    UNIT
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
extern "C" __global__ void run(REAL *to_gates, REAL *to_sums, REAL *to_hidden, REAL *to_cell, REAL *turned,
                               const REAL *to_output, const REAL *gates, const REAL *kept, const REAL *hidden_before,
                               const REAL *weight, int *counter, const int steps, const int batch, const int reverse)
{
    POOL
    REAL *w = pool, *parts = w + G * H * U;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * U, padded = (batch + 31) / 32 * 32;
    for (int n = threadIdx.x; n < G * H * U; n += blockDim.x) {
        const int k = n / U, unit = first + n % U;
        w[n] = unit < H ? weight[(long long)k * H + unit] : (REAL)0;
    }
    __syncthreads();
    for (int s = 0; s <= steps; s++) {
        const long long t = reverse ? s : steps - 1 - s;
        const REAL *from = turned + (long long)(s & 1) * G * H * padded;
        REAL *to = turned + (long long)(~s & 1) * G * H * padded;
        for (int group = 0; group < padded; group += 32) {
            const int b = group + lane;
            if (s) {
                REAL sum[U];
                #pragma unroll
                for (int u = 0; u < U; u++) sum[u] = 0;
                #pragma unroll 16
                for (int k = warp; k < G * H; k += WARPS) {
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
                REAL dh = CARRIED;
                if (s) for (int p = 0; p < WARPS; p++) dh += parts[(p * U + u) * 32 + lane];
                if (s == steps) { to_hidden[state] = dh; continue; }
                const long long row = t * batch + b, place = row * H + unit;
                const REAL *at = gates + row * G * H + unit;
                dh += to_output[place];
                REAL d[G];
                SLOPES
                for (int gate = 0; gate < G; gate++) {
                    to_gates[row * G * H + gate * H + unit] = d[gate];
                    to[(long long)(gate * H + unit) * padded + b] = d[gate];
                }
            }
            __syncthreads();
        }
        if (s < steps) meet(counter, gridDim.x * (s + 1));
    }
}
"""


class Cell:
    """A kind of recurrent layer: how many gates it has, and CUDA's text of what is its own."""

    def __init__(self, gates: int, gate: str, unit: str, carried: str, slopes: str) -> None:
        self.gates = gates
        self.forward = _FORWARD.replace("GATE", gate).replace("UNIT", unit)
        """`gate` makes of the recurrent sum x and the input's part *at the gate x; `unit` of the gates h."""
        self.backward = _BACKWARD.replace("CARRIED", carried).replace("SLOPES", slopes)
        """`carried` is the gradient of h that does not come through the gates; `slopes` sets those of the gates' sums, d."""


_LAST = "s ? (REAL)0 : to_hidden[state]"
LSTM = Cell(
    4,
    "x += *at; x = gate == 2 ? tanh(x) : 1 / (1 + exp(-x)); *at = x;",
    """const REAL former = cell[state], now = act[32 * U] * former + act[0] * act[64 * U];
                    const REAL h = tanh(now) * act[96 * U];
                    kept[row] = former;
                    cell[state] = now;""",
    _LAST,
    """const REAL i = at[0], f = at[H], g = at[2 * H], o = at[3 * H], before = kept[place];
                const REAL tanh_cell = tanh(f * before + i * g);
                const REAL dc = to_cell[state] + dh * o * (1 - tanh_cell * tanh_cell);
                to_cell[state] = dc * f;
                d[0] = dc * g * i * (1 - i);
                d[1] = dc * before * f * (1 - f);
                d[2] = dc * i * (1 - g * g);
                d[3] = dh * tanh_cell * o * (1 - o);""",
)
"""Gates i, f, g, o; `kept` are the cells before each step."""
GRU = Cell(
    3,
    """if (bias) x += bias[gate * H + unit];
                    if (gate < 2) { x = 1 / (1 + exp(-(x + *at))); *at = x; } else kept[row * H + unit] = x;""",
    """REAL *at = gates + row / H * G * H + 2 * H + unit;
                    const REAL n = tanh(*at + act[0] * act[64 * U]), h = (before - n) * act[32 * U] + n;
                    *at = n;""",
    "to_hidden[state]",
    """const REAL r = at[0], z = at[H], n = at[2 * H], slope = dh * (1 - z) * (1 - n * n);
                to_hidden[state] = dh * z;
                d[0] = slope * kept[place] * r * (1 - r);
                d[1] = dh * (hidden_before[place] - n) * z * (1 - z);
                d[2] = slope * r;
                to_sums[place] = slope;""",
)
"""Gates r, z, n; `kept` are the recurrent parts of n, `to_sums` the gradient of the sum that n is made of."""
RNN = {
    "tanh": Cell(1, "x = tanh(x + *at);", "const REAL h = act[0];", _LAST, "d[0] = dh * (1 - at[0] * at[0]);"),
    "relu": Cell(
        1, "x += *at; x = x < 0 ? (REAL)0 : x;", "const REAL h = act[0];", _LAST, "d[0] = at[0] > 0 ? dh : (REAL)0;"
    ),
}
"""One gate, which is h; in backward `gates` are the outputs."""
_MOST_SHARED = 200 * 1024


@cache
def _plan(gates: int, hidden: int, itemsize: int, processors: int) -> tuple[int, int, int, int] | None:
    """Units and warps of a block, and bytes of memory it shares each way; None if the weight does not fit."""
    units = -(-hidden // processors)
    warps = 8
    forward = (hidden * gates * units + warps * gates * units * 32 + gates * units * 32) * itemsize
    backward = (gates * hidden * units + warps * units * 32) * itemsize
    return (units, warps, forward, backward) if max(forward, backward) <= _MOST_SHARED and units <= 16 else None


class Recurrent(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, products: Any, rows: Any) -> None:
        super().__init__(library)
        self._products = products
        self._rows = rows
        self._kernels: dict[Any, Any] = {}

    def _planned(self, cell: Cell, input: Any, hidden: int, arrays: Any, batch_sizes: Any) -> Any:
        wrapper, dtype = self._library.wrapper, input.dtype
        if batch_sizes is not None or dtype.char not in "fd" or not input.size:
            return None
        if any(type(a) is not wrapper or a.dtype != dtype for a in arrays if a is not None):
            return None
        return _plan(cell.gates, hidden, dtype.itemsize, self._library.processors)

    def _launch(self, text: str, cell: Cell, plan: Any, shared: int, hidden: int, dtype: Any, arguments: Any) -> None:
        key = (text, plan, hidden, dtype.char)
        kernel = self._kernels.get(key)
        if kernel is None:
            real = "double" if dtype.char == "d" else "float"
            numbers = {"REAL": real, "G": cell.gates, "H": hidden, "U": plan[0], "WARPS": plan[1]}
            head = "".join([f"#define {name} {value}\n" for name, value in numbers.items()])
            kernel = self._kernels[key] = self._library.compiled_to_meet(head + _HEAD + text, shared)
        kernel((-(-hidden // plan[0]), 1, 1), (32 * plan[1], 1, 1), arguments)

    def _forward(
        self, cell: Cell, input: Any, states: list[Any], weight_ih: Any, weight_hh: Any, biases: list[Any], inner_bias: Any,
        batch_sizes: Any, reverse: bool,
    ) -> Any:  # fmt: skip
        """Outputs, final states, gates, what the kind keeps, and h before each step; None where it does not fit.

        `biases` are added to the input's part of the gates, `inner_bias` to the recurrent one.
        """
        hidden, cupy, dtype = weight_hh.shape[1], self._cupy, input.dtype
        given = (input, *states, weight_ih, weight_hh, *biases, inner_bias)
        plan = self._planned(cell, input, hidden, given, batch_sizes)
        if plan is None:
            return None
        steps, batch, _ = input.shape
        gates: Any = self._products.linear_product(input, weight_ih)
        for bias in biases:
            if bias is not None:
                gates = self._library.kernels["add"](gates, bias)
        projected = gates.raw.reshape(steps * batch, cell.gates * hidden)
        output, before, kept = (cupy.ndarray((steps * batch, hidden), dtype) for _ in range(3))
        finals = [cupy.array(state.raw, order="C") for state in states]
        turned = cupy.zeros((2, hidden, -(-batch // 32) * 32), dtype)
        inner = np.uint64(0) if inner_bias is None else cupy.ascontiguousarray(inner_bias.raw)
        arguments = (
            output, projected, before, kept, finals[0], finals[-1], turned, cupy.ascontiguousarray(weight_hh.raw), inner,
            cupy.zeros(1, np.int32), np.int32(steps), np.int32(batch), np.int32(reverse),
        )  # fmt: skip
        self._launch(cell.forward, cell, plan, plan[2], hidden, dtype, arguments)
        return self._wrapped(output.reshape(steps, batch, hidden), *finals, projected, kept, before)

    def _backward(
        self, cell: Cell, grads: list[Any], input: Any, weight_ih: Any, weight_hh: Any, gates: Any, kept: Any, before: Any,
        batch_sizes: Any, reverse: bool,
    ) -> Any:  # fmt: skip
        """The gradients of the recurrent sums, of the last sum of the input's part, and of the states before all steps.

        `grads` are those of the outputs and of the final states. None where it does not fit.
        """
        hidden, cupy, dtype = weight_hh.shape[1], self._cupy, input.dtype
        plan = self._planned(
            cell, input, hidden, (input, *grads, weight_ih, weight_hh, gates, kept, before), batch_sizes
        )
        if plan is None:
            return None
        steps, batch, _ = input.shape
        to_gates = cupy.ndarray((steps * batch, cell.gates * hidden), dtype)
        to_sums = cupy.ndarray((steps * batch, hidden), dtype)
        states = [cupy.array(grad.raw, order="C") for grad in grads[1:]]
        turned = cupy.zeros((2, cell.gates * hidden, -(-batch // 32) * 32), dtype)
        dense = [cupy.ascontiguousarray(a.raw) for a in (grads[0], gates, kept, before, weight_hh)]
        arguments = (
            to_gates, to_sums, states[0], states[-1], turned, *dense, cupy.zeros(1, np.int32), np.int32(steps),
            np.int32(batch), np.int32(reverse),
        )  # fmt: skip
        self._launch(cell.backward, cell, plan, plan[3], hidden, dtype, arguments)
        return to_gates, to_sums, states

    def _weight_grads(
        self, to_sums: Any, to_gates: Any, input: Any, before: Any, weight_ih: Any, bias_ih: Any, bias_hh: Any
    ) -> tuple[Any, ...]:
        """The gradients of input, both weights and both biases from those of the sums that go into the gates."""
        wrapper, product = self._library.wrapper, self._products.product
        rows = wrapper(input.raw.reshape(to_sums.shape[0], -1))
        to_input = wrapper(product(wrapper(to_sums), weight_ih).raw.reshape(input.shape))
        biases = [
            None if bias is None else wrapper(self._rows.add_rows_up(sums))
            for bias, sums in ((bias_ih, to_sums), (bias_hh, to_gates))
        ]
        return to_input, product(wrapper(to_sums.T), rows), product(wrapper(to_gates.T), before), *biases

    def _wrapped(self, *raws: Any) -> tuple[Any, ...]:
        return tuple([self._library.wrapper(raw) for raw in raws])

    @serves()
    def lstm_layer(
        self, input: Any, h0: Any, c0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, batch_sizes: Any,
        reverse: bool,
    ) -> Any:  # fmt: skip
        """Outputs, final h and c; the gates and the h and c before each step."""
        biases = [bias_ih, bias_hh]
        found = self._forward(LSTM, input, [h0, c0], weight_ih, weight_hh, biases, None, batch_sizes, reverse)
        if found is None:
            return NotImplemented
        output, h, c, gates, cells, before = found
        return output, h, c, gates, before, cells

    @serves()
    def lstm_layer_back(
        self, grad_output: Any, grad_hidden: Any, grad_cell: Any, input: Any, h0: Any, c0: Any, weight_ih: Any,
        weight_hh: Any, bias_ih: Any, bias_hh: Any, batch_sizes: Any, reverse: bool, gates: Any, hidden_before: Any,
        cell_before: Any,
    ) -> Any:  # fmt: skip
        """The gradients of input, h0, c0, the weights and the biases."""
        grads = [grad_output, grad_hidden, grad_cell]
        found = self._backward(
            LSTM, grads, input, weight_ih, weight_hh, gates, cell_before, hidden_before, batch_sizes, reverse
        )
        if found is None:
            return NotImplemented
        to_gates, _, states = found
        parts = self._weight_grads(to_gates, to_gates, input, hidden_before, weight_ih, bias_ih, bias_hh)
        return parts[0], *self._wrapped(*states), *parts[1:]

    @serves()
    def gru_layer(
        self,
        input: Any,
        h0: Any,
        weight_ih: Any,
        weight_hh: Any,
        bias_ih: Any,
        bias_hh: Any,
        batch_sizes: Any,
        reverse: bool,
    ) -> Any:
        """Outputs and final h; the gates, the recurrent part of n, and the h before each step."""
        found = self._forward(GRU, input, [h0], weight_ih, weight_hh, [bias_ih], bias_hh, batch_sizes, reverse)
        return NotImplemented if found is None else found

    @serves()
    def gru_layer_back(
        self, grad_output: Any, grad_hidden: Any, input: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any,
        bias_hh: Any, batch_sizes: Any, reverse: bool, gates: Any, recurrent_n: Any, hidden_before: Any,
    ) -> Any:  # fmt: skip
        """The gradients of input, h0, the weights and the biases."""
        grads = [grad_output, grad_hidden]
        found = self._backward(
            GRU, grads, input, weight_ih, weight_hh, gates, recurrent_n, hidden_before, batch_sizes, reverse
        )
        if found is None:
            return NotImplemented
        to_gates, to_n, states = found
        to_sums = to_gates.copy()
        to_sums[:, 2 * to_n.shape[1] :] = to_n
        parts = self._weight_grads(to_sums, to_gates, input, hidden_before, weight_ih, bias_ih, bias_hh)
        return parts[0], *self._wrapped(*states), *parts[1:]

    @serves()
    def rnn_layer(
        self, input: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, nonlinearity: str,
        batch_sizes: Any, reverse: bool,
    ) -> Any:  # fmt: skip
        """Outputs and final h; the h before each step."""
        biases = [bias_ih, bias_hh]
        cell = RNN[nonlinearity]
        found = self._forward(cell, input, [h0], weight_ih, weight_hh, biases, None, batch_sizes, reverse)
        return NotImplemented if found is None else (found[0], found[1], found[4])

    @serves()
    def rnn_layer_back(
        self, grad_output: Any, grad_hidden: Any, input: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any,
        bias_hh: Any, nonlinearity: str, batch_sizes: Any, reverse: bool, output: Any, hidden_before: Any,
    ) -> Any:  # fmt: skip
        """The gradients of input, h0, the weights and the biases."""
        grads, cell = [grad_output, grad_hidden], RNN[nonlinearity]
        found = self._backward(
            cell, grads, input, weight_ih, weight_hh, output, hidden_before, hidden_before, batch_sizes, reverse
        )
        if found is None:
            return NotImplemented
        to_gates, _, states = found
        parts = self._weight_grads(to_gates, to_gates, input, hidden_before, weight_ih, bias_ih, bias_hh)
        return parts[0], *self._wrapped(*states), *parts[1:]
