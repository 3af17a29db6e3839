"""Samples of recurrent cells and layers."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.nn.utils import rnn
from tests.derivatives.sampling import Maker, Sample, normal


def _weights(gates: int, sizes: int = 3, hidden: int = 2) -> tuple[Maker, ...]:
    return (
        normal(gates * hidden, sizes),
        normal(gates * hidden, hidden),
        normal(gates * hidden),
        normal(gates * hidden),
    )


def _lstm(x: Any, h: Any, c: Any, *weights: Any) -> Any:
    return pullback.lstm(x, (h, c), weights, True, 1, 0.0, False, len(weights) > 4, False)


def _packed(x: Any, h: Any, c: Any, *weights: Any) -> Any:
    return pullback.lstm(x, pullback.tensor([2, 2, 1]), (h, c), weights, True, 1, 0.0, False, True)


SAMPLES = [
    Sample("lstm", _lstm, (normal(3, 2, 3), normal(1, 2, 2), normal(1, 2, 2), *_weights(4))),
    Sample(
        "lstm bidirectional", _lstm, (normal(3, 2, 3), normal(2, 2, 2), normal(2, 2, 2), *_weights(4), *_weights(4))
    ),
    Sample("lstm packed", _packed, (normal(5, 3), normal(2, 2, 2), normal(2, 2, 2), *_weights(4), *_weights(4))),
    Sample(
        "gru", lambda x, h, *w: pullback.gru(x, h, w, True, 1, 0.0, False, False, True),
        (normal(2, 3, 3), normal(1, 2, 2), *_weights(3)),
    ),
    Sample(
        "rnn_tanh", lambda x, h, *w: pullback.rnn_tanh(x, h, w, False, 1, 0.0, False, False, False),
        (normal(3, 2, 3), normal(1, 2, 2), *_weights(1)[:2]),
    ),
    Sample(
        "rnn_relu", lambda x, h, *w: pullback.rnn_relu(x, h, w, True, 1, 0.0, False, False, False),
        (normal(3, 2, 3), normal(1, 2, 2), *_weights(1)),
    ),
    Sample("pack_padded_sequence", lambda x: rnn.pack_padded_sequence(x, [3, 1]).data, (normal(3, 2, 2),)),
    Sample(
        "pack_padded_sequence batch_first",
        lambda x: rnn.pack_padded_sequence(x, [1, 3], batch_first=True, enforce_sorted=False).data, (normal(2, 3, 2),),
    ),
    Sample(
        "pad_packed_sequence",
        lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=4, padding_value=2)[0],
        (normal(3, 2, 2),),
    ),
    Sample(
        "lstm_cell", lambda x, h, c, *w: pullback.lstm_cell(x, (h, c), *w),
        (normal(2, 3), normal(2, 2), normal(2, 2), *_weights(4)),
    ),
    Sample("gru_cell", pullback.gru_cell, (normal(2, 3), normal(2, 2), *_weights(3))),
]  # fmt: skip
