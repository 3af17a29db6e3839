"""Rules of kernels/recurrent.py."""

from __future__ import annotations

from typing import Any

from pullback.rules import F, Pullback, Tensor, general, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    node="MkldnnRnnLayerBackward0", outputs=("output", "hidden", "cell", "gates", "hidden_before", "cell_before"),
    differentiable=(True, True, True, False, False, False), out=False,
    edges=("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0", "c0"),autocast="lower", profiled="lstm",
    recurrent=3,
)  # fmt: skip
def lstm_layer(
    grad_output: Tensor, grad_hidden: Tensor, grad_cell: Tensor, input: Tensor, h0: Tensor, c0: Tensor,
    weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor, batch_sizes: Any, reverse: bool, *,
    gates: Tensor, hidden_before: Tensor, cell_before: Tensor,
) -> Pullback:  # fmt: skip
    parts = F.lstm_layer_back(
        grad_output, grad_hidden, grad_cell, input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes,
        reverse, gates, hidden_before, cell_before,
    )  # fmt: skip
    return wrt(
        input=parts[0], h0=parts[1], c0=parts[2], weight_ih=parts[3], weight_hh=parts[4], bias_ih=parts[5],
        bias_hh=parts[6],
    )  # fmt: skip


@general(
    node="StackBackward0", outputs=("output", "hidden", "gates", "recurrent_n", "hidden_before"),
    differentiable=(True, True, False, False, False), out=False,
    edges=("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0"), autocast="stepwise", profiled="gru",
    fused="gru_node", recurrent=2,
)  # fmt: skip
def gru_layer(
    grad_output: Tensor, grad_hidden: Tensor, input: Tensor, h0: Tensor, weight_ih: Tensor, weight_hh: Tensor,
    bias_ih: Tensor, bias_hh: Tensor, batch_sizes: Any, reverse: bool, *, gates: Tensor, recurrent_n: Tensor,
    hidden_before: Tensor,
) -> Pullback:  # fmt: skip
    parts = F.gru_layer_back(
        grad_output, grad_hidden, input, h0, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes, reverse, gates,
        recurrent_n, hidden_before,
    )  # fmt: skip
    return wrt(input=parts[0], h0=parts[1], weight_ih=parts[2], weight_hh=parts[3], bias_ih=parts[4], bias_hh=parts[5])


@general(
    node="StackBackward0",
    outputs=("output", "hidden", "hidden_before"),
    differentiable=(True, True, False),
    out=False,
    edges=("input", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0"),
    autocast="stepwise",
    fused="rnn_node",
    recurrent=2,
)
def rnn_layer(
    grad_output: Tensor, grad_hidden: Tensor, input: Tensor, h0: Tensor, weight_ih: Tensor, weight_hh: Tensor,
    bias_ih: Tensor, bias_hh: Tensor, nonlinearity: str, batch_sizes: Any, reverse: bool, *, output: Tensor,
    hidden_before: Tensor,
) -> Pullback:  # fmt: skip
    parts = F.rnn_layer_back(
        grad_output, grad_hidden, input, h0, weight_ih, weight_hh, bias_ih, bias_hh, nonlinearity, batch_sizes, reverse,
        output, hidden_before,
    )  # fmt: skip
    return wrt(input=parts[0], h0=parts[1], weight_ih=parts[2], weight_hh=parts[3], bias_ih=parts[4], bias_hh=parts[5])


@general(
    outputs=("data", "batch_sizes"), differentiable=(True, False), out=False, shows="batch_first",
    aten="_pack_padded_sequence(input, lengths, batch_first)",
)  # fmt: skip
def pack_padded_sequence(
    grad: Tensor, input: Tensor, lengths: Tensor, batch_first: bool, *, batch_sizes: Tensor
) -> Pullback:
    return wrt(input=F.pack_padded_sequence_back(grad, input.shape, batch_sizes, batch_first))


@tangent
def pack_padded_sequence_tangent(input_tangent: Tensor, lengths: Tensor, batch_first: bool) -> Tensor:
    return F.pack_padded_sequence(input_tangent, lengths, batch_first)
