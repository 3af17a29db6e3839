"""The compiled reductions against their NumPy references."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from pullback.kernels import broadcasting, extrema, norms, reductions, statistics
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

KERNELS: dict[str, Any] = {
    "sum": reductions.sum,
    "mean": reductions.mean,
    "amax": extrema.amax,
    "amin": extrema.amin,
    "norm": lambda input, dim, keepdim: norms.linalg_vector_norm(input, 2, dim, keepdim),
    "norm1": lambda input, dim, keepdim: norms.linalg_vector_norm(input, 1, dim, keepdim),
    "var": lambda input, dim, keepdim: statistics.var(input, dim, 1, keepdim),
    "std": lambda input, dim, keepdim: statistics.std(input, dim, 0, keepdim),
}
REFERENCES: dict[str, Any] = {
    "sum": lambda x, axis, keepdims: np.sum(x, axis, keepdims=keepdims),
    "mean": lambda x, axis, keepdims: np.mean(x, axis, keepdims=keepdims),
    "amax": lambda x, axis, keepdims: np.max(x, axis, keepdims=keepdims),
    "amin": lambda x, axis, keepdims: np.min(x, axis, keepdims=keepdims),
    "norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis, keepdims=keepdims)),
    "norm1": lambda x, axis, keepdims: np.sum(np.abs(x), axis, keepdims=keepdims),
    "var": lambda x, axis, keepdims: np.var(x, axis, ddof=1, keepdims=keepdims),
    "std": lambda x, axis, keepdims: np.std(x, axis, keepdims=keepdims),
}
ALL = pytest.mark.parametrize("name", KERNELS)


def assert_accurate(name: str, values: Any, dim: Any, keepdim: bool = False) -> Any:
    """Compare with the same in higher precision; an error is measured against the sum of sizes."""
    actual = KERNELS[name](values, dim, keepdim)
    wide = values.astype(np.longdouble)
    axis = tuple(range(values.ndim)) if dim in (None, ()) else dim
    expected = REFERENCES[name](wide, axis, keepdim)
    assert type(actual) is np.ndarray
    assert actual.dtype == values.dtype
    assert actual.shape == expected.shape
    assert actual.flags.c_contiguous
    scale = np.abs(wide).sum(axis, keepdims=keepdim) / (values.size / max(actual.size, 1) if name != "sum" else 1)
    bound = 4 * np.finfo(values.dtype).eps * (np.max(scale, initial=0) + np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)
    return actual


@dtypes
@pytest.mark.parametrize("size", [2, 7, 8, 9, 31, 63, 64, 65, 1000, 4095, 4097, 40000, 200000])
@ALL
def test_everything(name: str, size: int, dtype: Any) -> None:
    assert_accurate(name, normal((size,), dtype), None)


@dtypes
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (), None])
@pytest.mark.parametrize("shape", [(2, 3, 4), (70, 3, 300), (2, 140, 33)])
@ALL
def test_dimensions(name: str, shape: tuple[int, ...], dim: Any, keepdim: bool, dtype: Any) -> None:
    values = normal(shape, dtype)
    if name == "var" and values.size // KERNELS["sum"](values, dim, False).size < 2:
        values = np.concatenate((values, values), 1)
    assert_accurate(name, values, dim, keepdim)


@dtypes
@pytest.mark.parametrize("shape", [(100000, 3), (5000, 64), (300, 1000), (40000, 2), (3, 50000), (2, 1000, 300)])
@pytest.mark.parametrize("dim", [0, 1])
@ALL
def test_large(name: str, shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    assert_accurate(name, normal(shape, dtype), (dim,))


@dtypes
@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
@pytest.mark.parametrize("dim", [(0,), (1,), (0, 1), (0, 2), (2,), None])
@ALL
def test_other_memory(name: str, dim: Any, layout: str, dtype: Any) -> None:
    assert_accurate(name, layouts(normal((6, 5, 10), dtype))[layout], dim)


@dtypes
@ALL
def test_expanded_memory(name: str, dtype: Any) -> None:
    assert_accurate(name, np.broadcast_to(normal((10,), dtype), (6, 10)), (1,))


@pytest.mark.parametrize("shape", [(10_000_000,), (1000, 10000)])
def test_long_sums_of_float32_are_as_good_as_of_float64(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(shape, np.float32)
    expected = values.sum(dtype=np.float64)
    np.testing.assert_allclose(reductions.sum_all(values), expected, rtol=1e-7)
    np.testing.assert_allclose(
        reductions.sum(values.reshape(-1, 100), (0,)), values.reshape(-1, 100).sum(0, dtype=np.float64), rtol=2e-7
    )


@dtypes
@pytest.mark.parametrize("special", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, np.inf]])
@pytest.mark.parametrize("size", [3, 20, 3000])
@pytest.mark.parametrize("kernel", [reductions.sum, reductions.mean, extrema.amax, extrema.amin, statistics.var])
def test_special_values(kernel: Any, size: int, special: list[float], dtype: Any) -> None:
    values = normal((size, 2), dtype)
    values[-len(special) :, 0] = special
    with np.errstate(all="ignore"):
        assert_as_reference(kernel, values, (0,), tolerance=100)
        assert_as_reference(kernel, np.ascontiguousarray(values.T), (1,), tolerance=100)
        assert_as_reference(kernel, values, tolerance=100)


@dtypes
@pytest.mark.parametrize("kernel", [extrema.max_all, extrema.min_all, reductions.sum_all, reductions.mean_all])
@pytest.mark.parametrize("shape", [(), (1,), (8,), (3, 5), (40000,)])
def test_forms_without_dimensions(kernel: Any, shape: tuple[int, ...], dtype: Any) -> None:
    assert_as_reference(kernel, normal(shape, dtype), tolerance=200)


@dtypes
@pytest.mark.parametrize("shape", [(5,), (3, 40)])
def test_products(shape: tuple[int, ...], dtype: Any) -> None:
    values = 1 + normal(shape, dtype) / 10
    assert_as_reference(reductions.prod_all, values, tolerance=50)
    assert_as_reference(reductions.prod, values, 0, True)
    assert_as_reference(reductions.prod, values, len(shape) - 1, tolerance=50)


@dtypes
@pytest.mark.parametrize("kernel", [statistics.var, statistics.std, statistics.var_mean, statistics.std_mean])
@pytest.mark.parametrize("correction", [0, 1, 0.5, 7])
def test_moments(kernel: Any, correction: float, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        assert_as_reference(kernel, normal((5, 6), dtype), (1,), correction, True)
        assert_as_reference(kernel, normal((5, 6), dtype), (0,), correction)
        assert_as_reference(kernel, normal((5, 6), dtype), None, correction=correction)


@dtypes
@pytest.mark.parametrize(
    "target", [(4, 3, 5), (3, 5), (5,), (), (1, 5), (3, 1), (1, 1), (4, 1, 5), (1, 3, 1), (4, 1, 1), (1, 1, 5)]
)
def test_broadcasting_is_undone(target: tuple[int, ...], dtype: Any) -> None:
    grad = normal((4, 3, 5), dtype)
    assert_as_reference(broadcasting.sum_to, grad, target)
    assert_as_reference(broadcasting.sum_to_like, grad, target, np.dtype(dtype))
    assert_as_reference(broadcasting.sum_to, np.broadcast_to(dtype(0.5), (4, 3, 5)), target)


def test_a_gradient_of_the_right_shape_is_returned_itself() -> None:
    grad = np.ones((2, 3), np.float32)
    assert broadcasting.sum_to_like(grad, (2, 3), grad.dtype) is grad


@pytest.mark.parametrize(
    ("kernel", "arguments", "keywords"),
    [
        (reductions.sum, (np.ones(3, np.int32),), {}),
        (reductions.sum, (np.ones((0, 3), np.float32), (0,)), {}),
        (reductions.sum, (np.ones(3, np.float32),), {"dtype": np.dtype(np.float64)}),
        (reductions.sum, (np.ones((3, 2), np.float32), (2,)), {}),
        (reductions.sum, (np.ones((3, 2), np.float32), (0, 0)), {}),
        (reductions.sum, (np.float32(2),), {}),
        (reductions.sum, (np.ones(3, np.float32), None, False, None), {}),
        (extrema.amax, (np.ones((2, 0), np.float32), (1,)), {}),
        (norms.linalg_vector_norm, (np.ones(3, np.float32), 3), {}),
        (statistics.var, (np.ones((2, 3, 4), np.float32), (0, 2)), {}),
        (broadcasting.sum_to, (np.ones((2, 3), np.float32), (4,)), {}),
        (broadcasting.sum_to_like, (np.ones((2, 3), np.float32), (3,), np.dtype(np.float64)), {}),
    ],
)
def test_what_is_left_to_the_reference(kernel: Any, arguments: Any, keywords: Any) -> None:
    assert declines(kernel, *arguments, **keywords)


@pytest.mark.parametrize("kernel", [extrema.max_all, extrema.amax])
def test_errors_are_those_of_the_reference(kernel: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        kernel(np.ones((0, 2), np.float32))


@dtypes
@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("shape", [(500_000,), (1000, 300), (3, 100_000), (100_000, 3), (40, 50, 200)])
@ALL
def test_threads_do_not_change_the_result(name: str, shape: tuple[int, ...], threads: int, dtype: Any) -> None:
    values = normal(shape, dtype)
    for dim in [None, (0,), (len(shape) - 1,)]:
        single = with_threads(1, KERNELS[name], values, dim, False)
        np.testing.assert_array_equal(with_threads(threads, KERNELS[name], values, dim, False), single)


def test_python_threads_reduce_side_by_side() -> None:
    values = normal((300_000,), np.float32)
    expected = reductions.sum_all(values)
    wrong: list[Any] = []

    def work() -> None:
        wrong.extend(result for result in (reductions.sum_all(values) for _ in range(50)) if result != expected)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@dtypes
@pytest.mark.parametrize(
    "shape", [(1,), (7,), (9,), (130,), (5000,), (3, 5), (128, 130), (9, 1000), (40, 1001), (2, 3, 4)]
)
def test_extrema_nansums_and_limits_of_norms(dtype: Any, shape: tuple[int, ...]) -> None:
    plain = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    places = np.random.default_rng(1).random(shape)
    for value in (1.0, np.nan, np.inf, -np.inf):
        for chance in (0.01, 0.5):
            x = np.where(places < chance, np.asarray(value, dtype), plain)
            for dim in [None, *[(d,) for d in range(len(shape))]]:
                assert_as_reference(reductions.nansum, np.abs(x), dim)
                for order in (np.inf, -np.inf):
                    assert_as_reference(norms.linalg_vector_norm, x, order, dim)
                for keepdim in (False, True):
                    assert_as_reference(extrema.aminmax, x, dim=None if dim is None else dim[0], keepdim=keepdim)
