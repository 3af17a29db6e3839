"""The operations that are measured one by one, and the page about them."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

import pullback
from benchmarks import operations
from benchmarks.operation_table import Operation
from benchmarks.operations import FAMILIES, Row

EVERY = [(family, operation) for family, (_, members) in FAMILIES.items() for operation in members]


@pytest.mark.parametrize(("family", "operation"), EVERY, ids=[f"{family}-{made.name}" for family, made in EVERY])
def test_every_operation_runs_forward_and_backward(family: str, operation: Operation) -> None:
    arrays = operation.inputs(np.random.default_rng(0), FAMILIES[family][0][0], "float32")
    forward, backward = operations.runs(pullback, operation, arrays)
    forward()
    assert (backward is not None) == (operation.differentiable and any(a.copy().dtype.kind == "f" for a in arrays))
    if backward is not None:
        backward()


def test_names_are_unique_within_a_family() -> None:
    assert len({(family, operation.name) for family, operation in EVERY}) == len(EVERY)


def test_the_page_has_a_column_for_each_size_and_marks_what_is_slower() -> None:
    rows = [
        Row("pooling", "max_pool2d", "1", 0.25, 4.0, 1e-6, 1e-6),
        Row("pooling", "max_pool2d", "8", 1.0, 1.0, 1e-6, 1e-6),
        Row("masks", "isnan", "8", 0.5, None, 1e-6, None),
    ]
    page = operations.document(rows, argparse.Namespace(threads=1, dtype="float32"))
    assert "| operation | 1 | 8 |" in page
    assert "| max_pool2d | 0.25 / **4.00** | 1.00 / 1.00 |" in page
    assert "| isnan | 0.50 / - |" in page
    assert "mean of everything is 0.87" in page
    assert "## Pooling\n\nGeometric mean: 1.00." in page
