"""Every operation and its gradient on the strict stand-in, beside the CPU: the kernels' one text serves both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.devices import fake_library, sweep
from tests.devices.calls import CALLS

PAIRS = list(zip(sweep.load_samples(None), sweep.load_samples("fake"), strict=True))
CASES = [(sample, other, False) for sample, other in PAIRS] + [(s, o, True) for s, o in PAIRS if s.complex]


@pytest.mark.parametrize(
    ("sample", "other", "complex"), [pytest.param(*c, id=c[0].name + ("-complex" if c[2] else "")) for c in CASES]
)
def test_sample_on_the_device_is_as_on_the_cpu(sample: Any, other: Any, complex: bool) -> None:
    assert sweep.difference(sample, other, "fake", complex) is None


@pytest.mark.parametrize("name", CALLS)
def test_call_on_the_device_is_as_on_the_cpu(name: str) -> None:
    expected, actual = sweep.flat(CALLS[name]("cpu")), sweep.flat(CALLS[name]("fake"))
    assert [t.device.type for t in actual] == ["fake"] * len(expected)
    for first, second in zip(expected, actual, strict=True):
        assert first.dtype is second.dtype
        np.testing.assert_allclose(second.cpu().numpy(), first.numpy(), rtol=1e-5, atol=1e-6)


def test_the_comparison_catches_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_library.loader.module("pullback.kernels.extrema")
    sample, other = next(pair for pair in PAIRS if pair[0].name == "amax")
    assert sweep.difference(sample, other, "fake", False) is None
    from pullback.kernels.extrema import amax

    wrong = fake_library.loader.module("pullback.kernels.extrema").amin
    monkeypatch.setattr(fake_library.library, "find", lambda reference: wrong)
    assert module.amax is not amax
