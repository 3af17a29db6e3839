"""Every operation and its gradient on the strict stand-in, beside the CPU: the kernels' one text serves both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from tests.cases import each_case, named
from tests.devices import fake_library, sweep
from tests.devices.calls import CALLS

PAIRS = list(zip(sweep.load_samples(None), sweep.load_samples("fake"), strict=True))
CASES = [(sample, other, False) for sample, other in PAIRS] + [(s, o, True) for s, o in PAIRS if s.complex]


NOT_COUNTING = (
    "grid_sample bilinear zeros",
    "grid_sample 3d",
    "multilabel_margin_loss-mean",
    "pow",
    "inner put_points",
)
"""Samples whose results have the shape of their inputs: nobody has to wait for how many elements are chosen."""


@each_case(named("case", CASES, lambda case: case[0].name + ("-complex" if case[2] else "")), per_test=20)
def test_sample_on_the_device_is_as_on_the_cpu(case: tuple[Any, Any, bool]) -> None:
    sample, other, complex = case
    assert sweep.difference(sample, other, "fake", complex) is None


@pytest.mark.parametrize("name", CALLS)
def test_call_on_the_device_is_as_on_the_cpu(name: str) -> None:
    expected, actual = sweep.flat(CALLS[name]("cpu")), sweep.flat(CALLS[name]("fake"))
    assert [t.device.type for t in actual] == ["fake"] * len(expected)
    for first, second in zip(expected, actual, strict=True):
        assert first.dtype is second.dtype
        np.testing.assert_allclose(second.cpu().numpy(), first.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NOT_COUNTING)
def test_positions_are_not_counted_on_the_host(name: str) -> None:
    sample, other = next(pair for pair in PAIRS if pair[0].name == name)
    before = len(fake_library.library.reads)
    assert sweep.difference(sample, other, "fake", sample.complex) is None
    assert not {"nonzero", "bincount"} & set(fake_library.library.reads[before:])


def test_a_mask_that_chooses_elements_is_counted() -> None:
    before = len(fake_library.library.reads)
    x = pullback.ones(3, device="fake")
    x[x > 0]
    assert "nonzero" in fake_library.library.reads[before:]


def test_the_comparison_catches_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_library.loader.module("pullback.kernels.extrema")
    sample, other = next(pair for pair in PAIRS if pair[0].name == "amax")
    assert sweep.difference(sample, other, "fake", False) is None
    from pullback.kernels.extrema import amax

    wrong = fake_library.loader.module("pullback.kernels.extrema").amin
    monkeypatch.setattr(fake_library.library, "find", lambda reference: wrong)
    assert module.amax is not amax
