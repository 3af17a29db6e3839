"""Evenly spaced numbers, rounded as PyTorch 2.13 rounds them (recorded)."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (pullback.float32, [0.00100100099, 0.513513505, 0.514514506, 0.8008008]),
        (pullback.float64, [0.001001001001001001, 0.5135135135135135, 0.5145145145145145, 0.8008008008008008]),
        (pullback.bfloat16, [0.00099945068359375, 0.00299072265625, 0.0059814453125, 0.69921875]),
        (pullback.float16, [0.0010013580322265625, 0.0030040740966796875, 0.006008148193359375, 0.70068359375]),
    ],
)
def test_products_are_fused_with_sums_but_for_16_bits(dtype: Any, expected: list[float]) -> None:
    numbers = pullback.linspace(0, 1, 1000, dtype=dtype)
    places = [1, 513, 514, 800] if dtype.itemsize > 2 else [1, 3, 6, 700]
    assert numbers[places].tolist() == pullback.tensor(expected, dtype=dtype).tolist()
