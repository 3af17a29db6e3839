"""In which order results lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.native import extension


@pytest.mark.parametrize("operation", [pullback.add, pullback.sub, pullback.mul])
def test_results_lie_as_the_first_operand_does_where_operands_differ(operation: Callable[..., Any]) -> None:
    plain = pullback.ones(2, 3, 4, 5)
    last = plain.to(memory_format=pullback.channels_last)
    assert operation(plain, last).stride() == (60, 20, 5, 1)
    assert operation(last, plain).stride() == (60, 1, 15, 3)
    assert operation(plain.transpose(2, 3), pullback.ones(2, 3, 5, 4)).stride() == (60, 20, 1, 5)


def test_a_dimension_that_the_first_operand_repeats_lies_as_the_second_has_it() -> None:
    first = pullback.ones(2, 1, 4)
    second = pullback.ones(4, 3, 2).permute(2, 1, 0)
    assert (first * second).stride() == (12, 1, 3)


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "pow": lambda a, b: a.pow(b),
    "gt": lambda a, b: a > b,
    "maximum": pullback.maximum,
    "where": lambda a, b: pullback.where(a > 0, b, a),
    "addcmul": lambda a, b: pullback.addcmul(a, b, b),
    "fmod": lambda a, b: a.fmod(b),
    "mse_loss": lambda a, b: pullback.nn.functional.mse_loss(a, b, reduction="none"),
    "lerp": lambda a, b: a.lerp(b, 0.25),
    "xlogy": lambda a, b: a.xlogy(b),
    "atan2": lambda a, b: a.atan2(b),
}


@pytest.mark.skipif(extension is None, reason="NumPy's kernels lie as NumPy orders them")
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("operation", MIXED.values(), ids=MIXED)
def test_results_of_numpy_lie_as_the_first_operand_does_too(operation: Callable[..., Any], dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    columns = pullback.arange(1.0, 7.0).reshape(2, 3).to(getattr(pullback, dtype)).mT
    rows = columns.contiguous()

    assert operation(columns, rows).stride() == (1, 3)
    assert operation(rows, columns).stride() == (2, 1)
    assert operation(columns, rows).tolist() == operation(rows, rows).tolist()


def test_powers_of_a_number_are_row_major() -> None:
    assert (2.0 ** pullback.ones(2, 3).mT).stride() == (2, 1)
    assert (2 ** pullback.ones(2, 3, dtype=pullback.int64).mT).stride() == (2, 1)
