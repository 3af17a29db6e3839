"""The compiled LSTM layer against the NumPy kernels, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import recurrent

kernels: Any = recurrent

pytestmark = [
    pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built"),
    pytest.mark.usefixtures("instruction_set"),
]


def make_layer(dtype: str, steps: int, batch: int, width: int, size: int, biases: tuple[bool, bool]) -> list[Any]:
    generator = np.random.default_rng(0)
    shapes = [(steps, batch, width), (batch, size), (batch, size), (4 * size, width), (4 * size, size)]
    arrays: list[Any] = [(generator.standard_normal(shape) * 0.5).astype(dtype) for shape in shapes]
    return arrays + [generator.standard_normal(4 * size).astype(dtype) if given else None for given in biases]


def assert_close(actual: Any, expected: Any) -> None:
    for ours, reference in zip(actual, expected, strict=True):
        if reference is None:
            assert ours is None
            continue
        assert ours.dtype == reference.dtype
        assert ours.shape == reference.shape
        tolerance = 200 * np.finfo(ours.dtype).eps * max(1.0, float(np.abs(reference).max()))
        np.testing.assert_allclose(ours, reference, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biases", [(True, True), (False, False), (True, False)])
def test_lstm_equals_the_reference(dtype: str, reverse: bool, biases: tuple[bool, bool]) -> None:
    for sizes in ((1, 1, 1, 1), (5, 3, 4, 6), (7, 16, 20, 33), (12, 2, 64, 64)):
        layer = [*make_layer(dtype, *sizes, biases), None, reverse]
        forward, expected = kernels.lstm_layer(*layer), kernels.lstm_layer.__wrapped__(*layer)
        assert_close(forward, expected)
        generator = np.random.default_rng(1)
        grads = [generator.standard_normal(part.shape).astype(dtype) for part in expected[:3]]
        arguments = [*grads, *layer, *expected[3:]]
        assert_close(kernels.lstm_layer_back(*arguments), kernels.lstm_layer_back.__wrapped__(*arguments))
        arguments[0] = np.broadcast_to(np.array(0.5, dtype), expected[0].shape)
        assert_close(kernels.lstm_layer_back(*arguments), kernels.lstm_layer_back.__wrapped__(*arguments))


def test_large_numbers_saturate() -> None:
    layer = [*make_layer("float32", 3, 2, 4, 5, (True, True)), None, False]
    layer[5] = np.array([1e4, -1e4, np.inf, -np.inf] * 5, "float32")
    with np.errstate(all="ignore"):
        assert_close(kernels.lstm_layer(*layer)[:3], kernels.lstm_layer.__wrapped__(*layer)[:3])


def test_packed_sequences_are_left_to_the_reference() -> None:
    layer = make_layer("float32", 5, 3, 4, 6, (True, True))
    layer[0] = layer[0].reshape(-1, 4)[:8]
    arguments = [*layer, (3, 3, 2), False]
    assert_close(kernels.lstm_layer(*arguments), kernels.lstm_layer.__wrapped__(*arguments))


def test_threads_do_not_change_a_bit() -> None:
    layer = [*make_layer("float32", 20, 64, 64, 128, (True, True)), None, False]
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            forward = kernels.lstm_layer(*layer)
            results.append(forward + kernels.lstm_layer_back(*forward[:3], *layer, *forward[3:]))
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(actual, expected)


def other_layer(kind: str, dtype: str, sizes: tuple[int, int, int, int], biases: bool, reverse: bool) -> list[Any]:
    """The arguments of gru_layer or rnn_layer."""
    steps, batch, width, size = sizes
    generator = np.random.default_rng(0)
    gates = 3 if kind == "gru" else 1
    shapes = [(steps, batch, width), (batch, size), (gates * size, width), (gates * size, size)]
    # Larger weights would make of each rounding a difference that grows from step to step.
    arrays: list[Any] = [(generator.standard_normal(s) * 0.5 / np.sqrt(s[-1])).astype(dtype) for s in shapes]
    arrays += [generator.standard_normal(gates * size).astype(dtype) if biases else None for _ in range(2)]
    return [*arrays, *([] if kind == "gru" else [kind]), None, reverse]


def other_kernels(kind: str) -> tuple[Any, Any]:
    if kind == "gru":
        return kernels.gru_layer, kernels.gru_layer_back
    return kernels.rnn_layer, kernels.rnn_layer_back


def saved_by(kind: str, results: Any) -> tuple[Any, ...]:
    return results[2:] if kind == "gru" else (results[0], results[2])


kinds = pytest.mark.parametrize("kind", ["gru", "tanh", "relu"])


@kinds
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 3, 4, 6), (7, 16, 20, 33), (12, 2, 64, 64)])
def test_other_layers_equal_the_reference(
    kind: str, dtype: str, reverse: bool, biases: bool, sizes: tuple[int, int, int, int]
) -> None:
    forward, back = other_kernels(kind)
    layer = other_layer(kind, dtype, sizes, biases, reverse)
    expected = forward.__wrapped__(*layer)
    assert_close(forward(*layer), expected)
    generator = np.random.default_rng(1)
    grads = [generator.standard_normal(part.shape).astype(dtype) for part in expected[:2]]
    arguments = [*grads, *layer, *saved_by(kind, expected)]
    assert_close(back(*arguments), back.__wrapped__(*arguments))
    arguments[0] = np.broadcast_to(np.array(0.5, dtype), expected[0].shape)
    assert_close(back(*arguments), back.__wrapped__(*arguments))


@kinds
def test_batches_may_come_first(kind: str) -> None:
    forward, back = other_kernels(kind)
    layer = other_layer(kind, "float32", (5, 7, 4, 6), True, False)
    expected = forward(*layer)
    gradients = back(*expected[:2], *layer, *saved_by(kind, expected))
    layer[0] = np.ascontiguousarray(layer[0].swapaxes(0, 1)).swapaxes(0, 1)
    for actual, other in zip(forward(*layer), expected, strict=True):
        np.testing.assert_array_equal(actual, other)
    for actual, other in zip(back(*expected[:2], *layer, *saved_by(kind, expected)), gradients, strict=True):
        np.testing.assert_array_equal(actual, other)


@kinds
def test_threads_do_not_change_a_bit_of_other_layers(kind: str) -> None:
    forward, back = other_kernels(kind)
    layer = other_layer(kind, "float32", (20, 64, 64, 128), True, False)
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            made = forward(*layer)
            results.append(made + back(*made[:2], *layer, *saved_by(kind, made)))
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(actual, expected)


@kinds
def test_nan_of_a_sequence_stays_in_it(kind: str) -> None:
    forward, _ = other_kernels(kind)
    layer = other_layer(kind, "float32", (4, 6, 4, 6), True, False)
    layer[0][1, 2, 0] = np.nan
    output = forward(*layer)[0]
    assert np.isnan(output[1:, 2]).all()
    assert np.isfinite(np.delete(output, 2, 1)).all()


@kinds
def test_other_packed_sequences_are_left_to_the_reference(kind: str) -> None:
    forward, _ = other_kernels(kind)
    layer = other_layer(kind, "float32", (5, 3, 4, 6), True, False)
    layer[0] = layer[0].reshape(-1, 4)[:8]
    layer[-2] = (3, 3, 2)
    assert_close(forward(*layer), forward.__wrapped__(*layer))
