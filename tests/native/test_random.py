"""Compiled loops of random numbers against the generator that draws through NumPy: the same stream, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import native
from pullback.backend import random as draw
from pullback.backend.random import Generator

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")

SIZES = (0, 1, 3, 15, 16, 17, 31, 100, 624, 1000, 5000, 40000)
FLOATS = [np.dtype(name) for name in ("float32", "float64", "float16")]


def generators() -> tuple[Generator, Generator]:
    """Two of one seed, the second without the compiled loops."""
    compiled, plain = Generator().manual_seed(7), Generator().manual_seed(7)
    assert compiled.memory is not None
    plain.memory = None
    return compiled, plain


def assert_same_stream(draws: list[Any]) -> None:
    compiled, plain = generators()
    for function in draws:
        actual, expected = function(compiled), function(plain)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(compiled.pack_state(), plain.pack_state())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_continuous_distributions(size: int, dtype: Any) -> None:
    def empty() -> Any:
        return np.empty(size, dtype)

    assert_same_stream(
        [
            lambda g: draw.uniform((size,), dtype, generator=g),
            lambda g: draw.uniform((size,), dtype, -3.0, 7.5, g),
            lambda g: draw.normal((size,), dtype, generator=g),
            lambda g: draw.normal((size,), dtype, 1.5, 0.3, g),
            lambda g: draw.exponential((size,), dtype, 1.7, g),
            lambda g: draw.bernoulli_(empty(), 0.3, g),
            lambda g: draw.bernoulli_(empty(), 0.0, g, success=2.0),
            lambda g: draw.normal_(np.empty((size, 2), dtype)[:, 0], 1.0, 2.0, g),
            lambda g: draw.uniform_(np.empty((size, 2), dtype).T, 1.0, 2.0, g),
            lambda g: draw.normal((), dtype, generator=g),
            lambda g: draw.log_normal((size,), dtype, generator=g),
        ]
    )


@pytest.mark.parametrize("size", [*SIZES, 100000])
def test_integers_and_words(size: int) -> None:
    assert_same_stream(
        [
            lambda g: draw.randperm(size, generator=g),
            lambda g: draw.randperm(size, np.dtype("int32"), g),
            lambda g: draw.randint(-3, 1000, (size,), generator=g),
            lambda g: draw.randint(0, 2**28 - 1, (size,), generator=g),
            lambda g: draw.randint(0, 2**40, (size,), generator=g),
            lambda g: draw.randint(0, 5, (size,), np.dtype("float32"), g),
            lambda g: g.random(size),
            lambda g: g.random64(size),
        ]
    )


def test_numpy_continues_where_the_loops_stopped() -> None:
    compiled, plain = generators()
    draw.uniform((1000,), FLOATS[0], generator=compiled)
    draw.uniform((1000,), FLOATS[0], generator=plain)
    np.testing.assert_array_equal(compiled._bits.random_raw(2000), plain._bits.random_raw(2000))


def test_a_state_that_is_set_is_what_the_loops_draw_from() -> None:
    generator = Generator().manual_seed(3)
    generator.random(100)
    state = generator.get_state()
    first = draw.normal((50,), FLOATS[0], generator=generator)
    generator.set_state(state)
    np.testing.assert_array_equal(draw.normal((50,), FLOATS[0], generator=generator), first)
    generator.manual_seed(3)
    assert generator.random(1)[0] == Generator().manual_seed(3).random(1)[0]


def test_dropout_keeps_or_scales() -> None:
    x = pullback.ones(10000)
    pullback.manual_seed(0)
    dropped = pullback.nn.functional.dropout(x, 0.25)
    kept = np.float32(1) / np.float32(0.75)
    values = dropped.numpy()
    assert set(np.unique(values).tolist()) == {0.0, float(kept)}
    assert abs((values != 0).mean() - 0.75) < 0.02


def test_wrong_arguments_are_refused_as_without_the_loops() -> None:
    with pytest.raises(RuntimeError, match=r"std >= 0\.0"):
        pullback.zeros(20).normal_(0, -1)
    with pytest.raises(RuntimeError, match="from"):
        pullback.zeros(20).uniform_(2, 1)
    with pytest.raises(RuntimeError, match="lambda"):
        pullback.zeros(20).exponential_(0)
    with pytest.raises(RuntimeError, match=r"p to be in \[0, 1\]"):
        pullback.zeros(20).bernoulli_(1.5)
    with pytest.raises(NotImplementedError, match="normal_kernel_cpu"):
        pullback.zeros(20, dtype=pullback.int64).normal_()
    with pytest.raises(RuntimeError, match="less than"):
        pullback.randint(5, 5, (3,))


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
def test_rejection(dtype: Any) -> None:
    values = np.random.default_rng(3).random(3000).astype(dtype)

    assert_same_stream(
        [
            lambda g: draw.poisson(values * 9, g),
            lambda g: draw.poisson(values * 300, g),
            lambda g: draw.poisson(values[:0], g),
            lambda g: draw.standard_gamma(values * 4, g),
            lambda g: draw.standard_gamma(values[:7], g),
            lambda g: draw.dirichlet(values.reshape(300, 10) + dtype.type(0.01), g),
            lambda g: draw.binomial(np.floor(values * 500), values[::-1].copy(), g),
            lambda g: draw.binomial(np.floor(values * 9), values[::-1].copy(), g),
            lambda g: draw.normal((3,), dtype, generator=g),
        ]
    )


def test_samples_are_not_written_to_memory_that_is_read_only() -> None:
    from pullback.backend.random.engine import fill_binomial

    state, counts, samples = np.ones(625, np.uint32), np.full(4, 9.0), np.zeros(4)
    assert fill_binomial(state, counts, counts / 18, samples)
    samples.flags.writeable = False
    assert not fill_binomial(state, counts, counts / 18, samples)
