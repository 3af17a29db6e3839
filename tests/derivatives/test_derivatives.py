"""Every sample of every family through the generic checks."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.derivatives import checks
from tests.derivatives.sampling import Sample

SAMPLES: list[Sample] = []
for _path in sorted(Path(__file__).parent.glob("samples_*.py")):
    SAMPLES += importlib.import_module(f"tests.derivatives.{_path.stem}").SAMPLES


def _cases(condition: Any) -> Any:
    cases = [pytest.param(s, False, id=s.name) for s in SAMPLES if condition(s)]
    cases += [pytest.param(s, True, id=f"{s.name}-complex") for s in SAMPLES if condition(s) and s.complex]
    return pytest.mark.parametrize(("sample", "complex"), cases)


@_cases(lambda s: True)
def test_backward_agrees_with_finite_differences(sample: Sample, complex: bool) -> None:
    checks.check_backward(sample.call, sample.arrays(complex=complex), sample.atol)


@_cases(lambda s: True)
def test_array_and_tensor_rules_agree(sample: Sample, complex: bool) -> None:
    checks.check_paths_agree(sample.call, sample.arrays(complex=complex))


@_cases(lambda s: s.second_order)
def test_second_order_agrees_with_finite_differences(sample: Sample, complex: bool) -> None:
    checks.check_second_order(sample.call, sample.arrays(complex=complex), sample.atol)


@_cases(lambda s: s.forward)
def test_forward_mode_is_the_adjoint_of_backward(sample: Sample, complex: bool) -> None:
    checks.check_forward(sample.call, sample.arrays(complex=complex), sample.atol)


def test_the_checks_catch_a_wrong_gradient() -> None:
    import pullback

    def wrong(x: Any) -> Any:
        return x.detach() * x  # the gradient misses a factor of two

    with pytest.raises(AssertionError):
        checks.check_backward(wrong, [np.array([1.0, 2.0])], 1e-6)
    del pullback
