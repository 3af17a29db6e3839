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
