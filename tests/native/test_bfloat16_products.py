"""The compiled products of bfloat16 against their references, which multiply in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.kernels import half_products
from pullback.kernels.orthogonalization import newton_schulz
from tests.native.rows import needs_extension

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = needs_extension
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
multiply: Any = half_products.multiply_halves
add_product: Any = half_products.add_product_of_halves


def matrix_of(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(BFLOAT16)


def assert_close(actual: Any, expected: Any) -> None:
    """Equal but for the order of sums: a step of bfloat16 where rounding was close."""
    assert actual.dtype == expected.dtype == BFLOAT16
    assert actual.shape == expected.shape
    scale = float(np.abs(expected.astype(np.float32)).max()) if expected.size else 1.0
    np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=2**-7, atol=scale * 2**-14)


SIZES = [
    (1, 1, 1),
    (1, 16, 2),
    (6, 64, 64),
    (7, 65, 3),
    (5, 17, 33),
    (13, 130, 31),
    (2, 33, 8),
    (3, 48, 5),
    (70, 70, 257),
]


@pytest.mark.parametrize(("rows", "columns", "depth"), SIZES)
def test_products_in_every_layout(rows: int, columns: int, depth: int) -> None:
    for a in (matrix_of(rows, depth), matrix_of(depth, rows).T, matrix_of(rows, 2 * depth)[:, ::2]):
        for b in (
            matrix_of(depth, columns, seed=1),
            matrix_of(columns, depth, seed=1).T,
            matrix_of(depth, columns)[::-1],
        ):
            assert_close(multiply(a, b), multiply.__wrapped__(a, b))


@pytest.mark.parametrize("size", [1, 6, 8, 63, 64, 65, 71, 136, 200])
def test_a_matrix_times_its_transpose_is_symmetric(size: int) -> None:
    a = matrix_of(size, 37)
    product = multiply(a, a.T)
    assert_close(product, multiply.__wrapped__(a, a.T))
    np.testing.assert_array_equal(product.view(np.uint16), product.T.view(np.uint16))


@pytest.mark.parametrize("batch", [(1,), (3,), (2, 3)])
def test_batches(batch: tuple[int, ...]) -> None:
    a, b = matrix_of(*batch, 7, 20), matrix_of(*batch, 20, 70)
    assert_close(multiply(a, b), multiply.__wrapped__(a, b))
    b = np.swapaxes(matrix_of(*batch, 9, 20), -1, -2)
    assert_close(multiply(a, b), multiply.__wrapped__(a, b))
    assert_close(multiply(a, b[:1]), multiply.__wrapped__(a, b[:1]))


@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 1), (1, -2.5), (3, 0.25), (0, 1)])
def test_a_product_is_added_before_it_is_rounded(beta: float, alpha: float) -> None:
    a, b = matrix_of(13, 20), matrix_of(20, 70)
    for start in (matrix_of(13, 70, seed=2), matrix_of(70, seed=2), matrix_of(70, 13).T):
        assert_close(add_product(start, a, b, beta, alpha), add_product.__wrapped__(start, a, b, beta, alpha))


def test_special_values() -> None:
    a, b = np.ones((2, 3), BFLOAT16), np.ones((3, 17), BFLOAT16)
    a[0, 0], b[0, 1], b[1, 2] = np.inf, 0, np.nan
    expected = multiply.__wrapped__(a, b).astype(np.float32)
    np.testing.assert_array_equal(multiply(a, b).astype(np.float32), expected)


def test_threads_do_not_change_results() -> None:
    a, b = matrix_of(200, 300), matrix_of(300, 500)
    count = pullback.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 8):
            pullback.set_num_threads(threads)
            results.append([multiply(a, b), multiply(a, a.T), multiply(a[None].repeat(9, 0), b[None].repeat(9, 0))])
    finally:
        pullback.set_num_threads(count)
    for others in results[1:]:
        for actual, expected in zip(others, results[0], strict=True):
            np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))


def test_mistakes_raise_what_the_reference_raises() -> None:
    with pytest.raises(ValueError, match="mismatch"):
        multiply(matrix_of(2, 3), matrix_of(4, 5))
    assert multiply(matrix_of(0, 3), matrix_of(3, 5)).shape == (0, 5)
    np.testing.assert_array_equal(multiply(matrix_of(2, 0), matrix_of(0, 5)).astype(np.float32), 0)


@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (64, 64), (70, 200)])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_newton_schulz(shape: tuple[int, int], steps: int) -> None:
    matrix = (matrix_of(*shape).astype(np.float32) / (shape[0] * shape[1]) ** 0.5).astype(BFLOAT16)
    kernel: Any = newton_schulz
    before = matrix.copy()
    actual = kernel(matrix, (3.4445, -4.775, 2.0315), steps).astype(np.float32)
    expected = kernel.__wrapped__(matrix, (3.4445, -4.775, 2.0315), steps).astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=0.05, atol=0.03)
    np.testing.assert_array_equal(matrix.view(np.uint16), before.view(np.uint16))
