"""Recurrent cells, and networks of several layers and directions, plain or packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.facts import declare
from pullback.graph.fused_node import records_steps
from pullback.graph.renamed_node import renamed
from pullback.modes.switches import process
from pullback.tensor.tensor import Tensor

_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
_STEPS = {"lstm": "lstm_node", "gru": "gru_node", "tanh": "rnn_node", "relu": "rnn_node"}
"""What records the steps of a layer, where somebody looks. See Note [Fused nodes]."""


@declare(found="torch")
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new h and c."""
    _check_cell("lstm", input, hx[0], w_ih, w_hh)
    hidden, cell = functions.cell_step("lstm", input, tuple(hx), (w_ih, w_hh, b_ih, b_hh, None))
    return hidden, cell


@declare(found="torch")
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU: the new h."""
    _check_cell("gru", input, hx, w_ih, w_hh)
    return functions.cell_step("gru", input, (hx,), (w_ih, w_hh, b_ih, b_hh, None))[0]


@declare(found="torch")
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of an Elman network with tanh: the new h."""
    _check_cell("tanh", input, hx, w_ih, w_hh)
    return functions.cell_step("tanh", input, (hx,), (w_ih, w_hh, b_ih, b_hh, None))[0]


@declare(found="torch")
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of an Elman network with relu: the new h."""
    _check_cell("relu", input, hx, w_ih, w_hh)
    return functions.cell_step("relu", input, (hx,), (w_ih, w_hh, b_ih, b_hh, None))[0]


def _check_cell(kind: str, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor) -> None:
    gates = _GATES[kind]
    for name, weight, size in (("weight_ih", w_ih, input._array.shape[-1]), ("weight_hh", w_hh, hx._array.shape[-1])):
        hidden = w_hh._array.shape[1]
        if weight._array.shape[0] != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {weight._array.shape[0]}"
            )
        if weight._array.shape[1] != size:
            raise RuntimeError(
                f"{name} second dim must be {size}, the size of its input, but got {weight._array.shape[1]}"
            )


@declare(found="torch")
def lstm(*args: Any, **named: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run an LSTM over sequences.

    Called as `lstm(input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or with
    packed data as `lstm(data, batch_sizes, (h, c), params, has_biases, num_layers, dropout, train, bidirectional)`.
    """
    output, states = _network("lstm", *_arguments(args, named))
    return output, states[0], states[1]


@declare(found="torch")
def gru(*args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """Run a GRU over sequences; called as `lstm` is, with h alone as the state."""
    output, states = _network("gru", *_arguments(args, named))
    return output, states[0]


@declare(found="torch")
def rnn_tanh(*args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """Run an Elman network with tanh over sequences; called as `gru` is."""
    output, states = _network("tanh", *_arguments(args, named))
    return output, states[0]


@declare(found="torch")
def rnn_relu(*args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """Run an Elman network with relu over sequences; called as `gru` is."""
    output, states = _network("relu", *_arguments(args, named))
    return output, states[0]


def _arguments(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """(input, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, batch_sizes)."""
    plain = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
    packed = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
    is_packed = (
        "data" in named
        or "batch_sizes" in named
        or (len(args) > 2 and isinstance(args[1], Tensor) and args[1]._array.dtype.kind == "i")
    )
    names = packed if is_packed else plain
    values = dict(zip(names, args, strict=False)) | named
    if is_packed:
        values["input"], values["batch_first"] = values.pop("data"), False
        values["batch_sizes"] = tuple([int(n) for n in values["batch_sizes"]._array.tolist()])
    hx = values["hx"]
    values["hx"] = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
    return (*[values[n] for n in plain], values.get("batch_sizes"))


def _network(
    kind: str, input: Tensor, states: tuple[Tensor, ...], params: Sequence[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool, batch_sizes: tuple[int, ...] | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
    """All layers and directions; the output of the last layer and the final states of all."""
    directions = 2 if bidirectional else 1
    per_cell = len(params) // (num_layers * directions)
    sequence = functions.transpose(input, 0, 1) if batch_first else input
    is_one_node = kind == "lstm" and per_cell == (4 if has_biases else 2) and _serves_one_node(input, batch_sizes)
    if is_one_node and batch_sizes is not None:
        sequence = functions.view(input, (len(batch_sizes), batch_sizes[0], -1))
    elif is_one_node and batch_first:
        sequence = functions.contiguous(sequence)  # what PyTorch's layer takes
    steps = None if is_one_node else batch_sizes
    firsts = [_first_states(s, num_layers * directions, is_one_node) for s in states]
    finals: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = _cell_weights(params[number * per_cell : (number + 1) * per_cell], has_biases)
            initial = tuple([first[number] for first in firsts])
            output, *final = _layer(kind, sequence, initial, weights, steps, direction == 1, is_one_node)
            if is_one_node and output._edge is not None and output._edge[0].operation == "lstm_layer":
                output._edge[0].network = (batch_first, bidirectional, train)  # which the node shows
            outputs.append(output)
            finals.append(tuple(final))
        sequence = outputs[0] if directions == 1 else functions.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            sequence = functions.dropout(sequence, dropout, True)
    stacked = [functions.stack([f[k] for f in finals], 0) for k in reversed(range(len(states)))]  # c before h
    stacked.reverse()
    if batch_first:
        swapped = functions.transpose(sequence, 0, 1)
        return (swapped if kind == "lstm" else functions.apart(swapped, "TransposeBackward1")), tuple(stacked)
    if is_one_node and batch_sizes is not None:
        sequence = functions.view(sequence, (-1, sequence._array.shape[-1]))
    return sequence, tuple(stacked)


def _first_states(state: Tensor, count: int, is_one_node: bool) -> Sequence[Tensor]:
    """The state of each layer and direction; the parts of one view, where that is seen."""
    if not is_one_node and (state._requires_grad or process.changed):
        return functions.unbind(state, 0)
    return [functions.select(state, 0, number) for number in range(count)]


def _cell_weights(params: Sequence[Tensor], has_biases: bool) -> tuple[Any, ...]:
    """(weight_ih, weight_hh, bias_ih, bias_hh, projection), None for those that the cell has not."""
    biases = tuple(params[2:4]) if has_biases else (None, None)
    used = 4 if has_biases else 2
    return (params[0], params[1], *biases, params[used] if len(params) > used else None)


def _serves_one_node(input: Tensor, batch_sizes: Any) -> bool:
    """Whether PyTorch hands an LSTM to oneDNN, where a layer is one operation: sequences of one length."""
    array = input._array
    if not array.size or (batch_sizes is not None and batch_sizes[0] != batch_sizes[-1]):
        return False
    return array.dtype.itemsize == 4 or array.dtype.name == "bfloat16"


def _layer(
    kind: str, sequence: Tensor, states: tuple[Tensor, ...], weights: tuple[Any, ...],
    batch_sizes: tuple[int, ...] | None, reverse: bool, is_one_node: bool,
) -> tuple[Any, ...]:  # fmt: skip
    if weights[4] is not None or (process.changed and not is_one_node and records_steps(sequence, *states, *weights)):
        return functions.unrolled(kind, sequence, states, weights, batch_sizes, reverse)
    if kind == "lstm":
        results = G.lstm_layer(sequence, *states, *weights[:4], batch_sizes, reverse)[:3]
    elif kind == "gru":
        results = G.gru_layer(sequence, *states, *weights[:4], batch_sizes, reverse)[:2]
    else:
        results = G.rnn_layer(sequence, *states, *weights[:4], kind, batch_sizes, reverse)[:2]
    if is_one_node or (batch_sizes is None and kind != "lstm") or results[0]._edge is None:
        return results
    if getattr(results[0]._edge[0], "operation", "") not in ("lstm_layer", "gru_layer", "rnn_layer"):
        return results  # a transform recorded other nodes
    node = renamed(results[0]._edge[0], "StackBackward0" if batch_sizes is None else "CatBackward0", _STEPS[kind])
    for place, result in enumerate(results):
        result._edge = (node, place)
    return results
