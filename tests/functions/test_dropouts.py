"""What is dropped and how the rest is rounded, recorded from PyTorch 2.13 (seed 2026)."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
import pullback.nn.functional as F


def counted(step: float, dtype: Any) -> pullback.Tensor:
    return (pullback.arange(1, 7).float() * step).to(dtype)


def test_what_is_kept_is_scaled_by_a_factor_of_the_same_precision() -> None:
    pullback.manual_seed(2026)
    actual = F.dropout(counted(1, pullback.float16), 0.3)
    assert actual.tolist() == [1.4287109375, 0.0, 4.28515625, 5.71484375, 7.14453125, 8.5703125]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (pullback.float32, [0.77264452, -1.05954826, 1.40974951, 1.72830188, 2.0468545, 2.36540699]),
        (pullback.float16, [0.7724609375, -1.0595703125, 1.41015625, 1.728515625, 2.046875, 2.3671875]),
    ],
)
def test_alpha_dropout_rounds_after_each_step(dtype: Any, expected: list[float]) -> None:
    pullback.manual_seed(2026)
    actual = F.alpha_dropout(counted(0.37, dtype), 0.3, True)
    assert actual.tolist() == pullback.tensor(expected, dtype=dtype).tolist()


def test_native_dropout_rounds_its_factor() -> None:
    pullback.manual_seed(2026)
    actual, mask = pullback.native_dropout(counted(0.13, pullback.float16), 0.3, True)
    assert actual.tolist() == [0.185791015625, 0.0, 0.55712890625, 0.7431640625, 0.9287109375, 1.1142578125]
    assert mask.tolist() == [True, False, True, True, True, True]


def test_the_mask_of_nothing_has_the_dtype_of_the_input() -> None:
    assert pullback.native_dropout(pullback.zeros(0), 0.5, True)[1].dtype is pullback.float32


def test_dropping_everything_keeps_the_layout() -> None:
    x = pullback.ones(2, 3, 4).permute(2, 1, 0)
    assert F.dropout(x, 1.0).stride() == x.stride()


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (pullback.float32, [-0.0631967336, -0.223238796, -0.173310608, -0.205103248, -0.456967652, -0.510330737]),
        (pullback.float64, [-0.06319673037979467, -0.22323877804274536, -0.17331059880900995, -0.20510324462368154,
                            -0.4569676077831445, -0.5103307271523155]),
    ],
)  # fmt: skip
def test_random_slopes_lie_between_bounds_of_the_precision_of_the_input(dtype: Any, expected: list[float]) -> None:
    pullback.manual_seed(2026)
    actual = F.rrelu(-pullback.arange(1, 7).to(dtype) * 0.37, training=True)
    assert actual.tolist() == pullback.tensor(expected, dtype=dtype).tolist()
