"""Every operation and its gradient on the GPU beside the CPU, in float64 and float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices import sweep
from tests.devices.calls import CALLS

PAIRS = list(zip(sweep.load_samples(None), sweep.load_samples("cuda"), strict=True))
CASES = [(sample, other, False) for sample, other in PAIRS] + [(s, o, True) for s, o in PAIRS if s.complex]


OF_FLOAT64 = ("nll_loss-none", "nll_loss-mean", "nll_loss-sum", "cross_entropy-smoothed", "batch_norm evaluation")
"""Samples with weights of their own in float64."""


@pytest.mark.parametrize(
    ("sample", "other", "complex"), [pytest.param(*c, id=c[0].name + ("-complex" if c[2] else "")) for c in CASES]
)
def test_sample_on_the_gpu_is_as_on_the_cpu(sample: Any, other: Any, complex: bool) -> None:
    assert sweep.difference(sample, other, "cuda", complex) is None


@pytest.mark.parametrize(
    ("sample", "other"), [pytest.param(s, o, id=s.name) for s, o in PAIRS if s.name not in OF_FLOAT64]
)
def test_sample_in_float32(sample: Any, other: Any) -> None:
    assert sweep.difference(sample, other, "cuda", False, np.float32) is None


@pytest.mark.parametrize("name", CALLS)
def test_call_on_the_gpu_is_as_on_the_cpu(name: str) -> None:
    expected, actual = sweep.flat(CALLS[name]("cpu")), sweep.flat(CALLS[name]("cuda"))
    assert [t.device.type for t in actual] == ["cuda"] * len(expected)
    for first, second in zip(expected, actual, strict=True):
        assert first.dtype is second.dtype
        np.testing.assert_allclose(second.cpu().numpy(), first.numpy(), rtol=1e-4, atol=1e-5)
