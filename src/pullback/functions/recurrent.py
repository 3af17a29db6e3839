"""Recurrent cells, and networks of several layers and directions, plain or packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.facts import declare
from pullback.tensor.tensor import Tensor

_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


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
    if kind == "lstm" and batch_first:
        sequence = functions.contiguous(sequence)  # what PyTorch's layer takes
    finals: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = _cell_weights(params[number * per_cell : (number + 1) * per_cell], has_biases)
            initial = tuple([functions.select(s, 0, number) for s in states])
            output, *final = _layer(kind, sequence, initial, weights, batch_sizes, direction == 1)
            outputs.append(output)
            finals.append(tuple(final))
        sequence = outputs[0] if directions == 1 else functions.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            sequence = functions.dropout(sequence, dropout, True)
    stacked = tuple([functions.stack([f[k] for f in finals], 0) for k in range(len(states))])
    return (functions.transpose(sequence, 0, 1) if batch_first else sequence), stacked


def _cell_weights(params: Sequence[Tensor], has_biases: bool) -> tuple[Any, ...]:
    """(weight_ih, weight_hh, bias_ih, bias_hh, projection), None for those that the cell has not."""
    biases = tuple(params[2:4]) if has_biases else (None, None)
    used = 4 if has_biases else 2
    return (params[0], params[1], *biases, params[used] if len(params) > used else None)


def _layer(
    kind: str, sequence: Tensor, states: tuple[Tensor, ...], weights: tuple[Any, ...],
    batch_sizes: tuple[int, ...] | None, reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    if weights[4] is not None:
        return functions.unrolled(kind, sequence, states, weights, batch_sizes, reverse)
    if kind == "lstm":
        return G.lstm_layer(sequence, *states, *weights[:4], batch_sizes, reverse)[:3]
    if kind == "gru":
        return G.gru_layer(sequence, *states, *weights[:4], batch_sizes, reverse)[:2]
    return G.rnn_layer(sequence, *states, *weights[:4], kind, batch_sizes, reverse)[:2]
