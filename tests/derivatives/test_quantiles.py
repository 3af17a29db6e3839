"""Gradients of samples that are drawn."""

from __future__ import annotations

import pytest

from tests.derivatives.quantiles import check_standard_gamma


@pytest.mark.parametrize("forward_mode", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_of_the_gamma_distribution_move_along_quantiles(dtype: str, forward_mode: bool) -> None:
    check_standard_gamma(dtype, forward_mode)
