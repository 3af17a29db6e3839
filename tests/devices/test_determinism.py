"""On devices, sums at repeated positions have the same bits in every run, where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.devices.cuda.functions import _add_at, _reduce_at


@pytest.fixture
def deterministic() -> Iterator[None]:
    pullback.use_deterministic_algorithms(True)
    yield
    pullback.use_deterministic_algorithms(False)


class Unordered:
    """NumPy, whose addition at positions must not be used."""

    def __getattr__(self, name: str) -> Any:
        assert name != "add", "atomic additions come in no fixed order"
        return getattr(np, name)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(7,), (4, 3)])
def test_values_are_added_in_their_order(dtype: str, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    add_at = _add_at(Unordered(), _reduce_at(np, np.add))
    table = generator.normal(size=shape).astype(dtype)
    positions = generator.integers(-shape[0], shape[0], size=(5, 2))
    values = generator.normal(size=(5, 2, *shape[1:])).astype(dtype)
    expected = table.astype("complex128" if dtype == "complex64" else "float64")
    np.add.at(expected, positions, values)
    add_at(table, positions, values)
    np.testing.assert_allclose(table, expected.astype(dtype), rtol=2e-3 if dtype == "float16" else 1e-5)


@pytest.mark.usefixtures("deterministic")
def test_nothing_is_added_at_no_positions() -> None:
    table = np.ones(3)
    _add_at(Unordered(), _reduce_at(np, np.add))(table, np.zeros(0, np.int64), np.zeros(0))
    assert table.tolist() == [1.0, 1.0, 1.0]


def test_integers_are_added_in_any_order() -> None:
    table = np.zeros(3, np.int64)
    _add_at(np, _reduce_at(np, np.add))(table, np.array([1, 1, 2]), np.array([1, 2, 3]))
    assert table.tolist() == [0, 3, 3]
