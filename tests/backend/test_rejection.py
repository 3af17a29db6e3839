"""Rejection sampling without compiled loops: many elements at a time draw what one at a time draws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from pullback.backend import random
from pullback.backend.random import Generator
from pullback.backend.random.poisson_binomial import BinomialSampler, PoissonSampler
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array, DType
from tests.backend.rejection_one_by_one import OneByOne

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def seeded() -> Generator:
    return Generator().manual_seed(2026)


def uncompiled(kept: bool = False) -> Generator:
    """A generator that compiled loops do not see, with or without a normal number kept back."""
    generator = seeded()
    generator.memory = None
    random.normal((int(kept),), F64, generator=generator)
    return generator


def between(low: float, high: float, count: int, dtype: DType) -> Array:
    return np.random.default_rng(0).uniform(low, high, count).astype(dtype)


def assert_same_draws(one: Generator, actual: Array, other: Generator, expected: Array) -> None:
    np.testing.assert_array_equal(actual, expected)
    assert one.pack_state().tobytes() == other.pack_state().tobytes()


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("count", [1, 2, 17, 300])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0), (3.5, 3.5), (30, 30), (0, 1e-3), (0, 1), (0, 10), (10, 60), (0, 60), (10, 1e5), (1e9, 1e13)],
)
def test_poisson_samples_found_together_are_those_one_by_one(low: float, high: float, count: int, dtype: DType) -> None:
    one, other = uncompiled(), uncompiled()
    rates = between(low, high, count, dtype)
    assert_same_draws(one, random.poisson(rates, one), other, OneByOne(other).poisson(rates))


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("count", [1, 2, 17, 300])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (0.4, 0.4), (1, 1), (20, 20), (0, 0.02), (0, 1), (0, 3), (1, 6), (5, 500), (1e7, 1e12)]
)
def test_gamma_samples_found_together_are_those_one_by_one(
    low: float, high: float, kept: bool, count: int, dtype: DType
) -> None:
    one, other = uncompiled(kept), uncompiled(kept)
    shapes = between(low, high, count, dtype)
    assert_same_draws(one, random.standard_gamma(shapes, one), other, OneByOne(other).gamma(shapes))


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("count", [1, 2, 17, 300])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.3, 0.3), (0.8, 0.8), (0, 0.01)])
@pytest.mark.parametrize("trials", [(12, 12), (90, 90), (1, 30), (0, 90), (100, 900), (1e6, 1e9)])
def test_binomial_samples_found_together_are_those_one_by_one(
    trials: tuple[float, float], low: float, high: float, count: int, dtype: DType
) -> None:
    one, other = uncompiled(), uncompiled()
    n, probs = np.floor(between(*trials, count, dtype)), between(low, high, count, dtype)[::-1].copy()
    assert_same_draws(one, random.binomial(n, probs, one), other, OneByOne(other).binomial(n, probs))


@pytest.mark.parametrize("make", [seeded, uncompiled])
def test_impossible_parameters_give_nan_and_draw_nothing(make: Callable[[], Generator]) -> None:
    generator = make()
    before = generator.pack_state().tobytes()
    assert np.isnan(random.standard_gamma(np.array([np.nan, -2.0]), generator)).all()
    assert np.isnan(random.binomial(np.array([np.nan, 3.0]), np.array([0.5, np.nan]), generator)).all()
    np.testing.assert_array_equal(random.binomial(np.array([-1.0, 7.0]), np.array([0.5, 1.0]), generator), [0, 7])
    assert generator.pack_state().tobytes() == before


@pytest.mark.parametrize("rates", [[3 * math.log(2)], [3 * math.log(2), 2.0, 3 * math.log(2)]])
def test_a_close_decision_of_a_poisson_sample_is_made_by_the_products(
    rates: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, samples = seeded(), np.empty(len(rates))
    monkeypatch.setattr(source, "uniform64", lambda count: np.full(count, 0.5))
    with ReadAhead(source) as ahead:
        PoissonSampler(ahead, samples, np.array(rates)).draw()
    assert samples[0] == samples[-1] == (2.0 if math.exp(-3 * math.log(2)) >= 0.125 else 3.0)


@pytest.mark.parametrize("trials", [np.full(1, 1e5), np.array([1e5, 1e6])])
def test_more_numbers_are_read_where_those_at_hand_do_not_suffice(
    trials: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, samples = seeded(), np.empty(len(trials))
    monkeypatch.setattr(source, "uniform64", lambda count: np.full(count, 1 - 2.0**-10))
    with ReadAhead(source) as ahead:
        BinomialSampler(ahead, samples, trials, 5 / trials).draw()
    waits = np.ceil(math.log(1 - 2.0**-10) / np.log1p(-5 / trials))
    np.testing.assert_array_equal(samples, trials // waits)


def test_reading_ahead_gives_back_what_lies_before_the_last_block() -> None:
    expected = random.uniform((30,), F64, generator=seeded())
    source = seeded()
    with ReadAhead(source) as ahead:
        ahead.window(1000)
        ahead.position = 10
        ahead.window(3000)
        ahead.position = 20
    np.testing.assert_array_equal(random.uniform((10,), F64, generator=source), expected[20:])


def test_an_engine_whose_memory_is_not_known_goes_back_too() -> None:
    one, other = uncompiled(), uncompiled()
    other._words = None
    rates = np.linspace(0, 20, 50)
    assert_same_draws(one, random.poisson(rates, one), other, random.poisson(rates, other))
