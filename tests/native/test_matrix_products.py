"""Compiled products of matrices against NumPy's, over sizes, layouts and dtypes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import matrix_products

kernels: Any = matrix_products

pytestmark = [
    pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built"),
    pytest.mark.usefixtures("instruction_set"),
]

SIZES = [
    (1, 1, 1), (1, 32, 16), (2, 3, 4), (3, 17, 5), (7, 8, 9), (16, 4, 32), (9, 33, 15), (5, 10, 300), (4, 16, 17),
    (64, 10, 129), (13, 48, 257), (40, 50, 600), (300, 20, 16), (130, 260, 520),
]  # fmt: skip
DTYPES = ["float32", "float64"]


def random_matrix(rows: int, columns: int, dtype: str, layout: str, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    if layout == "transposed":
        return generator.standard_normal((columns, rows)).astype(dtype).T
    if layout == "strided":
        return generator.standard_normal((2 * rows, columns + 3)).astype(dtype)[::2, 1 : columns + 1]
    if layout == "scattered":
        return generator.standard_normal((2 * rows, 2 * columns)).astype(dtype)[::2, ::2]
    if layout == "broadcast":
        return np.broadcast_to(generator.standard_normal(columns).astype(dtype), (rows, columns))
    return generator.standard_normal((rows, columns)).astype(dtype)


def assert_close(actual: Any, expected: Any, depth: int) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.flags.c_contiguous
    tolerance = np.finfo(actual.dtype).eps * 4 * max(1, depth) ** 0.5 * 4
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * 4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", ["plain", "transposed", "strided", "scattered", "broadcast"])
@pytest.mark.parametrize("left", ["plain", "transposed", "strided", "scattered", "broadcast"])
def test_mm_equals_numpy(dtype: str, left: str, right: str) -> None:
    for rows, columns, depth in SIZES:
        a = random_matrix(rows, depth, dtype, left, 1)
        b = random_matrix(depth, columns, dtype, right, 2)
        assert_close(kernels.mm(a, b), a @ b, depth)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_products_are_packed_right(dtype: str) -> None:
    for a, b in [
        (random_matrix(300, 700, dtype, "transposed", 1)[:, :600], random_matrix(600, 1100, dtype, "plain", 2)),
        (random_matrix(1100, 100, dtype, "transposed", 1), random_matrix(100, 121, dtype, "transposed", 2)),
    ]:
        assert_close(kernels.mm(a, b), a @ b, a.shape[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_without_elements(dtype: str) -> None:
    for rows, columns, depth in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 0)]:
        a, b = np.ones((rows, depth), dtype), np.ones((depth, columns), dtype)
        np.testing.assert_array_equal(kernels.mm(a, b), a @ b)
    weight, bias = np.ones((4, 0), dtype), np.arange(4, dtype=dtype)
    np.testing.assert_array_equal(kernels.linear_bias(np.ones((3, 0), dtype), weight, bias), np.tile(bias, (3, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(dtype: str) -> None:
    for size in (0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 20000):
        generator = np.random.default_rng(size)
        u, v = generator.standard_normal((2, size)).astype(dtype)
        tolerance = np.finfo(dtype).eps * 30 * max(size, 1) ** 0.5
        actual = kernels.dot(u, v)
        assert isinstance(actual, np.ndarray | np.generic)
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, u.astype("f8") @ v.astype("f8"), atol=tolerance)
    for rows, depth in ((1, 1), (5, 3), (8, 32), (33, 65), (4, 300)):
        for layout in ("plain", "transposed", "strided", "scattered"):
            a = random_matrix(rows, depth, dtype, layout, 3)
            for step in (1, 2, -1):
                v = np.random.default_rng(4).standard_normal(2 * depth).astype(dtype)[::step][:depth]
                assert_close(kernels.mv(a, v), np.ascontiguousarray(a @ v), depth)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_infinity_spread_as_they_should(dtype: str) -> None:
    a, b = random_matrix(9, 20, dtype, "plain", 1), random_matrix(20, 33, dtype, "plain", 2)
    a[2, 3], a[4, 5], b[7, 8] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for left, right in [
            (a, b),
            (np.asfortranarray(a), b),
            (a, np.asfortranarray(b)),
            (a[:2], np.asfortranarray(b)),
        ]:
            np.testing.assert_allclose(kernels.mm(left, right), left @ right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches(dtype: str) -> None:
    generator = np.random.default_rng(0)
    for first, second in [
        ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((4, 5), (3, 5, 6)),
        ((2, 3, 4, 5), (5, 6)), ((0, 4, 5), (0, 5, 6)), ((32, 64, 16), (32, 16, 64)),
    ]:  # fmt: skip
        a, b = generator.standard_normal(first).astype(dtype), generator.standard_normal(second).astype(dtype)
        assert_close(kernels.matmul_batched(a, b), a @ b, first[-1])
    a = generator.standard_normal((6, 2, 7, 9)).astype(dtype).transpose(1, 2, 0, 3)[0]
    b = generator.standard_normal((7, 5, 9)).astype(dtype).transpose(0, 2, 1)
    assert_close(kernels.bmm(a, b), np.ascontiguousarray(a @ b), 9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(7,), (2, 3), (1,), (0,), (64,)])
def test_linear_layer(dtype: str, lead: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    for wide in (4, 20, 100):
        x = generator.standard_normal((*lead, wide)).astype(dtype)
        weight, bias = generator.standard_normal((6, wide)).astype(dtype), generator.standard_normal(6).astype(dtype)
        grad = generator.standard_normal((*lead, 6)).astype(dtype)
        for name, arguments in [
            ("linear_bias", (x, weight, bias)), ("linear_bias_folded", (x, weight, bias)),
            ("linear_product", (x, weight)), ("linear_product_folded", (x, weight)),
            ("linear_grad_input", (grad, weight)), ("linear_grad_weight", (grad, x)), ("linear_grad_bias", (grad,)),
        ]:  # fmt: skip
            kernel = getattr(kernels, name)
            assert_close(kernel(*arguments), kernel.__wrapped__(*arguments), wide)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_batches(dtype: str) -> None:
    generator = np.random.default_rng(0)
    for first, second in [((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((2, 3, 4, 5), (3, 5, 6)), ((2, 4, 5), (5,))]:
        a, b = generator.standard_normal(first).astype(dtype), generator.standard_normal(second).astype(dtype)
        grad = generator.standard_normal(np.shape(a @ b)).astype(dtype)
        for kernel, arguments in [
            (kernels.matmul_grad_input, (grad, first, b)), (kernels.matmul_grad_other, (grad, a, second)),
        ]:  # fmt: skip
            expected = kernel.__wrapped__(*arguments)
            actual = kernel(*arguments)
            assert actual.shape == expected.shape
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_addmm() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((5, 7)), generator.standard_normal((7, 3))
    for shape in [(3,), (5, 3), (1, 3), (5, 1), ()]:
        start = generator.standard_normal(shape)
        for options in ({}, {"beta": 1, "alpha": 1}, {"beta": 2, "alpha": 1}, {"beta": 1, "alpha": 0.5}):
            np.testing.assert_allclose(
                kernels.addmm(start, a, b, **options), kernels.addmm.__wrapped__(start, a, b, **options)
            )


def test_a_product_of_a_matrix_with_itself_is_symmetric() -> None:
    a = np.random.default_rng(0).standard_normal((33, 700)).astype("float32")
    for product in (kernels.mm(a, a.T), kernels.linear_product(a, a), kernels.linear_product_folded(a[None], a)[0]):
        np.testing.assert_array_equal(product, product.T)


def test_wrong_arguments_are_refused_as_by_the_reference() -> None:
    a, b = np.ones((2, 3), "f4"), np.ones((4, 5), "f4")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        kernels.mm(a, b)
    with pytest.raises(RuntimeError, match="same dtype"):
        kernels.mm(a, np.ones((3, 2)))
    with pytest.raises(RuntimeError, match="must be a matrix"):
        kernels.mm(a, np.ones(3, "f4"))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        kernels.linear_bias(a, b, np.ones(4, "f4"))
    with pytest.raises(RuntimeError, match="expanded size"):
        kernels.linear_bias(a, np.ones((4, 3), "f4"), np.ones(5, "f4"))
    with pytest.raises(TypeError):
        kernels.mm(a)


def test_other_dtypes_are_left_to_numpy() -> None:
    a = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(kernels.mm(a, a.T), a @ a.T)
    z = a + 1j
    np.testing.assert_array_equal(kernels.mm(z, z.T), z @ z.T)
    swapped = a.astype(">f4")
    np.testing.assert_array_equal(kernels.mm(swapped, swapped.T), a @ a.T)


def test_threads_do_not_change_a_bit() -> None:
    a, b = random_matrix(200, 300, "float32", "plain", 1), random_matrix(300, 257, "float32", "plain", 2)
    tall = random_matrix(2000, 64, "float32", "plain", 3)
    batch = np.random.default_rng(4).standard_normal((16, 64, 64)).astype("float32")
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            results.append([kernels.mm(a, b), kernels.mm(tall, tall[:64]), kernels.bmm(batch, batch)])
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_several_python_threads_multiply_at_once() -> None:
    a, b = random_matrix(300, 300, "float32", "plain", 1), random_matrix(300, 300, "float32", "transposed", 2)
    expected = kernels.mm(a, b)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(kernels.mm(a, b), expected):
                wrong.append(1)

    native.set_num_threads(2)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        native.set_num_threads(native.usable_threads())
    assert not wrong
