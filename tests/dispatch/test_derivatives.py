"""Under a dispatch mode every operation gives the values and gradients that it gives without one."""

from __future__ import annotations

import numpy as np

from pullback.utils._python_dispatch import BaseTorchDispatchMode
from tests.derivatives.checks import gradients, leaves, outputs_of
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import _cases


@_cases(lambda sample: True)
def test_values_and_gradients_do_not_depend_on_modes(sample: Sample, complex: bool) -> None:
    arrays = sample.arrays(complex=complex)
    expected = [o.detach().numpy() for o in outputs_of(sample.call, leaves(arrays))], gradients(sample.call, arrays)
    with BaseTorchDispatchMode():
        actual = [o.detach().numpy() for o in outputs_of(sample.call, leaves(arrays))], gradients(sample.call, arrays)
    for ours, theirs in zip([*actual[0], *actual[1]], [*expected[0], *expected[1]], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
