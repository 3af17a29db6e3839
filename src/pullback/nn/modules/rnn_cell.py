"""Recurrent cells: one step of a recurrent network."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.nn import init
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter


class RNNCellBase(Module):
    """The parameters of one cell with `num_chunks` gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Parameter(creation.empty((num_chunks * hidden_size, input_size), **options))
        self.weight_hh = Parameter(creation.empty((num_chunks * hidden_size, hidden_size), **options))
        if bias:
            self.bias_ih = Parameter(creation.empty(num_chunks * hidden_size, **options))
            self.bias_hh = Parameter(creation.empty(num_chunks * hidden_size, **options))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights from a uniform distribution of width 1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check(self, input: Any, hx: Any) -> None:
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(-1)} expected {self.input_size}")
        for i, state in enumerate(hx if isinstance(hx, (tuple, list)) else () if hx is None else (hx,)):
            if state.dim() not in (1, 2):
                what = f"hx[{i}]" if name == "LSTMCell" else "hidden"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")
            if state.dim() == input.dim() == 2 and state.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {state.size(0)}"
                )
            if state.size(-1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.size(-1)}, expected {self.hidden_size}"
                )

    def _step(self, function: Any, input: Any, hx: Any, zero_states: int) -> Any:
        """Call a cell on a batch, also of a single sample."""
        self._check(input, hx)
        is_batched = input.dim() == 2
        batch = input if is_batched else input.unsqueeze(0)
        if hx is None:
            zeros = batch.new_zeros((batch.size(0), self.hidden_size))
            states: Any = (zeros,) * zero_states if zero_states > 1 else zeros
        elif isinstance(hx, (tuple, list)):
            states = tuple(hx) if is_batched else tuple(state.unsqueeze(0) for state in hx)
        else:
            states = hx if is_batched else hx.unsqueeze(0)
        result = function(batch, states, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if is_batched:
            return result
        return tuple(r.squeeze(0) for r in result) if isinstance(result, tuple) else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of Elman's network.

    Inputs (N, input_size) and state (N, hidden_size), zero unless given. h' = tanh(W_i x + b_i + W_h h + b_h), or relu
    for `nonlinearity`="relu".

    >>> import pullback
    >>> pullback.nn.RNNCell(3, 5)(pullback.ones(2, 3)).shape
    pullback.Size([2, 5])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(
            functions.rnn_tanh_cell if self.nonlinearity == "tanh" else functions.rnn_relu_cell, input, hx, 1
        )


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state is (h, c).

    Inputs (N, input_size) and states (h, c) of (N, hidden_size), zero unless given. c' = sigmoid(f) * c + sigmoid(i) *
    tanh(g), h' = sigmoid(o) * tanh(c'), with i, f, g, o = W_i x + b_i + W_h h + b_h in four parts.

    >>> import pullback
    >>> [state.shape for state in pullback.nn.LSTMCell(3, 5)(pullback.ones(2, 3))]
    [pullback.Size([2, 5]), pullback.Size([2, 5])]
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(functions.lstm_cell, input, hx, 2)


class GRUCell(RNNCellBase):
    """One step of a GRU.

    Inputs (N, input_size) and state (N, hidden_size), zero unless given; both without N too. r, z = sigmoid(...), n =
    tanh(W_in x + b_in + r * (W_hn h + b_hn)), and h' = (1 - z) * n + z * h.

    >>> import pullback
    >>> pullback.nn.GRUCell(3, 5)(pullback.ones(2, 3)).shape
    pullback.Size([2, 5])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(functions.gru_cell, input, hx, 1)


for _cell in (RNNCellBase, RNNCell, LSTMCell, GRUCell):
    _cell.__module__ = "pullback.nn.modules.rnn"
