"""Errors planted on purpose are flagged by the comparison of accuracy, and PyTorch's own results are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("mpmath", reason="the references are mpmath's")

import torch

from . import accuracy_reductions
from .accuracy_elementwise import call_in, measure
from .accuracy_functions import FUNCTIONS, Function

pytestmark = pytest.mark.filterwarnings("ignore")
NAMED = {function.name: function for function in FUNCTIONS}
SUM = accuracy_reductions.REDUCTIONS[0]


def few_units_off(result: Any) -> Any:
    return result * (1 + 4 * np.finfo(result.dtype).eps)


def wrong_sign_of_zero(result: Any) -> Any:
    return np.where(result == 0, -result, result)


def no_infinities(result: Any) -> Any:
    return np.where(np.isinf(result), np.nan, result)


def wrong_where_tiny(result: Any) -> Any:
    return np.where(np.abs(result) < 1e-30, 0, result).astype(result.dtype)


@pytest.mark.parametrize("name", ["sin", "log1p", "nn.functional.silu", "hypot"])
def test_theirs_are_not_flagged(name: str) -> None:
    function = NAMED[name]
    found = measure(function, np.float32, None, call_in(torch, function, None))
    assert found is not None
    assert found.flags == []


@pytest.mark.parametrize(
    ("name", "dtype", "wrt", "fault"),
    [
        ("sin", np.float32, None, few_units_off),
        ("sin", np.float64, None, few_units_off),
        ("exp", np.float32, 0, few_units_off),
        ("erf", np.float64, None, few_units_off),
        ("sqrt", np.complex128, None, few_units_off),
        ("hypot", np.float64, None, few_units_off),
        ("sin", np.float32, None, wrong_sign_of_zero),
        ("exp", np.float64, None, no_infinities),
        ("sin", np.float32, None, wrong_where_tiny),
    ],
)
def test_a_planted_error_is_flagged(name: str, dtype: Any, wrt: int | None, fault: Any) -> None:
    function: Function = NAMED[name]
    theirs = call_in(torch, function, wrt)
    found = measure(function, dtype, wrt, lambda *arguments: fault(theirs(*arguments)))
    assert found is not None
    assert found.flags


def test_a_planted_error_of_a_sum_is_flagged() -> None:
    faulty = replace(SUM, call=lambda module, x, dim: x.sum(dim) * (1 + 1e-5))
    assert accuracy_reductions.measure(SUM, "float32", faulty).flags
