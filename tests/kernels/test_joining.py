"""What kernels that join parts do with parts that do not belong together."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels import joining


def test_too_few_gradients_for_a_huge_dimension_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"1 gradients for 1152921504606846976 elements in parts of 1"):
        joining.split_back([np.ones(1)], (2**60,), np.float64, 1, 0)
