"""Numbers recorded from PyTorch 2.13 (seed 2026), the state's layout, and what the distributions refuse.

`tests/parity/test_random.py` compares to the last bit wherever PyTorch is installed. Here one unit in the last place
is allowed where the C library's log or cos takes part.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from pullback.backend import random
from pullback.backend.random import Generator, discrete, rejection
from pullback.typing import Array

F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
C64, I64, U8 = np.dtype(np.complex64), np.dtype(np.int64), np.dtype(np.uint8)
SEED = 2026

Draw = Callable[[Generator], Array]


def seeded() -> Generator:
    return Generator().manual_seed(SEED)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda g: random.uniform((4,), F32, generator=g), [0.152481139, 0.251915336, 0.731004357, 0.064265728]),
        (lambda g: random.uniform((2,), F64, generator=g), [0.21984947519733633, 0.8480353170340242]),
        (lambda g: random.uniform((3,), F16, generator=g), [0.1524658203125, 0.251953125, 0.73095703125]),
        (lambda g: random.uniform((1,), C64, generator=g), [0.15248113870620728 + 0.2519153356552124j]),
        (lambda g: random.uniform((4,), F32, -3, 10.1, g), [-1.00249708, 0.300090998, 6.57615757, -2.15811896]),
        (lambda g: random.uniform_(np.empty((3, 2), F32).T, generator=g),
         [[0.152481139, 0.731004357, 0.0186813474], [0.251915336, 0.064265728, 0.494526684]]),
        (lambda g: random.geometric((6,), F32, 0.2, g), [7, 1, 9, 13, 3, 4]),
        (lambda g: random.bernoulli_(np.empty(8, F32), 0.5, g), [1, 0, 1, 1, 0, 0, 0, 1]),
        (lambda g: random.bernoulli(np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.5], F32), g), [0, 1, 0, 1, 1, 1]),
        (lambda g: random.randint(0, 10, (8,), I64, g), [5, 4, 8, 6, 1, 7, 7, 0]),
        (lambda g: random.randint(-5, 2**40, (3,), I64, g), [7569128020, 115762777092, 334766047584]),
        (lambda g: random.random_(np.empty(2, I64), generator=g), [4046212693407858054, 7618721793331721144]),
        (lambda g: random.random_(np.empty(4, U8), generator=g), [1, 134, 26, 184]),
        (lambda g: random.random_(np.empty(3, F32), generator=g), [2558153, 4226242, 12264113]),
        (lambda g: random.randperm(10, I64, g), [5, 1, 4, 8, 7, 2, 0, 3, 6, 9]),
        (lambda g: random.multinomial(np.array([1, 2, 3, 4], F32), 6, True, g), [1, 3, 1, 0, 2, 2]),
        (lambda g: random.multinomial(np.array([1, 2, 3, 4], F32), 3, False, g), [3, 2, 0]),
        (lambda g: random.poisson(np.array([0.5, 3, 20, 100], F32), g), [0, 2, 21, 109]),
        (lambda g: random.binomial(np.array([10, 50, 1000], F32), np.array([0.3, 0.5, 0.9], F32), g), [2, 18, 900]),
    ],
)  # fmt: skip
def test_numbers_are_those_of_torch(draw: Draw, expected: list[Any]) -> None:
    actual = draw(seeded())
    np.testing.assert_array_equal(actual, np.array(expected, actual.dtype))


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda g: random.normal((3,), F32, generator=g), [0.365545779, 1.90646017, 0.216864914]),
        (lambda g: random.normal((2,), F64, generator=g), [0.36554577027235113, 1.906460216715314]),
        (lambda g: random.normal((3,), F32, 2, 0.5, g), [2.18277287, 2.95323014, 2.10843253]),
        (lambda g: random.normal((17,), F32, generator=g)[-4:], [0.684966862, -0.603017569, 0.599744916, -1.41402602]),
        (lambda g: random.normal((17,), F16, generator=g)[:3], [-0.1839599609375, 0.2437744140625, 0.07318115234375]),
        (lambda g: random.normal((17,), F64, generator=g)[:2], [-0.2018597053390618, 1.321569796337996]),
        (lambda g: random.normal((1,), C64, generator=g).view(F32), [0.25847989320755005, 1.3480709791183472]),
        (lambda g: random.exponential((3,), F32, 2.0, g), [0.124134198, 0.942053556, 0.0809367672]),
        (lambda g: random.cauchy((3,), F32, 1.0, 2.0, g), [-1.41991377, 4.86604357, -2.94200683]),
        (lambda g: random.log_normal((3,), F32, generator=g), [5.64681435, 123.090569, 4.194314]),
        (lambda g: random.standard_gamma(np.array([0.3, 1, 5], F32), g), [0.580153644, 0.354824007, 1.78737259]),
        (lambda g: random.dirichlet(np.array([0.3, 1, 5], F32), g), [0.213107646, 0.130337387, 0.656554937]),
    ],
)  # fmt: skip
def test_numbers_through_libm_are_those_of_torch(draw: Draw, expected: list[float]) -> None:
    actual = draw(seeded())
    np.testing.assert_array_max_ulp(actual, np.array(expected, actual.dtype), maxulp=1)


def test_a_thousand_normal_numbers_are_those_of_torch_to_the_last_bit() -> None:
    numbers = random.normal((1000,), F32, generator=seeded())
    digest = hashlib.sha256(numbers.tobytes()).hexdigest()
    assert digest == "86b54b75dcc30e7cb33bce11292242c2cc1d1ea51579a3ce7a9280d1ed9a6888"


def test_a_long_permutation_is_that_of_torch() -> None:
    digest = hashlib.sha256(random.randperm(5000, I64, seeded()).tobytes()).hexdigest()
    assert digest == "284244a445fb372a52c16b899724c5eb5b8b1c95c65bd3e907262a4e8f22ad70"


def test_what_a_float32_draw_keeps_is_exact() -> None:
    generator = Generator().manual_seed(3)
    random.normal((1,), F32, generator=generator)
    assert random.normal((1,), F64, generator=generator).tolist() == [0.17483339327910358]


@pytest.mark.filterwarnings("ignore:to - 1 is out of bounds")
def test_integers_up_to_the_greatest_of_64_bits_are_drawn_as_floats() -> None:
    expected = [4.046212693407858e18, 7.618721793331721e18, 8.792372609707579e18]
    assert random.randint(0, 2**63 - 1, (3,), F64, seeded()).tolist() == expected


def test_categories_without_replacement_are_contiguous() -> None:
    assert random.multinomial(np.ones((2, 5)), 2, False, seeded()).flags.c_contiguous


def test_the_cauchy_distribution_refuses_integers_even_if_there_are_none() -> None:
    with pytest.raises(RuntimeError, match="dtype must be a floating point but you specified unsigned char"):
        random.cauchy_(np.empty(0, U8))


@pytest.mark.parametrize("size", [1, 2, 3, 10, 500])
def test_exchanges_at_once_are_those_in_order(size: int) -> None:
    targets = np.arange(size) + random.random_(np.empty(size, I64), 0, 10**9, seeded()) % np.arange(size, 0, -1)
    expected = list(range(size))
    for place, target in enumerate(targets.tolist()):
        expected[place], expected[target] = expected[target], expected[place]
    np.testing.assert_array_equal(discrete._exchange_upwards(targets), expected)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_categories_of_many_rows_are_those_of_each_row(dtype: np.dtype[Any]) -> None:
    weights = np.random.default_rng(0).random((40, 30)).astype(dtype)
    weights[:, ::3] = 0
    points = random.uniform((40, 9), F64, generator=seeded())
    cumulative = np.cumsum(weights, -1)
    cumulative /= cumulative[:, -1:]
    expected = [np.searchsorted(row, values) for row, values in zip(cumulative, points, strict=True)]
    np.testing.assert_array_equal(random.multinomial(weights, 9, True, seeded()), expected)


@pytest.mark.parametrize("size", [3, 16, 300, 4100, 70000])
def test_rows_are_summed_in_a_cascade(size: int) -> None:
    values = np.random.default_rng(0).random((2, size))
    np.testing.assert_allclose(rejection._sum_of_rows(values), values.sum(-1, keepdims=True), rtol=1e-14)
    levels, lanes = np.zeros((4, 2, 4, 4)), values[:, : size - size % 16].reshape(2, -1, 4, 4)
    for step in range(lanes.shape[1]):
        levels[0] += lanes[:, step]
        for level in range(1, 4):
            if (step + 1) % 16**level:
                break
            levels[level] += levels[level - 1]
            levels[level - 1] = 0
    np.testing.assert_array_equal(rejection._sum_in_cascade(lanes), levels[0] + levels[1] + levels[2] + levels[3])


@pytest.mark.parametrize("size", [0, 1, 2, 7, 300])
def test_a_very_long_permutation_exchanges_downwards(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(discrete, "_LARGE_PERMUTATION", 0)
    expected = list(range(size))
    for i, word in enumerate(seeded().random64(size).tolist()):
        place = word % (i + 1)
        expected[i], expected[place] = expected[place], expected[i]
    assert random.randperm(size, I64, seeded()).tolist() == expected


def test_the_state_has_the_bytes_of_torch() -> None:
    generator = seeded()
    random.normal((1,), F32, generator=generator)
    state = generator.pack_state()
    assert state.dtype == np.uint8
    assert state.shape == (5056,)
    words = state.copy()
    words[5024:5032] = 0  # the normal sample kept back comes from libm
    expected = np.frombuffer(words.tobytes(), "<i4")
    assert expected[[0, 2, 3, 4, 1260]].tolist() == [SEED, 621, 1, 4, 1]
    assert generator.next_normal == pytest.approx(1.906460216715314, rel=1e-15)


@pytest.mark.parametrize("drawn", [0, 1, 311, 623, 624, 625, 2000])
def test_a_state_that_is_set_continues(drawn: int) -> None:
    generator = seeded()
    random.uniform((drawn,), F32, generator=generator)
    random.normal((1,), F32, generator=generator)
    other = Generator().set_state(generator.pack_state())
    np.testing.assert_array_equal(
        random.normal((5,), F64, generator=other), random.normal((5,), F64, generator=generator)
    )


def test_clones_and_pickles_continue_apart() -> None:
    generator = seeded()
    random.normal((3,), F32, generator=generator)
    clone, pickled = generator.clone_state(), pickle.loads(pickle.dumps(generator))
    expected = random.normal((3,), F32, generator=generator).tolist()
    assert random.normal((3,), F32, generator=clone).tolist() == expected
    assert random.normal((3,), F32, generator=pickled).tolist() == expected
    assert pickled.initial_seed() == SEED
    assert pickled.device == generator.device


@pytest.mark.parametrize(
    ("seed", "initial"), [(-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (np.int64(7), 7)]
)
def test_negative_seeds_count_from_above(seed: int, initial: int) -> None:
    assert Generator().manual_seed(seed).initial_seed() == initial


def test_only_the_low_bits_of_a_seed_reach_the_engine() -> None:
    low, high = Generator().manual_seed(5), Generator().manual_seed(5 + 2**32)
    assert low.random(3).tolist() == high.random(3).tolist()


def test_unseeded_generators_start_alike_and_seed_makes_them_differ() -> None:
    first, second = Generator(), Generator()
    assert first.initial_seed() == second.initial_seed() == 67280421310721
    assert first.seed() != second.seed()
    assert first.random(4).tolist() != second.random(4).tolist()


def test_the_default_generator_is_used_when_none_is_named() -> None:
    before = random.default_generator.pack_state()
    random.default_generator.manual_seed(SEED)
    actual = random.uniform((2,), F32).tolist()
    random.default_generator.set_state(before)
    assert actual == random.uniform((2,), F32, generator=seeded()).tolist()


def test_rejection_gives_back_what_it_read_ahead() -> None:
    together, apart = seeded(), seeded()
    rates = np.array([3.0, 20.0, 0.5, 100.0])
    expected = random.poisson(rates, together)
    actual = np.concatenate([random.poisson(rates[i : i + 1], apart) for i in range(4)])
    np.testing.assert_array_equal(actual, expected)
    assert together.pack_state().tobytes() == apart.pack_state().tobytes()


def test_threads_share_a_generator_without_losing_numbers() -> None:
    generator = seeded()
    drawn: list[Array] = []

    def draw() -> None:
        for _ in range(20):
            drawn.append(random.uniform((100,), F64, generator=generator))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = random.uniform((8000,), F64, generator=seeded())
    np.testing.assert_array_equal(np.sort(np.concatenate(drawn)), np.sort(expected))


def test_the_open_end_of_an_interval_is_never_reached() -> None:
    numbers = random.uniform((100_000,), F16, generator=seeded())
    assert numbers.min() >= 0
    assert numbers.max() < 1


def test_nan_parameters_give_nan() -> None:
    nan = np.array([math.nan])
    assert np.isnan(random.standard_gamma(nan)).all()
    assert np.isnan(random.binomial(nan, np.array([0.5]))).all()
    assert np.isnan(random.binomial(np.array([5.0]), nan)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Generator().manual_seed(cast(int, 1.5)), RuntimeError, "manual_seed expected a long, but got float"),
        (lambda: Generator().manual_seed(True), RuntimeError, "manual_seed expected a long, but got bool"),
        (lambda: Generator().manual_seed(2**64), ValueError, "Overflow when unpacking long long"),
        (lambda: Generator().manual_seed(-(2**63) - 1), ValueError, "Overflow when unpacking long long"),
        (lambda: Generator().set_state(np.zeros(10, U8)), RuntimeError,
         "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 10"),
        (lambda: Generator().set_state(np.zeros(5056)), TypeError, "RNG state must be a torch.ByteTensor"),
        (lambda: Generator().set_state(np.zeros(5056, U8)), RuntimeError, "Invalid mt19937 state"),
        (lambda: Generator().set_state(5), TypeError, "expected a torch.ByteTensor, but got int"),
        (lambda: Generator().get_offset(), RuntimeError, "CPU Generator does not use offset"),
        (lambda: Generator().set_offset(3), RuntimeError, "CPU Generator does not use offset"),
        (lambda: random.uniform((3,), F32, 2, 1), RuntimeError,
         r"uniform_ expects to return a \[from, to\) range, but found from=2 > to=1"),
        (lambda: random.uniform((3,), F32, math.nan, 1), RuntimeError, "from is out of bounds for float"),
        (lambda: random.uniform((3,), F16, 0, 1e5), RuntimeError, "to is out of bounds for c10::Half"),
        (lambda: random.uniform((3,), F32, -3e38, 3e38), RuntimeError, r"to-from <= std::numeric_limits<Float>"),
        (lambda: random.uniform((3,), I64), NotImplementedError, "\"check_uniform_bounds\" not implemented for 'Long'"),
        (lambda: random.normal((3,), F32, 0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
        (lambda: random.normal((2,), F32, 0, np.array([1, -1], F32)), RuntimeError,
         "normal expects all elements of std >= 0.0"),
        (lambda: random.normal((2,), F32, 0, np.array([1, 1], C64)), RuntimeError,
         "normal expects standard deviation to be non-complex"),
        (lambda: random.normal((2,), F32, 1j, 1.0), TypeError, "must be float, not complex"),
        (lambda: random.normal((2,), I64), NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'"),
        (lambda: random.bernoulli_(np.empty(3), 1.5), RuntimeError, r"expects p to be in \[0, 1\], but got p=1.5"),
        (lambda: random.bernoulli(np.array([0.5, 2])), RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true"),
        (lambda: random.bernoulli(np.array([1, 0])), NotImplementedError, "not implemented for 'Long'"),
        (lambda: random.bernoulli_(np.empty(3, C64)), NotImplementedError, "not implemented for 'ComplexFloat'"),
        (lambda: random.exponential((3,), F32, 0), RuntimeError, "exponential_ expects lambda > 0.0"),
        (lambda: random.exponential((3,), I64), RuntimeError, "dtype must be a floating point but you specified Long"),
        (lambda: random.geometric((3,), F32, 1), RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=1"),
        (lambda: random.geometric((3,), np.dtype(bool), 0.5), NotImplementedError, "not implemented for 'Bool'"),
        (lambda: random.cauchy((3,), F32, 0, 0), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"),
        (lambda: random.log_normal((3,), F32, 0, -1), RuntimeError, "log_normal_ expects std > 0.0, but found std=-1"),
        (lambda: random.randint(3, 3, (2,)), RuntimeError,
         "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"),
        (lambda: random.randint(0, 300, (2,), U8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
        (lambda: random.randint(-1, 3, (2,), U8), RuntimeError, "from is out of bounds for unsigned char"),
        (lambda: random.randint(0, 2**63, (2,)), ValueError, "Overflow when unpacking long long"),
        (lambda: random.randint(0, 2, (2,), C64), RuntimeError, "handles only integral, floating-point and boolean"),
        (lambda: random.random_(np.empty(2, np.uint16)), NotImplementedError, "not implemented for 'UInt16'"),
        (lambda: random.randperm(-1), RuntimeError, "Trying to create tensor with negative dimension -1"),
        (lambda: random.randperm(300, U8), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        (lambda: random.randperm(3000, F16), RuntimeError, "n cannot be greater than 2049 for Half type"),
        (lambda: random.randperm(5, C64), NotImplementedError, "\"randperm\" not implemented for 'ComplexFloat'"),
        (lambda: random.multinomial(np.array([1.0, -1.0]), 1), RuntimeError, "contains either `inf`, `nan` or element"),
        (lambda: random.multinomial(np.array([0.0, 0.0]), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda: random.multinomial(np.array([0.0, 0.0]), 5, True), RuntimeError, "sum of probabilities <= 0"),
        (lambda: random.multinomial(np.array([1.0, -1.0]), 5, True), RuntimeError, "probability entry < 0"),
        (lambda: random.multinomial(np.ones(2), 3), RuntimeError, "samples without replacement"),
        (lambda: random.multinomial(np.ones(2), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
        (lambda: random.multinomial(np.ones(2, I64), 1), RuntimeError, "only supports floating-point dtypes"),
        (lambda: random.multinomial(np.ones((1, 1, 1)), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
        (lambda: random.poisson(np.array([-1.0])), RuntimeError, "invalid Poisson rate"),
        (lambda: random.poisson(np.array([1])), NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'"),
        (lambda: random.standard_gamma(np.ones(1, F16)), NotImplementedError, "\"gamma_cpu\" not implemented"),
        (lambda: random.dirichlet(np.ones(1, F16)), NotImplementedError, "\"dirichlet\" not implemented for 'Half'"),
        (lambda: random.binomial(np.ones(1), np.ones(1, F32)), RuntimeError, "Found dtype Float but expected Double"),
        (lambda: random.binomial(np.ones(1, I64), np.ones(1)), ValueError, "floating-point dtypes for count"),
        (lambda: random.binomial(np.ones(1, F16), np.ones(1, F16)), NotImplementedError, "not implemented for 'Half'"),
    ],
)  # fmt: skip
def test_misuse_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_bounds_beyond_the_precision_of_a_float_warn() -> None:
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^24\), 2\^24\]"):
        random.randint(0, 2**25, (2,), F32)
