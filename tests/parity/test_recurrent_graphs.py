"""The graphs behind recurrent layers are PyTorch's, node by node: names, edges, names of what is saved."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")

FORMS: list[dict[str, Any]] = [
    {}, {"bias": False}, {"num_layers": 2}, {"num_layers": 2, "dropout": 0.5}, {"bidirectional": True},
    {"bidirectional": True, "num_layers": 2}, {"batch_first": True}, {"batch_first": True, "bidirectional": True},
]  # fmt: skip
CASES = [(kind, form) for kind in ("RNN", "GRU", "LSTM") for form in FORMS]
CASES += [
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"proj_size": 2}),
    ("LSTM", {"proj_size": 2, "batch_first": True}),
]
CASES += [("LSTM", {"proj_size": 2, "bidirectional": True, "num_layers": 2})]


def graph(results: list[Any]) -> list[str]:
    """One node a line, each when it is first reached."""
    kept: list[Any] = []

    def number(node: Any) -> int:
        if node not in kept:
            kept.append(node)
        return kept.index(node)

    lines = [" ".join(f"{number(t.grad_fn)}.{t.output_nr}" for t in results)]
    for node in kept:
        edges = ["-" if to is None else f"{number(to)}.{nr}" for to, nr in node.next_functions]
        saved = sorted(name for name in dir(node) if name.startswith("_saved_"))
        lines.append(f"{node.name()} {edges} {saved}")
    return lines


def tensors_of(library: Any, value: Any) -> list[Any]:
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, library.nn.utils.rnn.PackedSequence):
        return [value.data]
    return [tensor for part in value for tensor in tensors_of(library, part)]


def layer(library: Any, kind: str, form: dict[str, Any], dtype: str, input: str) -> list[str]:
    """The graph behind everything that a layer returns."""
    number = getattr(library, dtype)
    network = getattr(library.nn, kind)(4, 3, dtype=number, **form)
    x = library.randn((3, 4) if input == "single" else (3, 2, 4), dtype=number, requires_grad=True)
    pack = library.nn.utils.rnn.pack_padded_sequence
    if input == "packed":
        return graph(
            tensors_of(library, network(pack(x, [2, 2, 1] if form.get("batch_first") else [3, 1], **_first(form))))
        )
    if input != "states":
        return graph(tensors_of(library, network(x)))
    count, batch = form.get("num_layers", 1) * (1 + form.get("bidirectional", 0)), 3 if form.get("batch_first") else 2
    hidden = library.randn(count, batch, form.get("proj_size") or 3, dtype=number, requires_grad=True)
    cell = library.randn(count, batch, 3, dtype=number, requires_grad=True)
    return graph(tensors_of(library, network(x, (hidden, cell) if kind == "LSTM" else hidden)))


def _first(form: dict[str, Any]) -> dict[str, Any]:
    return {"batch_first": True} if form.get("batch_first") else {}


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("input", ["plain", "single", "packed", "states"])
@pytest.mark.parametrize(("kind", "form"), CASES, ids=str)
def test_layers(kind: str, form: dict[str, Any], input: str) -> None:
    for dtype in ("float32", "float64"):
        assert layer(pullback, kind, form, dtype, input) == layer(torch, kind, form, dtype, input)


@pytest.mark.parametrize("form", [{}, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells(kind: str, form: dict[str, Any]) -> None:
    def cell(library: Any) -> list[str]:
        return graph(
            tensors_of(library, getattr(library.nn, kind)(4, 3, **form)(library.ones(2, 4, requires_grad=True)))
        )

    assert cell(pullback) == cell(torch)


PADDING = {
    "pad_packed_sequence": lambda rnn, x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 2]))[0],
    "unsorted": lambda rnn, x: rnn.pad_packed_sequence(
        rnn.pack_padded_sequence(x, [1, 3], enforce_sorted=False, batch_first=True), batch_first=True, total_length=5
    )[0],
    "unpack_sequence": lambda rnn, x: rnn.unpack_sequence(rnn.pack_padded_sequence(x, [3, 2])),
}  # fmt: skip


@pytest.mark.parametrize("name", PADDING)
def test_padding_and_packing(name: str) -> None:
    def padded(library: Any) -> tuple[list[str], Any]:
        shape = (2, 3, 4) if name == "unsorted" else (3, 2, 4)
        x = library.arange(24.0).reshape(shape).requires_grad_()
        results = tensors_of(library, PADDING[name](library.nn.utils.rnn, x))
        return graph(results), [result.tolist() for result in results]

    assert padded(pullback) == padded(torch)
