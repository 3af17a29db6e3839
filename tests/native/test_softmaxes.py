"""The compiled softmaxes against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import softmaxes
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

MAPS = ["softmax", "log_softmax"]
GRADIENTS = ["softmax_backward_data", "log_softmax_backward_data"]
SIZES = [1, 7, 8, 9, 31, 32, 33, 1000, 40000]


def results(name: str, values: Any, dim: int) -> Any:
    """What a gradient is taken of."""
    return getattr(softmaxes, name.removesuffix("_backward_data")).__wrapped__(values, dim)


@dtypes
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MAPS)
def test_softmax_of_rows(name: str, size: int, dtype: Any) -> None:
    assert_as_reference(getattr(softmaxes, name), normal((3, size), dtype) * dtype(5), 1)


@dtypes
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_of_rows(name: str, size: int, dtype: Any) -> None:
    values = results(name, normal((3, size), dtype), 1)
    grad = normal((3, size), dtype, seed=1)
    assert_as_reference(getattr(softmaxes, name), grad, values, 1, tolerance=100 if size > 1000 else 16)


@dtypes
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 33, 70), (3, 1, 16), (1, 9, 1)])
@pytest.mark.parametrize("name", MAPS)
def test_softmax_along_any_dimension(name: str, shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    assert_as_reference(getattr(softmaxes, name), normal(shape, dtype), dim)


@dtypes
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 33, 70), (3, 1, 16), (1, 9, 1)])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_along_any_dimension(name: str, shape: tuple[int, ...], dim: int, dtype: Any) -> None:
    values = results(name, normal(shape, dtype), dim)
    assert_as_reference(getattr(softmaxes, name), normal(shape, dtype, seed=1), values, dim, tolerance=16)


@dtypes
@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
@pytest.mark.parametrize("name", MAPS)
def test_softmax_of_other_memory(name: str, layout: str, dtype: Any) -> None:
    actual = assert_as_reference(getattr(softmaxes, name), layouts(normal((6, 10), dtype))[layout], 1)
    assert actual.flags.c_contiguous


@dtypes
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_of_expanded_memory(name: str, dtype: Any) -> None:
    values = results(name, normal((6, 10), dtype), 1)
    grad = np.broadcast_to(normal((10,), dtype), (6, 10))
    assert_as_reference(getattr(softmaxes, name), grad, values, 1, tolerance=16)


@dtypes
@pytest.mark.parametrize(
    "row",
    [
        [0.0, np.nan, 1.0],
        [np.inf, 0.0, 1.0],
        [-np.inf, 0.0, 1.0],
        [-np.inf, -np.inf, -np.inf],
        [1e30, 0.0, -1e30],
        [0.0, -95.0, -120.0],
        [np.inf, -np.inf, np.nan],
        [np.nan, np.nan, np.nan],
        [3.0, 3.0, 3.0],
    ],
)
@pytest.mark.parametrize("name", [*MAPS, "logsumexp"])
@pytest.mark.parametrize("repeats", [1, 30])
def test_special_values(name: str, row: list[float], repeats: int, dtype: Any) -> None:
    values = np.array([row * repeats], dtype)
    dim: Any = (1,) if name == "logsumexp" else 1
    with np.errstate(all="ignore"):
        assert_as_reference(getattr(softmaxes, name), values, dim)


@dtypes
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_logsumexp(size: int, keepdim: bool, dtype: Any) -> None:
    assert_as_reference(softmaxes.logsumexp, normal((3, size), dtype), (1,), keepdim)


@dtypes
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dims", [None, (), (0,), (1,), (0, 1), (1, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 33, 70)])
def test_logsumexp_over_neighbouring_dimensions(shape: Any, dims: Any, keepdim: bool, dtype: Any) -> None:
    assert_as_reference(softmaxes.logsumexp, normal(shape, dtype), dims, keepdim)


@dtypes
def test_small_probabilities_are_subnormal_not_zero(dtype: Any) -> None:
    distance = -100 if dtype == np.float32 else -740
    actual = softmaxes.softmax(np.array([0.0, distance], dtype), 0)
    assert 0 < actual[1] < np.finfo(dtype).smallest_normal


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("softmax", (np.zeros((2, 3), np.float16), 0)),
        ("softmax", (np.zeros((0, 3), np.float32), 1)),
        ("softmax", (np.zeros((), np.float32), 0)),
        ("softmax", (np.float32(1), 0)),
        ("softmax", (np.zeros(3, np.float32), -1)),
        ("softmax", (np.zeros(3, np.float32), 0, 1)),
        ("softmax", (np.zeros(3, ">f4"), 0)),
        ("softmax_backward_data", (np.zeros(3, np.float32), np.zeros(3, np.float64), 0)),
        ("softmax_backward_data", (np.zeros(3, np.float32), np.zeros((1, 3), np.float32), 0)),
        ("logsumexp", (np.zeros((2, 3, 4), np.float32), (0, 2))),
        ("logsumexp", (np.zeros((2, 3), np.float32), (2,))),
    ],
)
def test_what_is_left_to_the_reference(name: str, arguments: tuple[Any, ...]) -> None:
    assert declines(getattr(softmaxes, name), *arguments)


def test_arguments_by_keyword() -> None:
    values, kernel = normal((2, 3), np.float32), getattr(softmaxes, MAPS[0])
    assert not declines(kernel, values, dim=1)
    assert declines(kernel, values, 1, other=2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        kernel(values, 1, other=2)


@dtypes
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("name", MAPS)
def test_threads_do_not_change_the_result(name: str, threads: int, dim: int, dtype: Any) -> None:
    values = normal((400, 300), dtype)
    kernel = getattr(softmaxes, name)
    np.testing.assert_array_equal(with_threads(threads, kernel, values, dim), with_threads(1, kernel, values, dim))
