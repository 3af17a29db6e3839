"""Compiled takes and sums at positions against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import along_dim, embeddings, indexing, scattering
from pullback.recording import array_formulas

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

formulas = ("put_along", "add_along", "put_reduced", "index_select_back")
kernels: dict[str, Any] = {
    **{name: getattr(array_formulas, name) for name in formulas},
    **vars(along_dim), **vars(embeddings), **vars(indexing), **vars(scattering),
}  # fmt: skip
DTYPES = ["float32", "float64"]


def random_array(seed: int, *shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def random_positions(seed: int, below: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, below, shape)


def assert_same(name: str, *arguments: Any, **options: Any) -> None:
    actual, expected = kernels[name](*arguments, **options), kernels[name].__wrapped__(*arguments, **options)
    assert isinstance(actual, np.ndarray)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)


def assert_same_error(name: str, *arguments: Any) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        kernels[name].__wrapped__(*arguments)
    with pytest.raises(expected.type) as actual:
        kernels[name](*arguments)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 7, 128])
def test_embedding(dtype: str, width: int) -> None:
    weight = random_array(1, 30, width, dtype=dtype)
    for shape in [(), (0,), (1,), (50,), (4, 5), (400,)]:
        indices = random_positions(2, 30, *shape)
        indices = np.asarray(indices)
        assert_same("embedding", weight, indices)
        assert_same("embedding", weight, indices.astype("int32"), 3, False, False)
        grad = random_array(3, *shape, width, dtype=dtype)
        for padding in (-1, 3):
            assert_same("embedding_back", grad, indices, 30, padding, False)
            assert_same("embedding_back", grad, indices, 30, padding, True)
    assert_same("embedding", weight[::2], random_positions(2, 15, 6))
    assert_same_error("embedding", weight, np.array([0, 30]))
    assert_same_error("embedding", weight, np.array([-1, 3]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_positions_along_a_dimension(dtype: str, dim: int) -> None:
    array = random_array(1, 5, 6, 7, dtype=dtype)
    positions = random_positions(2, array.shape[dim], 9)
    source_shape = [*array.shape[:dim], 9, *array.shape[dim + 1 :]]
    source = random_array(3, *source_shape, dtype=dtype)
    assert_same("index_select", array, dim, positions)
    assert_same("index_select", array.transpose(2, 0, 1), dim, positions % 5)
    assert_same("index_select_back", source, array.shape, dim, positions)
    assert_same("index_add", array, dim, positions, source)
    assert_same("index_add", array, dim, positions, source, alpha=2)
    assert_same("index_add", array, dim, positions[:0], np.take(source, [], dim))
    for wrong in (np.array([0, array.shape[dim]]), np.array([-1, 0])):
        assert_same_error("index_select", array, dim, wrong)
        assert_same_error("index_add", array, dim, wrong, np.take(source, [0, 1], dim))


@pytest.mark.parametrize("dtype", [*DTYPES, "int64", "bool"])
def test_indexing_by_one_array(dtype: str) -> None:
    array = random_array(1, 5, 6).astype(dtype)
    for dim in (0, 1):
        for positions in (
            random_positions(2, 5, 4),
            -1 - random_positions(2, 5, 3, 2),
            np.zeros((0,), "int64"),
            np.array(2),
        ):
            assert_same("index", array, [positions], (dim,))
        assert_same_error("index", array, [np.array([6])], (dim,))
        assert_same_error("index", array, [np.array([-7])], (dim,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter_add(dtype: str, dim: int) -> None:
    array = random_array(1, 4, 5, 6, dtype=dtype)
    for length in (1, 3, 9):
        shape = [*array.shape[:dim], length, *array.shape[dim + 1 :]]
        index = random_positions(2, array.shape[dim], *shape)
        source = random_array(3, *shape, dtype=dtype)
        assert_same("gather", array, dim, index)
        assert_same("scatter_add", array, dim, index, source)
    part = random_positions(2, array.shape[dim], 2, 3, 4)
    assert_same("gather", array, dim, part)
    assert_same("scatter_add", array, dim, part, random_array(3, 4, 5, 6, dtype=dtype))
    assert_same_error("gather", array, dim, np.full((4, 5, 6), 6))
    assert_same_error("scatter_add", array, dim, np.full((4, 5, 6), -1), array)


def test_one_hot() -> None:
    for shape in [(), (0,), (3,), (2, 4)]:
        assert_same("one_hot_rows", np.asarray(random_positions(1, 5, *shape)), 5)


def test_threads_do_not_change_a_bit() -> None:
    grad, indices = random_array(1, 4000, 64), random_positions(2, 50, 4000)
    results = []
    try:
        for count in (1, 2, 8):
            native.set_num_threads(count)
            results.append(kernels["embedding_back"](grad, indices, 50, -1, False))
    finally:
        native.set_num_threads(native.usable_threads())
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


INDEXED = [
    ((6,), (0,)), ((6, 5), (0,)), ((6, 5), (1,)), ((6, 5), (0, 1)), ((4, 6, 5), (0, 1)), ((4, 6, 5), (1, 2)),
    ((4, 6, 5), (0, 1, 2)), ((2, 3, 4, 5), (1, 2)), ((4, 6, 5), (0, 2)), ((300, 200), (0, 1)), ((3, 300), (1,)),
]  # fmt: skip


def indices_for(shape: tuple[int, ...], dims: tuple[int, ...], *size: int) -> list[Any]:
    return [np.random.default_rng(dim).integers(-shape[dim], shape[dim], size) for dim in dims]


def taken_shape(shape: tuple[int, ...], dims: tuple[int, ...], indices: list[Any]) -> tuple[int, ...]:
    taken: tuple[int, ...] = kernels["index"].__wrapped__(np.zeros(shape), indices, dims).shape
    return taken


@pytest.mark.parametrize("dtype", [*DTYPES, "int64", "bool", "int8"])
@pytest.mark.parametrize(("shape", "dims"), INDEXED)
@pytest.mark.parametrize("size", [(1,), (7,), (3, 4), (2000,)])
def test_index(dtype: str, shape: tuple[int, ...], dims: tuple[int, ...], size: tuple[int, ...]) -> None:
    assert_same("index", (random_array(0, *shape) * 9).astype(dtype), indices_for(shape, dims, *size), dims)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dims"), INDEXED)
@pytest.mark.parametrize("size", [(1,), (7,), (3, 4), (2000,)])
def test_index_back(dtype: str, shape: tuple[int, ...], dims: tuple[int, ...], size: tuple[int, ...]) -> None:
    indices = indices_for(shape, dims, *size)
    grad = random_array(1, *taken_shape(shape, dims, indices), dtype=dtype)
    assert_same("index_back", grad, shape, indices, dims)
    assert_same("index_back", np.broadcast_to(grad[:1], grad.shape), shape, indices, dims)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
@pytest.mark.parametrize(("shape", "dims"), INDEXED)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(dtype: str, shape: tuple[int, ...], dims: tuple[int, ...], accumulate: bool) -> None:
    indices = indices_for(shape, dims, 40)
    whole = taken_shape(shape, dims, indices)
    for wanted in (whole, (1,) * len(whole), (), whole[1:], (1, *whole[1:])):
        values = (random_array(1, *wanted) * 9).astype(dtype)
        actual, expected = ((random_array(2, *shape) * 9).astype(dtype) for _ in range(2))
        kernels["index_put_into"](actual, indices, dims, values, accumulate)
        kernels["index_put_into"].__wrapped__(expected, indices, dims, values, accumulate)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_an_index_out_of_range_is_named_as_by_the_reference() -> None:
    x = random_array(0, 4, 5)
    for indices in ([np.array([4]), np.array([0])], [np.array([0]), np.array([-6])]):
        assert_same_error("index", x, indices, (0, 1))
        assert_same_error("index_back", x[:1, :1], x.shape, indices, (0, 1))
        assert_same_error("index_put_into", x, indices, (0, 1), np.ones(1, np.float32), False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 4, 5), (200, 300)])
def test_elements_along_a_dimension(dtype: str, shape: tuple[int, ...]) -> None:
    for dim in range(len(shape)):
        x = random_array(0, *shape, dtype=dtype)
        order = np.argsort(x, dim)
        repeated = order // 2
        assert_same("take_along", x, repeated, dim)
        assert_same("put_along", x, order, shape, dim)
        assert_same("add_along", x, repeated, shape, dim)
        assert_same("add_along", x.copy(order="F"), repeated, shape, dim)
        assert_same("scatter", x, dim, order, x + 1)
        first = np.take(order, [0], dim)
        assert_same("put_reduced", np.take(x, [0], dim), first, shape, dim, True)
        assert_same("put_reduced", np.squeeze(np.take(x, [0], dim), dim), np.squeeze(first, dim), shape, dim, False)
