"""Every sample's Jacobian: rows in a batch are what rows one by one are, also to be differentiated again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import batched_rows, functional
from tests.cases import each_case
from tests.derivatives.checks import cotangents, outputs_of
from tests.derivatives.sampling import Sample, real_and_complex
from tests.derivatives.test_derivatives import SAMPLES


def _cases(most: int, samples: list[Sample]) -> Any:
    small = [s for s in samples if sum(a.size for a in s.arrays()) <= most]
    return each_case(real_and_complex(small), per_test=20)


def _jacobians(sample: Sample, arrays: list[Any], *, create_graph: bool) -> tuple[list[Any], list[Any]]:
    """The Jacobians of all outputs with respect to all inputs, and the inputs."""
    inputs = [pullback.from_numpy(np.array(a, order="K", copy=True)).requires_grad_(create_graph) for a in arrays]
    blocks = functional.jacobian(
        lambda *tensors: tuple(outputs_of(sample.call, tensors)), tuple(inputs), create_graph=create_graph
    )
    return [block for row in blocks for block in row], inputs


def _second_derivatives(sample: Sample, arrays: list[Any]) -> list[Any]:
    blocks, inputs = _jacobians(sample, arrays, create_graph=True)
    recorded = [block for block in blocks if block.requires_grad]
    if not recorded:
        return []
    return list(pullback.autograd.grad(recorded, inputs, cotangents(recorded), materialize_grads=True))


def _assert_same(actual: list[Any], expected: list[Any]) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape, a.requires_grad) == (e.dtype, e.shape, e.requires_grad)
        scale = float(np.nanmax(np.abs(e.numpy()), initial=1.0)) if e.numel() else 1.0
        np.testing.assert_allclose(a.numpy(), e.numpy(), rtol=1e-8, atol=1e-9 * scale)


@_cases(400, SAMPLES)
def test_rows_in_a_batch_are_rows_one_by_one(sample: Sample, complex: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = sample.arrays(complex=complex)
    monkeypatch.setattr(batched_rows, "LEAST_ROWS", 1)
    actual, _ = _jacobians(sample, arrays, create_graph=False)
    with monkeypatch.context() as patch:
        patch.setattr(functional, "rows_at_once", lambda *args, **options: None)
        expected, _ = _jacobians(sample, arrays, create_graph=False)
    _assert_same(actual, expected)
    assert [a.stride() for a in actual] == [e.stride() for e in expected]


@_cases(40, [s for s in SAMPLES if s.second_order])
def test_rows_in_a_batch_are_differentiated_again(
    sample: Sample, complex: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = sample.arrays(complex=complex)
    monkeypatch.setattr(batched_rows, "LEAST_ROWS", 1)
    actual = _second_derivatives(sample, arrays)
    with monkeypatch.context() as patch:
        patch.setattr(functional, "rows_at_once", lambda *args, **options: None)
        expected = _second_derivatives(sample, arrays)
    _assert_same(actual, expected)
