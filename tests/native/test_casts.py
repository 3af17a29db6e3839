"""The compiled casts between float32 and the floats of 16 bits against NumPy's, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backend import halves
from tests.native.rows import needs_extension

pytestmark = [needs_extension, pytest.mark.usefixtures("instruction_set")]
cast: Any = halves.cast_half
SINGLE, HALF = np.dtype(np.float32), np.dtype(np.float16)


def patterns() -> Any:
    """float32 numbers of every exponent, about every boundary of rounding, with both signs, infinite and NaN."""
    heads = np.arange(2**16, dtype=np.uint32) << 16
    tails = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (heads[:, None] | tails).reshape(-1).view(np.float32)


def assert_same_bits(actual: Any, expected: Any) -> None:
    assert type(actual) is np.ndarray
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(actual[~nan].view(np.uint8), expected[~nan].view(np.uint8))


def test_float16_is_rounded_as_by_numpy() -> None:
    with np.errstate(all="ignore"):
        assert_same_bits(cast(patterns(), HALF), patterns().astype(HALF))


def test_every_float16_is_widened() -> None:
    values = np.arange(2**16, dtype=np.uint16).view(HALF)
    assert_same_bits(cast(values, SINGLE), values.astype(SINGLE))


def test_bfloat16() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    with np.errstate(all="ignore"):
        assert_same_bits(cast(patterns(), bfloat16), patterns().astype(bfloat16))
    values = np.arange(2**16, dtype=np.uint16).view(bfloat16)
    assert_same_bits(cast(values, SINGLE), values.astype(SINGLE))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (8,), (9,), (3, 5), (50, 1000)])
def test_shapes(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(SINGLE)
    for array in (values, np.asfortranarray(values)[..., ::-1] if values.ndim else values):
        assert_same_bits(cast(array, HALF), np.asarray(array.astype(HALF)))
        assert_same_bits(cast(array.astype(HALF), SINGLE), np.asarray(array.astype(HALF).astype(SINGLE)))


@pytest.mark.parametrize("wanted", [np.float64, np.int16, np.complex64, np.float32])
def test_other_casts_are_left_to_numpy(wanted: Any) -> None:
    values = np.array([1.5, -2.5, 3.0], np.float32)
    assert_same_bits(cast(values, np.dtype(wanted)), values.astype(wanted))
    assert_same_bits(cast(values.astype(np.float64), HALF), values.astype(HALF))
