"""Compiled views and joins against the NumPy kernels: shapes, strides, memory, values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.backend import array_module
from pullback.kernels import indexing, joining, shape

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

kernels: dict[str, Any] = {**vars(array_module), **vars(shape), **vars(indexing), **vars(joining)}

ARRAYS = [
    np.arange(24).astype(dtype).reshape(2, 3, 4)[where]
    for dtype in ("float32", "int64", "bool", "complex64")
    for where in (
        ...,
        (slice(None), slice(None), slice(None, None, 2)),
        (slice(None), 1),
        (0, 0, 0, ...),
        (slice(0, 0),),
    )
] + [np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.broadcast_to(np.arange(4.0), (2, 3, 4))]

VIEWS: list[tuple[str, tuple[Any, ...]]] = [
    *[("transpose", (a, b)) for a in range(3) for b in range(3)],
    *[("permute", (dims,)) for dims in [(), (0,), (1, 0), (2, 0, 1), (0, 1, 2)]],
    ("t", ()),
    *[(name, (dim, index)) for name in ("select", "select_part") for dim in range(2) for index in (-1, 0, 1)],
    *[("slice_view", (d, a, b, s)) for d in range(2) for a, b, s in [(0, 2, 1), (1, 2**63 - 1, 2), (-2, -1, 1), (2, 1, 1)]],
    *[("unsqueeze", (dim,)) for dim in (-1, 0, 1, 2, 3)],
    *[("expand", (size,)) for size in [(2, 3, 4), (5, 2, 3, 4), (5, -1, 3, 4), (2, 1, 3, 4), (7,), (2, 3)]],
    *[(name, (size,)) for name in ("reshape", "view", "unsafe_view") for size in [(24,), (-1,), (4, -1), (6, 4), (1, 2, 12)]],
]  # fmt: skip

TAKES_DIMS = ("transpose", "select", "select_part", "slice_view", "unsqueeze")


def outcome(function: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except (ValueError, RuntimeError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(("name", "arguments"), VIEWS)
def test_views_equal_the_reference(name: str, arguments: tuple[Any, ...]) -> None:
    kernel = kernels[name]
    for array in ARRAYS:
        dims = arguments if name == "transpose" else arguments[:1]
        if name in TAKES_DIMS and max(dims) >= array.ndim + (name == "unsqueeze"):
            continue
        actual, expected = outcome(kernel, (array, *arguments)), outcome(kernel.__wrapped__, (array, *arguments))
        if isinstance(expected, tuple):
            assert actual == expected
            continue
        assert isinstance(actual, np.ndarray)
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        assert actual.flags.writeable == expected.flags.writeable
        np.testing.assert_array_equal(actual, expected)
        if array.size:
            assert np.may_share_memory(actual, array) == np.may_share_memory(expected, array)
            assert actual.strides == expected.strides


def test_a_view_keeps_the_memory_alive() -> None:
    made = kernels["transpose"](np.full((100, 100), 3.0), 0, 1)
    np.full((100, 100), 4.0)
    assert (made == 3).all()
    owner = np.zeros((3, 4))
    assert kernels["slice_view"](kernels["select"](owner, 0, 1), 0, 1, 3, 1).base is owner


LISTS = [
    [np.ones((2, 3)), np.zeros((2, 3))],
    [np.ones((2, 3), "float32"), np.zeros((2, 5), "float32"), np.full((2, 1), 2, "float32")],
    [np.ones((2, 3)), np.zeros((4, 3))],
    [np.ones(3, "int64"), np.zeros(0, "int64"), np.ones(2, "int64")],
    [np.ones((2, 3)).T, np.zeros((3, 2))],
    [np.ones((2, 3, 4, 5)), np.zeros((2, 3, 4, 5))],
    [np.array(1.0), np.array(2.0)],
    [np.ones((2, 3)), np.zeros((2, 3), "float32")],
    [np.ones((2, 0)), np.ones((2, 3))],
    [np.full((1, 2), number) for number in range(70)],
]


@pytest.mark.parametrize("name", ["cat", "stack"])
@pytest.mark.parametrize("arrays", LISTS, ids=range(len(LISTS)))
def test_joins_equal_the_reference(arrays: list[Any], name: str) -> None:
    for arguments in [(arrays,), (tuple(arrays),), (arrays, 0), (arrays, 1), (arrays, -1), (arrays, 9)]:
        actual, expected = outcome(kernels[name], arguments), outcome(kernels[name].__wrapped__, arguments)
        if isinstance(expected, tuple):
            assert actual == expected
            continue
        assert actual.dtype == expected.dtype
        assert actual.flags.c_contiguous
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_cuts_equal_the_reference(dtype: str, dim: int) -> None:
    for array in (np.arange(60).reshape(6, 10).astype(dtype), np.arange(60).reshape(10, 6).astype(dtype).T):
        for name, sizes in [
            ("split", 1),
            ("split", 4),
            ("split", 100),
            ("split_with_sizes", (2, array.shape[dim] - 2)),
        ]:
            parts, expected = kernels[name](array, sizes, dim), kernels[name].__wrapped__(array, sizes, dim)
            assert isinstance(parts, tuple)
            for part, reference in zip(parts, expected, strict=True):
                assert part.strides == reference.strides
                assert part.base is not None
                np.testing.assert_array_equal(part, reference)
            back = kernels[f"{name}_back"]
            grads = [part.copy() for part in parts]
            for given in (grads, [None, *grads[1:]], [grads[0].T.copy().T, *grads[1:]]):
                arguments = (given, array.shape, array.dtype, sizes, dim)
                np.testing.assert_array_equal(back(*arguments), back.__wrapped__(*arguments))
            shapes, dtypes = [part.shape for part in parts], [array.dtype] * len(parts)
            for part, reference in zip(kernels["cat_back"](array, shapes, dtypes, dim), parts, strict=True):
                assert np.may_share_memory(part, array)
                np.testing.assert_array_equal(part, reference)


def test_gradients_of_a_join_are_cast_by_the_reference() -> None:
    grad = np.ones((2, 5))
    first, second = kernels["cat_back"](grad, [(2, 3), (2, 2)], [np.dtype("float32"), np.dtype("float64")], 1)
    assert first.dtype == "float32"
    assert second.dtype == "float64"


@pytest.mark.parametrize("name", ["data_address", "memory_bounds"])
@pytest.mark.parametrize("array", [*ARRAYS, np.arange(24.0).reshape(4, 6)[::-2, ::-1]])
def test_addresses_equal_the_reference(name: str, array: Any) -> None:
    assert kernels[name](array) == kernels[name].__wrapped__(array)
