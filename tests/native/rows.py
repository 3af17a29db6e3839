"""What the tests of compiled kernels over rows share: inputs of every kind, and the comparison with the reference."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
import pytest

import pullback.native

needs_extension = pytest.mark.skipif(pullback.native.extension is None, reason="the compiled kernels are not built")
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def normal(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Numbers of the normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def layouts(array: Any) -> dict[str, Any]:
    """The same numbers in other memory: row-major, transposed, with gaps, reversed."""
    gaps = np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    gaps[..., ::2] = array
    backward = np.ascontiguousarray(array[..., ::-1])
    return {
        "plain": array,
        "transposed": np.ascontiguousarray(array.T).T,
        "gaps": gaps[..., ::2],
        "reversed": backward[..., ::-1],
    }


def assert_as_reference(kernel: Any, *arguments: Any, tolerance: float = 8, **keywords: Any) -> Any:
    """Compare shapes, dtypes and values; `tolerance` counts roundings of the largest finite number of a result."""
    actual = kernel(*arguments, **keywords)
    expected = kernel.__wrapped__(*arguments, **keywords)
    pairs = [(actual, expected)] if not isinstance(expected, tuple) else list(zip(actual, expected, strict=True))
    for left, right in pairs:
        _assert_close(left, right, tolerance)
    return actual


def _assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    if expected is None:
        assert actual is None
        return
    assert type(actual) is np.ndarray
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    bound = tolerance * np.finfo(actual.dtype).eps * (finite.max() if finite.size else 1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=max(bound, np.finfo(actual.dtype).smallest_subnormal))


def declines(kernel: Any, *arguments: Any, **keywords: Any) -> bool:
    """Whether the reference was asked: its answer is remembered by a stand-in for it."""
    asked: list[bool] = []

    def reference(*_: Any, **__: Any) -> Any:
        asked.append(True)

    pullback.native.native(wraps(kernel.__wrapped__)(reference))(*arguments, **keywords)
    return bool(asked)


def with_threads(count: int, kernel: Any, *arguments: Any, **keywords: Any) -> Any:
    """The kernel's answer with so many threads."""
    pullback.native.set_num_threads(count)
    try:
        return kernel(*arguments, **keywords)
    finally:
        pullback.native.set_num_threads(1)
