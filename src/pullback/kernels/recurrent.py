"""Whole recurrent layers in one direction: one product for all inputs, then one small product per step.

Input is (T, B, I), or (rows, I) with `batch_sizes` for packed sequences: the rows of step t are the first
`batch_sizes[t]` sequences'. A state keeps the row of a sequence that has ended as it is, which makes it the final one.
What the backward pass needs is returned as further results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.unpromised_bits import note_product
from pullback.kernels.accumulation import widened
from pullback.native import by_device, native
from pullback.typing import Array, Shape

BatchSizes = tuple[int, ...] | None


def _steps(input: Array, batch_sizes: BatchSizes, reverse: bool) -> list[tuple[slice, int]]:
    """(rows, sequences) of each step in the order in which they are taken."""
    sizes = (input.shape[1],) * input.shape[0] if batch_sizes is None else batch_sizes
    steps, start = [], 0
    for size in sizes:
        steps.append((slice(start, start + size), size))
        start += size
    return steps[::-1] if reverse else steps


def _projected(input: Array, weight: Array, bias: Array | None) -> Array:
    note_product(weight, input.size)  # at least what a step of the hidden state multiplies
    rows = widened(input).reshape(-1, input.shape[-1]) @ widened(weight).T
    if bias is not None:
        rows += bias
    return rows


def _sigmoid(x: Array) -> None:
    """In place; through tanh, which NumPy vectorizes and which does not overflow."""
    x *= x.dtype.type(0.5)
    np.tanh(x, out=x)
    x += 1
    x *= x.dtype.type(0.5)


@native
def lstm_layer(
    input: Array, h0: Array, c0: Array, weight_ih: Array, weight_hh: Array, bias_ih: Array | None,
    bias_hh: Array | None, batch_sizes: BatchSizes, reverse: bool,
) -> tuple[Array, Array, Array, Array, Array, Array]:  # fmt: skip
    """Outputs, final h and c; the gates (i, f, g, o) and the h and c before each step."""
    gates = _projected(input, weight_ih, bias_ih)
    if bias_hh is not None:
        gates += bias_hh
    size = weight_hh.shape[1]
    # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2: with i, f and o halved beforehand one tanh serves all four gates.
    halves: Array = np.repeat(np.array([0.5, 0.5, 1, 0.5], gates.dtype), size)
    gates *= halves
    hidden, cell, recurrent = widened(h0).copy(), widened(c0).copy(), widened(weight_hh).T * halves
    output = np.empty((len(gates), size), gates.dtype)
    hidden_before, cell_before = np.empty_like(output), np.empty_like(output)
    for rows, count in _steps(input, batch_sizes, reverse):
        gate, state = gates[rows], cell[:count]
        hidden_before[rows], cell_before[rows] = hidden[:count], state
        gate += hidden[:count] @ recurrent
        np.tanh(gate, out=gate)
        gate *= halves
        gate += 1 - halves
        state *= gate[:, size : 2 * size]
        state += gate[:, :size] * gate[:, 2 * size : 3 * size]
        np.multiply(np.tanh(state), gate[:, 3 * size :], out=output[rows])
        hidden[:count] = output[rows]
    return (*_results(input, weight_hh, output, hidden, cell), gates, hidden_before, cell_before)


def _results(input: Array, weight: Array, output: Array, *states: Array) -> tuple[Any, ...]:
    shape = (*input.shape[:-1], output.shape[-1])
    return tuple([a.astype(input.dtype, copy=False) for a in (output.reshape(shape), *states)])


@native
def lstm_layer_back(
    grad_output: Array, grad_hidden: Array, grad_cell: Array, input: Array, h0: Array, c0: Array, weight_ih: Array,
    weight_hh: Array, bias_ih: Array | None, bias_hh: Array | None, batch_sizes: BatchSizes, reverse: bool,
    gates: Array, hidden_before: Array, cell_before: Array,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, h0, c0, the weights and the biases."""
    size = weight_hh.shape[1]
    i, f, g, o = (gates[:, k * size : (k + 1) * size] for k in range(4))
    tanh_cell = np.tanh(f * cell_before + i * g)
    slopes = np.concatenate([g * i * (1 - i), cell_before * f * (1 - f), i * (1 - g * g)], 1)
    slope_o, slope_cell = tanh_cell * o * (1 - o), o * (1 - tanh_cell * tanh_cell)
    dy = widened(grad_output).reshape(-1, size)
    dh, dc = widened(grad_hidden).copy(), widened(grad_cell).copy()
    dgates, recurrent = np.empty_like(gates), widened(weight_hh)
    for rows, count in reversed(_steps(input, batch_sizes, reverse)):
        total = dy[rows] + dh[:count]
        change = dc[:count] + total * slope_cell[rows]
        part = dgates[rows]
        np.multiply(total, slope_o[rows], out=part[:, 3 * size :])
        np.multiply(np.tile(change, 3), slopes[rows], out=part[:, : 3 * size])
        np.multiply(change, f[rows], out=dc[:count])
        np.matmul(part, recurrent, out=dh[:count])
    parts = _weight_grads(dgates, dgates, input, hidden_before, weight_ih, bias_ih, bias_hh)
    return _in_dtype(input, parts[0], dh, dc, *parts[1:])


def _weight_grads(
    to_input_part: Array, to_hidden_part: Array, input: Array, hidden_before: Array, weight_ih: Array,
    bias_ih: Array | None, bias_hh: Array | None,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, both weights and both biases from those of the sums that go into the gates."""
    rows = widened(input).reshape(-1, input.shape[-1])
    note_product(to_input_part, input.size)
    return (
        (to_input_part @ widened(weight_ih)).reshape(input.shape),
        to_input_part.T @ rows,
        to_hidden_part.T @ hidden_before,
        None if bias_ih is None else to_input_part.sum(0),
        None if bias_hh is None else to_hidden_part.sum(0),
    )


def _in_dtype(input: Array, *arrays: Array | None) -> tuple[Array | None, ...]:
    return tuple([None if a is None else a.astype(input.dtype, copy=False) for a in arrays])


@native
def gru_layer(
    input: Array, h0: Array, weight_ih: Array, weight_hh: Array, bias_ih: Array | None, bias_hh: Array | None,
    batch_sizes: BatchSizes, reverse: bool,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Outputs and final h; the gates (r, z, n), the recurrent part of n, and the h before each step."""
    gates = _projected(input, weight_ih, bias_ih)
    size = weight_hh.shape[1]
    hidden, recurrent = widened(h0).copy(), np.ascontiguousarray(widened(weight_hh).T)
    output = np.empty((len(gates), size), gates.dtype)
    hidden_before, recurrent_n = np.empty_like(output), np.empty_like(output)
    for rows, count in _steps(input, batch_sizes, reverse):
        gate, state = gates[rows], hidden[:count]
        hidden_before[rows] = state
        part = state @ recurrent
        if bias_hh is not None:
            part += bias_hh
        recurrent_n[rows] = part[:, 2 * size :]
        r_and_z, n = gate[:, : 2 * size], gate[:, 2 * size :]
        r_and_z += part[:, : 2 * size]
        _sigmoid(r_and_z)
        n += gate[:, :size] * recurrent_n[rows]
        np.tanh(n, out=n)
        np.subtract(state, n, out=output[rows])
        output[rows] *= gate[:, size : 2 * size]
        output[rows] += n
        state[...] = output[rows]
    return (*_results(input, weight_hh, output, hidden), gates, recurrent_n, hidden_before)


@native
def gru_layer_back(
    grad_output: Array, grad_hidden: Array, input: Array, h0: Array, weight_ih: Array, weight_hh: Array,
    bias_ih: Array | None, bias_hh: Array | None, batch_sizes: BatchSizes, reverse: bool, gates: Array,
    recurrent_n: Array, hidden_before: Array,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, h0, the weights and the biases."""
    size = weight_hh.shape[1]
    r, z, n = (gates[:, k * size : (k + 1) * size] for k in range(3))
    slope_n = (1 - z) * (1 - n * n)
    slope_z = (hidden_before - n) * z * (1 - z)
    slope_r = slope_n * recurrent_n * r * (1 - r)
    slopes = np.concatenate([slope_r, slope_z, slope_n * r], 1)
    dy, dh = widened(grad_output).reshape(-1, size), widened(grad_hidden).copy()
    to_hidden_part, total_grad, recurrent = np.empty_like(gates), np.empty_like(n), widened(weight_hh)
    for rows, count in reversed(_steps(input, batch_sizes, reverse)):
        total = dy[rows] + dh[:count]
        total_grad[rows] = total
        np.multiply(np.tile(total, 3), slopes[rows], out=to_hidden_part[rows])
        np.multiply(total, z[rows], out=dh[:count])
        dh[:count] += to_hidden_part[rows] @ recurrent
    to_input_part = to_hidden_part.copy()
    to_input_part[:, 2 * size :] = total_grad * slope_n
    parts = _weight_grads(to_input_part, to_hidden_part, input, hidden_before, weight_ih, bias_ih, bias_hh)
    return _in_dtype(input, parts[0], dh, *parts[1:])


@native
def rnn_layer(
    input: Array, h0: Array, weight_ih: Array, weight_hh: Array, bias_ih: Array | None, bias_hh: Array | None,
    nonlinearity: str, batch_sizes: BatchSizes, reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Outputs and final h; the h before each step."""
    output = _projected(input, weight_ih, bias_ih)
    if bias_hh is not None:
        output += bias_hh
    hidden, recurrent = widened(h0).copy(), np.ascontiguousarray(widened(weight_hh).T)
    hidden_before = np.empty_like(output)
    for rows, count in _steps(input, batch_sizes, reverse):
        hidden_before[rows] = hidden[:count]
        state = output[rows]
        state += hidden[:count] @ recurrent
        if nonlinearity == "tanh":
            np.tanh(state, out=state)
        else:
            np.maximum(state, 0, out=state)
        hidden[:count] = state
    return (*_results(input, weight_hh, output, hidden), hidden_before)


@native
def rnn_layer_back(
    grad_output: Array, grad_hidden: Array, input: Array, h0: Array, weight_ih: Array, weight_hh: Array,
    bias_ih: Array | None, bias_hh: Array | None, nonlinearity: str, batch_sizes: BatchSizes, reverse: bool,
    output: Array, hidden_before: Array,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, h0, the weights and the biases."""
    size = weight_hh.shape[1]
    states = widened(output).reshape(-1, size)
    slope = 1 - states * states if nonlinearity == "tanh" else (states > 0).astype(states.dtype)
    dy, dh = widened(grad_output).reshape(-1, size), widened(grad_hidden).copy()
    sums, recurrent = np.empty_like(states), widened(weight_hh)
    for rows, count in reversed(_steps(input, batch_sizes, reverse)):
        np.multiply(dy[rows] + dh[:count], slope[rows], out=sums[rows])
        np.matmul(sums[rows], recurrent, out=dh[:count])
    parts = _weight_grads(sums, sums, input, hidden_before, weight_ih, bias_ih, bias_hh)
    return _in_dtype(input, parts[0], dh, *parts[1:])


def pack_padded_sequence(input: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    """The rows of each step's sequences, which are sorted by length, one step after the other; their number in each step."""
    steps = input.swapaxes(0, 1) if batch_first else input
    batch_sizes = (lengths > np.arange(int(lengths[0]))[:, None]).sum(1)
    return np.concatenate([step[:size] for step, size in zip(steps, batch_sizes, strict=False)]), batch_sizes


@by_device
def pack_padded_sequence_back(grad: Array, shape: Shape, batch_sizes: Array, batch_first: bool) -> Array:
    """The rows where they came from, zeros elsewhere."""
    padded = np.zeros(shape, grad.dtype)
    steps, start = padded.swapaxes(0, 1) if batch_first else padded, 0
    for step, size in zip(steps, batch_sizes.tolist(), strict=False):
        step[:size] = grad[start : start + size]
        start += size
    return padded
