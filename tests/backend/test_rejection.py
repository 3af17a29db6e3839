"""Rejection sampling without compiled loops: many elements at a time draw what one at a time draws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from pullback.backend import random
from pullback.backend.random import Generator, rejection, together
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

F64 = np.dtype(np.float64)


def seeded() -> Generator:
    return Generator().manual_seed(2026)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "draw",
    [
        lambda g, n: random.poisson(np.full(n, 0.0), g),
        lambda g, n: random.poisson(np.full(n, 3.5), g),
        lambda g, n: random.poisson(np.full(n, 30.0), g),
        lambda g, n: random.poisson(np.linspace(10, 60, n), g),
        lambda g, n: random.poisson(np.linspace(0, 60, n), g),
        lambda g, n: random.standard_gamma(np.full(n, 0.0), g),
        lambda g, n: random.standard_gamma(np.full(n, 0.4), g),
        lambda g, n: random.standard_gamma(np.full(n, 1.0), g),
        lambda g, n: random.standard_gamma(np.full(n, 20.0), g),
        lambda g, n: random.standard_gamma(np.linspace(1, 6, n), g),
        lambda g, n: random.standard_gamma(np.linspace(0, 2, n), g),
        lambda g, n: random.binomial(np.full(n, 12.0), np.full(n, 0.8), g),
        lambda g, n: random.binomial(np.full(n, 90.0), np.full(n, 0.8), g),
        lambda g, n: random.binomial(np.linspace(1, 90, n), np.full(n, 0.3), g),
    ],
)  # fmt: skip
def test_many_rejections_together_are_those_one_by_one(
    draw: Callable[[Generator, int], Array], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = seeded(), seeded()
    for generator in (one, other):
        generator.memory = None  # compiled loops stand back
        random.normal((int(kept),), F64, generator=generator)
    actual = draw(one, 3000)
    monkeypatch.setattr(rejection, "_FEW", 10**9)
    np.testing.assert_array_equal(actual, draw(other, 3000))
    assert one.pack_state().tobytes() == other.pack_state().tobytes()


def test_a_close_decision_of_a_poisson_sample_is_made_by_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.empty(1)
    source = seeded()
    monkeypatch.setattr(source, "uniform64", lambda count: np.full(count, 0.5))
    with ReadAhead(source) as ahead:
        together.draw_by_products(ahead, 3 * math.log(2), samples)
    assert samples.tolist() == [2.0 if math.exp(-3 * math.log(2)) >= 0.125 else 3.0]


def test_reading_ahead_gives_back_what_lies_before_the_last_block() -> None:
    expected = random.uniform((30,), F64, generator=seeded())
    source = seeded()
    with ReadAhead(source) as ahead:
        ahead.window(1000)
        ahead.position = 10
        ahead.window(3000)
        ahead.position = 20
    np.testing.assert_array_equal(random.uniform((10,), F64, generator=source), expected[20:])
