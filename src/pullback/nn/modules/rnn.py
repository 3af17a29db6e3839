"""Recurrent networks over sequences, plain or packed; single cells are in rnn_cell.py."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pullback import creation
from pullback.amp.autocast_mode import is_autocast_enabled
from pullback.modes.user_warnings import warn_user
from pullback.nn import init
from pullback.nn.modules.module import Module
from pullback.nn.modules.rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase
from pullback.nn.parameter import Parameter
from pullback.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _zeros(input: Any, size: Any) -> Any:
    return creation.zeros(size, dtype=input.dtype, device=input.device)


def _check_sizes(hidden_size: Any, num_layers: int, dropout: Any, proj_size: int) -> None:
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warn_user(
            "dropout option adds dropout after all but last recurrent layer: it does nothing here, with "
            f"dropout={dropout} and num_layers={num_layers}"
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """The parameters of a recurrent network, layer by layer and direction by direction."""

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_sizes(hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._add_cell(layer, suffix, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _add_cell(self, layer: int, suffix: str, options: dict[str, Any]) -> None:
        """Register the weights of one layer in one direction."""
        gate_size = _GATES[self.mode] * self.hidden_size
        state_size = self.proj_size if self.proj_size > 0 else self.hidden_size
        input_size = self.input_size if layer == 0 else state_size * (2 if self.bidirectional else 1)
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gate_size, input_size),
            "weight_hh": (gate_size, state_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (gate_size,), "bias_hh": (gate_size,)}
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            name = f"{kind}_l{layer}{suffix}"
            setattr(self, name, Parameter(creation.empty(shape, **options)))
            names.append(name)
        self._flat_weights_names.extend(names)
        self._all_weights.append(names)

    @property
    def _flat_weights(self) -> list[Any]:
        given = self.__dict__.get("_given_weights")
        return given or [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        """Compute with these weights, as programs that drop or generate weights ask for."""
        registered = [getattr(self, name, None) for name in self._flat_weights_names]
        is_the_same = len(weights) == len(registered) and all(map(operator.is_, weights, registered))
        self.__dict__["_given_weights"] = None if is_the_same else weights

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        given = self.__dict__.get("_given_weights")
        if given and name in self._flat_weights_names:
            given[self._flat_weights_names.index(name)] = value

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: the weights need not lie in one block of memory."""

    def reset_parameters(self) -> None:
        """Draw all weights from a uniform distribution of width 1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse an input whose dtype or last dimension does not fit the weights."""
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and not is_autocast_enabled(input.device.type):  # autocast casts both
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of h: layers times directions, batch, size."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size if self.proj_size > 0 else self.hidden_size

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of c."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse input and state that do not fit the weights and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The state with the batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False,
        }  # fmt: skip
        parts += [
            f"{name}={getattr(self, name)}" for name, default in defaults.items() if getattr(self, name) != default
        ]
        return ", ".join(parts)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_flat_weights": self._flat_weights}  # PyTorch keeps them and reads them from files

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {key: value for key, value in state.items() if key not in ("_flat_weights", "_flat_weight_refs")}
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)

    # The forward pass, common to all kinds.

    def _initial_states(self, input: Any, batch_sizes: Any) -> tuple[Any, ...]:
        return (_zeros(input, self.get_expected_hidden_size(input, batch_sizes)),)

    def _check_unbatched_states(self, states: tuple[Any, ...], is_batched: bool) -> None:
        wanted = 3 if is_batched else 2
        if states[0].dim() != wanted:
            kind = "batched 3-D" if is_batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {wanted}-D but got {states[0].dim()}-D tensor")

    def _check_states(self, input: Any, states: tuple[Any, ...], batch_sizes: Any) -> None:
        self.check_forward_args(input, states[0], batch_sizes)

    def _function(self) -> Any:
        return getattr(import_module("pullback"), self.mode.lower())  # the public one: function modes are told of it

    def _run(self, input: Any, states: tuple[Any, ...] | None) -> tuple[Any, tuple[Any, ...]]:
        """The output and the final states, for packed, batched and single sequences."""
        if isinstance(input, PackedSequence):
            return self._run_packed(input, states)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if states is not None:
            self._check_unbatched_states(states, is_batched)
        if not is_batched:
            input = input.unsqueeze(batch_dim)
            states = None if states is None else tuple(state.unsqueeze(1) for state in states)
        if states is None:
            states = self._initial_states(input, None)
        self._check_states(input, states, None)
        output, *finals = self._function()(
            input, self._passed(states), self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first,
        )  # fmt: skip
        if not is_batched:
            return output.squeeze(batch_dim), tuple(final.squeeze(1) for final in finals)
        return output, tuple(finals)

    def _run_packed(self, packed: Any, states: tuple[Any, ...] | None) -> tuple[Any, tuple[Any, ...]]:
        input, batch_sizes, sorted_indices, unsorted_indices = packed
        if states is None:
            states = self._initial_states(input, batch_sizes)
        else:
            states = tuple(self.permute_hidden(state, sorted_indices) for state in states)
        self._check_states(input, states, batch_sizes)
        data, *finals = self._function()(
            input, batch_sizes, self._passed(states), self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional,
        )  # fmt: skip
        output = PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices)
        return output, tuple(self.permute_hidden(final, unsorted_indices) for final in finals)

    def _passed(self, states: Sequence[Any]) -> Any:
        return states[0]


class RNN(RNNBase):
    """Elman's network: h = tanh(W x + U h + b), or with relu.

    The input is (L, N, input_size), (N, L, input_size) with `batch_first`, or (L, input_size); h_0 is (layers *
    directions, N, hidden_size). The result is the output of every step, (L, N, directions * hidden_size), and the last
    h.

    >>> import pullback
    >>> output, h = RNN(4, 3)(pullback.zeros(5, 2, 4))
    >>> output.shape, h.shape
    (pullback.Size([5, 2, 3]), pullback.Size([1, 2, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        output, finals = self._run(input, None if hx is None else (hx,))
        return output, finals[0]


class LSTM(RNNBase):
    """Long short-term memory; the state is (h, c).

    >>> import pullback
    >>> output, (h, c) = LSTM(2, 3)(pullback.ones(5, 4, 2))
    >>> tuple(output.shape), tuple(c.shape)
    ((5, 4, 3), (1, 4, 3))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _initial_states(self, input: Any, batch_sizes: Any) -> tuple[Any, ...]:
        return (
            _zeros(input, self.get_expected_hidden_size(input, batch_sizes)),
            _zeros(input, self.get_expected_cell_size(input, batch_sizes)),
        )

    def _check_unbatched_states(self, states: tuple[Any, ...], is_batched: bool) -> None:
        wanted = 3 if is_batched else 2
        if states[0].dim() != wanted or states[1].dim() != wanted:
            kind = "batched 3-D" if is_batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got ({states[0].dim()}-D, {states[1].dim()}-D) "
                "tensors"
            )

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse input and states that do not fit the weights and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def _check_states(self, input: Any, states: tuple[Any, ...], batch_sizes: Any) -> None:
        self.check_forward_args(input, states, batch_sizes)

    def _passed(self, states: Sequence[Any]) -> Any:
        return tuple(states)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._run(input, None if hx is None else tuple(hx))


class GRU(RNNBase):
    """Gated recurrent units.

    The input is (L, N, input_size), (N, L, input_size) with `batch_first`, or (L, input_size); h_0 is (layers *
    directions, N, hidden_size). The result is the output of every step, (L, N, directions * hidden_size), and the last
    h. r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z likewise; n = tanh(W_in x + b_in + r * (W_hn h + b_hn)); h' = (1 -
    z) * n + z * h.

    >>> import pullback
    >>> output, h = GRU(4, 3)(pullback.zeros(5, 2, 4))
    >>> output.shape, h.shape
    (pullback.Size([5, 2, 3]), pullback.Size([1, 2, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        output, finals = self._run(input, None if hx is None else (hx,))
        return output, finals[0]
