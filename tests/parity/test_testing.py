"""assert_close says what PyTorch's says, and make_tensor draws the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
import pullback.testing

torch = pytest.importorskip("torch")

NAN, INF = float("nan"), float("inf")

Sides = Callable[[Any], tuple[Any, Any]]

COMPARISONS: dict[str, tuple[Sides, dict[str, Any]]] = {
    "vectors": (lambda t: (t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 2.5, 4.0])), {}),
    "matrices": (lambda t: (t.zeros(2, 3), t.arange(6.0).reshape(2, 3)), {}),
    "doubles": (lambda t: (t.zeros(2, dtype=t.float64), t.full((2,), 3e-7, dtype=t.float64)), {}),
    "halves": (lambda t: (t.ones(2, dtype=t.float16) * 3, t.ones(2, dtype=t.float16)), {}),
    "complex": (lambda t: (t.tensor([1 + 1j]), t.tensor([1 + 2j])), {}),
    "0-dim": (lambda t: (t.tensor(1.0), t.tensor(2.0)), {}),
    "integers": (lambda t: (t.tensor([1, 2]), t.tensor([1, 3])), {}),
    "integers with tolerance": (lambda t: (t.tensor([10, 20]), t.tensor([11, 30])), {"rtol": 0.1, "atol": 1}),
    "unsigned": (
        lambda t: (t.tensor([1, 255], dtype=t.uint8), t.tensor([2, 0], dtype=t.uint8)),
        {},
    ),
    "booleans": (lambda t: (t.tensor([True, True]), t.tensor([False, True])), {}),
    "mixed": (lambda t: (t.ones(2, dtype=t.float16) * 1.01, t.ones(2)), {"check_dtype": False}),
    "integer and float": (lambda t: (t.tensor([1, 2]), t.tensor([1.0, 2.5])), {"check_dtype": False}),
    "nan": (lambda t: (t.tensor([NAN, 1.0]), t.tensor([1.0, NAN])), {}),
    "nan equal": (lambda t: (t.tensor([NAN, 1.0]), t.tensor([NAN, 1.0])), {"equal_nan": True}),
    "inf": (lambda t: (t.tensor([1.0, INF, INF]), t.tensor([INF, -INF, INF])), {}),
    "zero expected": (lambda t: (t.tensor([1.0, 0.0]), t.tensor([0.0, 0.0])), {}),
    "tolerances": (lambda t: (t.tensor([1.0, 0.0]), t.tensor([0.0, 0.0])), {"rtol": 0, "atol": 1e-3}),
    "no tolerance": (lambda t: (t.tensor([1.0, 0.0]), t.tensor([0.0, 0.0])), {"rtol": 0, "atol": 0}),
    "one tolerance": (lambda t: (1.0, 1.0), {"rtol": 0.1}),
    "numbers": (lambda t: (1.0, 2.0), {}),
    "whole numbers": (lambda t: (1, 0), {}),
    "complex numbers": (lambda t: (1 + 1j, 1 + 2j), {}),
    "types of numbers": (lambda t: (1, 1.0), {}),
    "None": (lambda t: (None, 1), {}),
    "True": (lambda t: (True, False), {}),
    "text": (lambda t: ("a", "a"), {}),
    "strides": (lambda t: (t.zeros(2, 3), t.zeros(3, 2).t()), {"check_stride": True}),
    "lengths": (lambda t: ([1, 2], [1]), {}),
    "keys": (lambda t: ({"a": 1, "c": 2}, {"a": 1, "b": 2}), {}),
    "nested": (lambda t: ({"a": [1, (t.zeros(1),)]}, {"a": [1, (t.ones(1),)]}), {}),
    "message": (lambda t: (1.0, 2.0), {"msg": "mine"}),
    "empty": (lambda t: (t.zeros(0), t.zeros(0)), {}),
    "shapes": (lambda t: (t.zeros(3), t.zeros(4)), {}),
    "dtypes": (lambda t: (t.zeros(3), t.zeros(3, dtype=t.float64)), {}),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_messages_are_the_same(name: str) -> None:
    sides, options = COMPARISONS[name]

    def outcome(library: Any) -> Any:
        try:
            library.testing.assert_close(*sides(library), **options)
        except Exception as error:
            return type(error), str(error).replace("torch.", "pullback.")
        return None

    assert outcome(pullback) == outcome(torch)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "options", [{}, {"low": 0, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}], ids=str
)
def test_made_tensors_are_the_same(dtype: str, options: dict[str, Any]) -> None:
    def make(library: Any) -> Any:
        library.manual_seed(1)
        made = library.testing.make_tensor(4, 5, dtype=getattr(library, dtype), device="cpu", **options)
        return made.tolist(), made.stride(), library.rand(1).item()

    assert make(pullback) == make(torch)
