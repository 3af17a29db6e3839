"""Compiled attention against the NumPy kernels, over sizes, masks and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import attention

kernels: Any = attention

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

SIZES = [
    (2, 3, 5, 7, 4, 6),
    (1, 2, 130, 70, 33, 17),
    (2, 2, 64, 200, 16, 16),
    (1, 1, 1, 1, 1, 1),
    (2, 4, 128, 128, 32, 32),
]
MASKS = ["none", "matrix of truth", "numbers", "row of truth", "nothing seen"]


def random_heads(seed: int, shape: tuple[int, ...], dtype: str, is_permuted: bool) -> Any:
    made = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return np.ascontiguousarray(made.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) if is_permuted else made


def make_mask(kind: str, batch: int, length: int, keys: int, dtype: str) -> Any:
    generator = np.random.default_rng(9)
    return {
        "none": None,
        "matrix of truth": generator.random((length, keys)) > 0.3,
        "numbers": generator.standard_normal((batch, 1, length, keys)).astype(dtype),
        "row of truth": generator.random(keys) > 0.5,
        "nothing seen": np.zeros((length, 1), bool),
    }[kind]


@pytest.mark.parametrize("is_permuted", [False, True])
@pytest.mark.parametrize("mask_kind", MASKS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_equals_the_reference(dtype: str, is_causal: bool, mask_kind: str, is_permuted: bool) -> None:
    tolerance = 100 * float(np.finfo(dtype).eps)
    for batch, heads, length, keys, width, value_width in SIZES:
        q = random_heads(1, (batch, heads, length, width), dtype, is_permuted)
        k = random_heads(2, (batch, heads, keys, width), dtype, is_permuted)
        v = random_heads(3, (batch, heads, keys, value_width), dtype, is_permuted)
        grad = random_heads(4, (batch, heads, length, value_width), dtype, is_permuted)
        arguments = (q, k, v, make_mask(mask_kind, batch, length, keys, dtype), is_causal, 0.3)
        actual, expected = kernels.attention_fused(*arguments), kernels.attention_fused.__wrapped__(*arguments)
        assert min(length, heads) == 1 or actual[0].strides == expected[0].strides
        actual += kernels.attention_back(grad, *arguments, *expected)
        expected += kernels.attention_back.__wrapped__(grad, *arguments, *expected)
        for ours, reference in zip(actual, expected, strict=True):
            assert ours.dtype == reference.dtype
            np.testing.assert_allclose(ours, reference, rtol=tolerance, atol=tolerance)


def test_nan_spreads_to_its_row_only() -> None:
    q, k, v = (random_heads(seed, (1, 2, 20, 8), "float32", False) for seed in (1, 2, 3))
    q[0, 1, 5, 3] = np.nan
    output, normalizer = kernels.attention_fused(q, k, v, None, False, 0.5)
    rows = np.isnan(output).all(-1)
    assert rows[0, 1, 5]
    assert rows.sum() == 1
    assert np.isnan(normalizer).sum() == 1


def test_what_is_not_served_is_left_to_the_reference() -> None:
    q = random_heads(1, (1, 2, 6, 8), "float32", False)
    half = q.astype("float16")
    assert kernels.attention_fused(half, half, half, None, False, 1.0)[0].dtype == "float16"
    apart = q[..., ::2]
    expected = kernels.attention_fused.__wrapped__(apart, apart, apart, None, True, 1.0)[0]
    np.testing.assert_array_equal(kernels.attention_fused(apart, apart, apart, None, True, 1.0)[0], expected)


def test_threads_do_not_change_a_bit() -> None:
    q, k, v = (random_heads(seed, (2, 4, 128, 32), "float32", False) for seed in (1, 2, 3))
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            forward = kernels.attention_fused(q, k, v, None, True, 0.2)
            results.append(forward + kernels.attention_back(v, q, k, v, None, True, 0.2, *forward))
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(actual, expected)
