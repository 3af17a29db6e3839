"""Every sample of every family through the generic checks."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import each_case
from tests.derivatives import checks
from tests.derivatives.sampling import Sample, real_and_complex

SAMPLES: list[Sample] = []
for _path in sorted(Path(__file__).parent.glob("samples_*.py")):
    SAMPLES += importlib.import_module(f"tests.derivatives.{_path.stem}").SAMPLES


def _cases(condition: Any) -> Any:
    return each_case(real_and_complex([s for s in SAMPLES if condition(s)]), per_test=20)


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
