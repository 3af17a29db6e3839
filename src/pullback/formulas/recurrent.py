"""Recurrent layers step by step, and their gradients as those of the steps, for differentiating again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.tensor.tensor import Tensor


@declare(fresh=True)
def lstm_layer_back(
    grad_output: Any, grad_hidden: Any, grad_cell: Any, input: Any, h0: Any, c0: Any, weight_ih: Any, weight_hh: Any,
    bias_ih: Any, bias_hh: Any, batch_sizes: Any, reverse: bool, gates: Any, hidden_before: Any, cell_before: Any,
) -> Any:  # fmt: skip
    """The gradients of input, h0, c0, the weights and the biases."""

    def layer(x: Any, h: Any, c: Any, *weights: Any) -> Any:
        return F.unrolled("lstm", x, (h, c), (*weights, None), batch_sizes, reverse)

    inputs = (input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh)
    return F.pull_back(layer, inputs, (grad_output, grad_hidden, grad_cell))


def gru_layer_back(
    grad_output: Any, grad_hidden: Any, input: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any,
    batch_sizes: Any, reverse: bool, gates: Any, recurrent_n: Any, hidden_before: Any,
) -> Any:  # fmt: skip
    """The gradients of input, h0, the weights and the biases."""

    def layer(x: Any, h: Any, *weights: Any) -> Any:
        return F.unrolled("gru", x, (h,), (*weights, None), batch_sizes, reverse)

    return F.pull_back(layer, (input, h0, weight_ih, weight_hh, bias_ih, bias_hh), (grad_output, grad_hidden))


def rnn_layer_back(
    grad_output: Any, grad_hidden: Any, input: Any, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any,
    nonlinearity: str, batch_sizes: Any, reverse: bool, output: Any, hidden_before: Any,
) -> Any:  # fmt: skip
    """The gradients of input, h0, the weights and the biases."""

    def layer(x: Any, h: Any, *weights: Any) -> Any:
        return F.unrolled(nonlinearity, x, (h,), (*weights, None), batch_sizes, reverse)

    return F.pull_back(layer, (input, h0, weight_ih, weight_hh, bias_ih, bias_hh), (grad_output, grad_hidden))


def pull_back(layer: Callable[..., Any], inputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """The recorded gradients of <grads, layer(inputs)>, None for inputs that need none.

    Inputs are aliased, so that a gradient counts only what flows through its own place in the layer.
    """
    from pullback.engine.engine import engine  # the array path's copy of this file has no use for these
    from pullback.graph.history import gradient_edge
    from pullback.modes.grad_mode import set_grad_mode

    former = set_grad_mode(True)
    try:
        aliases = [F.alias(t) if t is not None and t.requires_grad else t for t in inputs]
        outputs = layer(*aliases)
        used = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
        wanted = [i for i, t in enumerate(aliases) if t is not None and t.requires_grad]
        edges = [edge for o, _ in used if (edge := gradient_edge(o)) is not None]
        captures = [edge for i in wanted if (edge := gradient_edge(aliases[i])) is not None]
        found = engine.execute(
            edges, [g for _, g in used], keep_graph=True, create_graph=True, captures=captures, accumulate=False,
            ends_at_captures=True,
        )  # fmt: skip
    finally:
        set_grad_mode(former)
    results: list[Any] = [None] * len(inputs)
    for i, gradient in zip(wanted, found, strict=True):
        results[i] = gradient
    return results


def unrolled(
    kind: str, input: Any, states: Sequence[Any], weights: Sequence[Any], batch_sizes: Any, reverse: bool
) -> tuple[Any, ...]:
    """Outputs and final states of a layer, step by step; `weights` are those of a cell and an optional projection."""
    from pullback.functions import linear  # lazy: above this layer

    projected = linear(input, weights[0], weights[2])
    if batch_sizes is not None:
        take = F.packed_steps_back if reverse else F.packed_steps
        return take(kind, projected, tuple(states), weights, batch_sizes)
    current, outputs = tuple(states), []
    parts = F.unbind(projected, 0)
    for part in reversed(parts) if reverse else parts:
        current = F.gated_step(kind, part, current, weights)
        outputs.append(current[0])
    return (F.stack(outputs[::-1] if reverse else outputs, 0), *current)


def packed_steps(kind: str, projected: Any, states: tuple[Any, ...], weights: Sequence[Any], sizes: Any) -> Any:
    """The steps of packed sequences: where some end, the state goes on without their rows."""
    current, outputs, start, ended = states, [], 0, []
    for count in sizes:
        part, rows = F.slice_view(projected, 0, start, start + count, 1), current[0].shape[0]
        if count < rows:
            ended.append(F.state_rows(current, count, rows))
            current = F.state_rows(current, 0, count)
        current = F.gated_step(kind, part, current, weights)
        outputs.append(current[0])
        start += count
    output = F.cat(outputs, 0)
    return (output, *F.joined_states((current, *reversed(ended))))


def packed_steps_back(kind: str, projected: Any, states: tuple[Any, ...], weights: Sequence[Any], sizes: Any) -> Any:
    """The same from the last step to the first: where sequences join, their rows of the first state do."""
    count, end, outputs = sizes[-1], projected.shape[0], []
    current = F.state_rows(states, 0, count)
    for size in reversed(sizes):
        part = F.slice_view(projected, 0, end - size, end, 1)
        if size > count:
            current = F.joined_states((current, F.state_rows(states, count, size)))
        count = size
        current = F.gated_step(kind, part, current, weights)
        outputs.append(current[0])
        end -= size
    return (F.cat(outputs[::-1], 0), *current)


def state_rows(states: Sequence[Any], start: int, end: int) -> tuple[Any, ...]:
    """Some rows of h and c; as in PyTorch those of c are recorded first."""
    return tuple([F.slice_view(state, 0, start, end, 1) for state in reversed(states)][::-1])


def joined_states(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """States of which each part has some rows."""
    return tuple([F.cat(list(rows), 0) for rows in list(zip(*parts, strict=True))[::-1]][::-1])


def cell_step(kind: str, input: Any, states: Sequence[Any], weights: Sequence[Any]) -> tuple[Any, ...]:
    """One step of a cell: the new states, the first of which is the output."""
    return F.gated_step(kind, F.affine(input, weights[0], weights[2]), states, weights)


def gated_step(kind: str, left: Any, states: Sequence[Any], weights: Sequence[Any]) -> tuple[Any, ...]:
    """One step from what the input gives to the gates."""
    _, weight_hh, _, bias_hh, projection = weights
    hidden = states[0]
    if kind == "gru":
        left_r, left_z, left_n = F.gates_of(left, 3)
        right_r, right_z, right_n = F.gates_of(F.affine(hidden, weight_hh, bias_hh), 3)
        r = F.sigmoid(F.add(right_r, left_r))
        z = F.sigmoid(F.add(right_z, left_z))
        n = F.tanh(F.add(left_n, F.mul(right_n, r)))
        return (F.add(F.mul(F.sub(hidden, n), z), n),)
    right = F.affine(hidden, weight_hh, bias_hh)
    if kind in ("tanh", "relu"):
        return (F.tanh(F.add(right, left)) if kind == "tanh" else F.relu(F.add(right, left)),)
    of_i, of_f, of_g, of_o = F.gates_of(F.add(right, left), 4)
    i, f, g, o = F.sigmoid(of_i), F.sigmoid(of_f), F.tanh(of_g), F.sigmoid(of_o)
    cell = F.add(F.mul(f, states[1]), F.mul(i, g))
    output = F.mul(o, F.tanh(cell))
    return (output if projection is None else F.affine(output, projection, None), cell)


def affine(input: Any, weight: Any, bias: Any) -> Any:
    """`input @ weight.T + bias`."""
    transposed = F.t(weight)
    return F.mm(input, transposed) if bias is None else F.addmm(bias, input, transposed)


def gates_of(input: Any, count: int) -> Any:
    """The columns of each gate."""
    if isinstance(input, Tensor):
        from pullback.functions.view_copies import unsafe_chunk  # lazy: above this layer

        return unsafe_chunk(input, count, 1)
    size = input.shape[1] // count
    return [F.slice_view(input, 1, index * size, (index + 1) * size, 1) for index in range(count)]


@declare(twin="passes")
def pack_padded_sequence_back(grad: Any, shape: Any, batch_sizes: Any, batch_first: bool) -> Any:
    """The rows where they came from, zeros elsewhere."""
    from pullback.nn.utils.rnn import padded_steps  # lazy: above this layer

    sizes = [int(size) for size in batch_sizes._array.tolist()]
    padded = padded_steps(grad, sizes, shape[0 if not batch_first else 1], 0.0)
    return F.transpose(padded, 0, 1) if batch_first else padded
