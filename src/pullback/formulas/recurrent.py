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
            edges, [g for _, g in used], keep_graph=True, create_graph=True, captures=captures, accumulate=False
        )
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
    sizes = (input.shape[1],) * input.shape[0] if batch_sizes is None else batch_sizes
    rows = F.reshape(input, (-1, input.shape[-1]))
    starts = [sum(sizes[:t]) for t in range(len(sizes))]
    order = range(len(sizes))
    outputs: list[Any] = [None] * len(sizes)
    current = tuple(states)
    for t in reversed(order) if reverse else order:
        part = F.slice_view(rows, 0, starts[t], starts[t] + sizes[t], 1)
        active = tuple([F.slice_view(s, 0, 0, sizes[t], 1) for s in current])
        stepped = F.cell_step(kind, part, active, weights)
        outputs[t] = stepped[0]
        current = tuple([F.with_first_rows(s, new) for s, new in zip(current, stepped, strict=True)])
    output = F.reshape(F.cat(outputs, 0), (*input.shape[:-1], outputs[0].shape[-1]))
    return (output, *current)


def with_first_rows(state: Any, new: Any) -> Any:
    """`state` with its first rows replaced."""
    count = new.shape[0]
    if count == state.shape[0]:
        return new
    return F.cat([new, F.slice_view(state, 0, count, state.shape[0], 1)], 0)


def cell_step(kind: str, input: Any, states: Sequence[Any], weights: Sequence[Any]) -> tuple[Any, ...]:
    """One step of a cell: the new states, the first of which is the output."""
    weight_ih, weight_hh, bias_ih, bias_hh, projection = weights
    hidden = states[0]
    left, right = F.affine(input, weight_ih, bias_ih), F.affine(hidden, weight_hh, bias_hh)
    if kind in ("tanh", "relu"):
        return (F.tanh(F.add(right, left)) if kind == "tanh" else F.relu(F.add(right, left)),)
    if kind == "gru":
        (left_r, left_z, left_n), (right_r, right_z, right_n) = F.gates_of(left, 3), F.gates_of(right, 3)
        r = F.sigmoid(F.add(right_r, left_r))
        z = F.sigmoid(F.add(right_z, left_z))
        n = F.tanh(F.add(left_n, F.mul(right_n, r)))
        return (F.add(F.mul(F.sub(hidden, n), z), n),)
    of_i, of_f, of_g, of_o = F.gates_of(F.add(right, left), 4)
    cell = F.add(F.mul(F.sigmoid(of_f), states[1]), F.mul(F.sigmoid(of_i), F.tanh(of_g)))
    output = F.mul(F.sigmoid(of_o), F.tanh(cell))
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
