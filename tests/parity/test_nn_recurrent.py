"""Recurrent networks and attention with several heads beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parity.comparison import compare

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
INPUTS, HIDDEN, BATCH, LENGTH = 4, 3, 2, 5


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def parameters(kind: str, layers: int, directions: int, bias: bool, projection: int) -> list[Any]:
    rows, made = GATES[kind] * HIDDEN, []
    for layer in range(layers):
        width = INPUTS if layer == 0 else (projection or HIDDEN) * directions
        for _ in range(directions):
            made += [normal(rows, width), normal(rows, projection or HIDDEN)]
            made += [normal(rows), normal(rows)] if bias else []
            made += [normal(projection, HIDDEN)] if projection else []
    return made


def states(kind: str, count: int, projection: int, batch: int = BATCH) -> list[Any]:
    return [normal(count, batch, projection or HIDDEN)] + ([normal(count, batch, HIDDEN)] if kind == "lstm" else [])


FORMS = [(1, 1, True, False, 0), (2, 1, False, True, 0), (2, 2, True, False, 0), (2, 2, True, True, 2)]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_networks(kind: str, form: Any) -> None:
    layers, directions, bias, batch_first, projection = form
    if projection and kind != "lstm":
        pytest.skip("only an LSTM has projections")
    given = states(kind, layers * directions, projection)

    def call(m: Any, F: Any, x: Any, *rest: Any) -> Any:
        initial = rest[: len(given)] if kind == "lstm" else rest[0]
        return getattr(m, kind)(x, initial, rest[len(given) :], bias, layers, 0.0, True, directions == 2, batch_first)

    sequence = normal(BATCH, LENGTH, INPUTS) if batch_first else normal(LENGTH, BATCH, INPUTS)
    compare(torch, call, [sequence, *given, *parameters(kind, layers, directions, bias, projection)], node=False)


@pytest.mark.parametrize("kind", GATES)
def test_packed_sequences(kind: str) -> None:
    given = states(kind, 4, 0, 3)

    def call(m: Any, F: Any, x: Any, sizes: Any, *rest: Any) -> Any:
        initial = rest[: len(given)] if kind == "lstm" else rest[0]
        return getattr(m, kind)(x, sizes, initial, rest[len(given) :], True, 2, 0.0, True, True)

    sizes = np.array([3, 3, 2, 1])
    compare(torch, call, [normal(9, INPUTS), sizes, *given, *parameters(kind, 2, 2, True, 0)], node=False)


def test_dropout_between_layers_draws_the_same_numbers() -> None:
    def call(m: Any, F: Any, x: Any, h: Any, c: Any, *weights: Any) -> Any:
        return m.lstm(x, (h, c), weights, True, 2, 0.4, True, False, False)

    arrays = [normal(LENGTH, BATCH, INPUTS), *states("lstm", 2, 0), *parameters("lstm", 2, 1, True, 0)]
    compare(torch, call, arrays, node=False, seed=3)


@pytest.mark.parametrize("kind", GATES)
def test_cells(kind: str) -> None:
    given = [s[0] for s in states(kind, 1, 0)]

    def call(m: Any, F: Any, x: Any, *rest: Any) -> Any:
        initial = rest[: len(given)] if kind == "lstm" else rest[0]
        return getattr(m, f"{kind}_cell")(x, initial, *rest[len(given) :])

    compare(torch, call, [normal(BATCH, INPUTS), *given, *parameters(kind, 1, 1, True, 0)])


WIDTH, HEADS, SOURCE = 6, 2, 4
PADDING = np.array([[False, True, False, False], [False, False, False, False]])
LATER: Any = np.triu(np.ones((3, SOURCE), bool), 2)
OPTIONS: list[dict[str, Any]] = [
    {}, {"need_weights": False}, {"attn_mask": LATER}, {"key_padding_mask": PADDING},
    {"attn_mask": LATER, "key_padding_mask": PADDING}, {"attn_mask": LATER, "is_causal": True, "need_weights": False},
    {"average_attn_weights": False}, {"dropout_p": 0.3}, {"add_zero_attn": True, "attn_mask": LATER},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o) or "plain")
def test_multi_head_attention(options: dict[str, Any]) -> None:
    def call(m: Any, F: Any, q: Any, k: Any, v: Any, w: Any, b: Any, out_w: Any, out_b: Any) -> Any:
        named = {n: m.tensor(o) if isinstance(o, np.ndarray) else o for n, o in options.items()}
        zero, rate = named.pop("add_zero_attn", False), named.pop("dropout_p", 0.0)
        return F.multi_head_attention_forward(
            q, k, v, WIDTH, HEADS, w, b, None, None, zero, rate, out_w, out_b, **named
        )

    rows = [normal(3, 2, WIDTH), normal(SOURCE, 2, WIDTH), normal(SOURCE, 2, WIDTH)]
    weights = [normal(3 * WIDTH, WIDTH), normal(3 * WIDTH), normal(WIDTH, WIDTH), normal(WIDTH)]
    compare(torch, call, [*rows, *weights], node=False, second_order=False)
