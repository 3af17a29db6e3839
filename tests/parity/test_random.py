"""The same numbers as PyTorch's CPU generator, to the last bit, and the same state afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.backend import random
from pullback.typing import Array, DType

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

SIZES = [0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 47, 100, 1007, 8192, 8209]
SEEDS = [0, 1, 42, 2**40 + 3]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "bool"]


def numpy_dtype(name: str) -> DType:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def torch_dtype(name: str) -> Any:
    return getattr(torch, name)


def as_array(tensor: Any) -> Array:
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.numpy())


def assert_same(seed: int, theirs: Callable[[Any], Any], ours: Callable[[random.Generator], Array]) -> None:
    """Run both twice from one seed, so that the second run starts within a block, and compare values and states."""
    their_generator, our_generator = torch.Generator().manual_seed(seed), random.Generator().manual_seed(seed)
    for _ in range(2):
        expected, actual = as_array(theirs(their_generator)), ours(our_generator)
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        assert np.ascontiguousarray(actual).tobytes() == np.ascontiguousarray(expected).tobytes()
        assert our_generator.pack_state().tobytes() == their_generator.get_state().numpy().tobytes()


def assert_same_fill(name: str, method: str, size: int, seed: int, *arguments: float) -> None:
    assert_same(
        seed,
        lambda g: getattr(torch.empty(size, dtype=torch_dtype(name)), method)(*arguments, generator=g),
        lambda g: getattr(random, method)(np.empty(size, numpy_dtype(name)), *arguments, generator=g),
    )


@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (0.3, 0.7), (-3.0, 10.1), (1.0, 1.0001), (2.0, 2.0)])
def test_uniform_is_the_same(name: str, size: int, bounds: tuple[float, float]) -> None:
    assert_same_fill(name, "uniform_", size, 5, *bounds)


@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parameters", [(0.0, 1.0), (0.3, 1.7), (0.0, 0.02), (-5.0, 1.0), (1.0, 0.0)])
def test_normal_is_the_same(name: str, size: int, parameters: tuple[float, float]) -> None:
    assert_same_fill(name, "normal_", size, 6, *parameters)


@pytest.mark.parametrize("seed", SEEDS)
def test_many_normal_numbers_are_the_same(seed: int) -> None:
    assert_same_fill("float32", "normal_", 300_007, seed, 0.1, 3.3)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("exponential_", (1.0,)), ("exponential_", (2.7,)), ("cauchy_", (0.0, 1.0)), ("cauchy_", (0.3, 1.7)),
     ("log_normal_", (1.0, 2.0)), ("log_normal_", (0.3, 0.5)), ("geometric_", (0.3,)), ("bernoulli_", (0.3,))],
)  # fmt: skip
def test_other_continuous_distributions_are_the_same(
    name: str, size: int, method: str, arguments: tuple[float, ...]
) -> None:
    assert_same_fill(name, method, size, 7, *arguments)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_bernoulli_of_integers_is_the_same(name: str, p: float) -> None:
    assert_same_fill(name, "bernoulli_", 1001, 8, p)


@pytest.mark.parametrize("name", INTEGERS[:-1])
def test_geometric_of_integers_is_the_same(name: str) -> None:
    assert_same_fill(name, "geometric_", 1001, 8, 0.2)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("probabilities", FLOATS)
def test_bernoulli_with_a_tensor_of_probabilities_is_the_same(name: str, probabilities: str) -> None:
    p = torch.linspace(0, 1, 500, dtype=torch.float64).to(torch_dtype(probabilities))
    assert_same(
        9,
        lambda g: torch.empty(3, 500, dtype=torch_dtype(name)).bernoulli_(p.expand(3, 500), generator=g),
        lambda g: random.bernoulli_(np.empty((3, 500), numpy_dtype(name)), as_array(p), g),
    )


@pytest.mark.parametrize("name", FLOATS)
def test_bernoulli_of_an_array_is_the_same(name: str) -> None:
    p = torch.rand(20, 30, dtype=torch_dtype(name)).t()
    assert_same(10, lambda g: torch.bernoulli(p, generator=g), lambda g: random.bernoulli(as_array(p), g))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("size", [0, 1, 17, 700])
def test_random_without_bounds_is_the_same(name: str, size: int) -> None:
    assert_same_fill(name, "random_", size, 11)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("int64", 0, 10), ("int64", -5, 2**28 - 6), ("int64", -5, 2**28 - 5), ("int64", -(2**63), 2**63 - 1),
     ("int64", -(2**62), 2**62 + 5), ("int64", 0, 2**32), ("int64", 3, 2**32 + 9), ("int32", -(2**31), 2**31 - 1),
     ("uint8", 0, 256), ("int8", -128, 128), ("int16", -7, 300), ("bool", 0, 2), ("float32", -10, 10),
     ("float32", 0, 2**24), ("float64", 0, 2**53), ("float16", -2048, 2048), ("bfloat16", 0, 256),
     ("uint16", 0, 2**16), ("uint32", 0, 2**32), ("uint64", 0, 2**63 - 1)],
)  # fmt: skip
def test_random_in_a_range_is_the_same(name: str, low: int, high: int) -> None:
    assert_same_fill(name, "random_", 100, 12, low, high)


@pytest.mark.parametrize(
    ("name", "low"),
    [("int64", -(2**63)), ("int64", 0), ("int64", 2**62), ("int32", -5), ("uint8", 5), ("float32", 0), ("float16", 7),
     ("float64", -3), ("bool", 0)],
)  # fmt: skip
def test_random_from_a_lower_bound_is_the_same(name: str, low: int) -> None:
    assert_same(
        13,
        lambda g: torch.empty(50, dtype=torch_dtype(name)).random_(low, None, generator=g),
        lambda g: random.random_(np.empty(50, numpy_dtype(name)), low, None, g),
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("float32", 0, 2**25 + 1), ("float32", -(2**25) - 1, 2**25), ("float32", 2**26 + 3, 2**26 + 1000),
     ("float64", 0, 2**60 + 3), ("float16", -4099, 60001), ("bfloat16", 0, 999), ("float32", -(2**62) - 5, 2**62 + 7)],
)  # fmt: skip
def test_random_beyond_the_precision_of_a_float_is_the_same(name: str, low: int, high: int) -> None:
    assert_same_fill(name, "random_", 200, 14, low, high)


@pytest.mark.parametrize("size", [*SIZES, 3, 4, 100_003])
@pytest.mark.parametrize("name", ["int64", "int32", "float64"])
def test_randperm_is_the_same(size: int, name: str) -> None:
    assert_same(
        15,
        lambda g: torch.randperm(size, dtype=torch_dtype(name), generator=g),
        lambda g: random.randperm(size, numpy_dtype(name), g),
    )


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (1000,), (3, 7), (4, 300), (1, 1)])
@pytest.mark.parametrize(("num_samples", "replacement"), [(1, False), (1, True), (5, True), (999, True)])
def test_multinomial_is_the_same(name: str, shape: tuple[int, ...], num_samples: int, replacement: bool) -> None:
    weights = (torch.rand(shape, dtype=torch.float64) + 0.01).to(torch_dtype(name))
    assert_same(
        16,
        lambda g: torch.multinomial(weights, num_samples, replacement, generator=g),
        lambda g: random.multinomial(as_array(weights), num_samples, replacement, g),
    )


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (1000,), (3, 7), (4, 300)])
@pytest.mark.parametrize("num_samples", [2, 5])
def test_multinomial_without_replacement_is_the_same(name: str, shape: tuple[int, ...], num_samples: int) -> None:
    weights = torch.rand(shape, dtype=torch_dtype(name)) + 0.01
    assert_same(
        17,
        lambda g: torch.multinomial(weights, num_samples, generator=g),
        lambda g: random.multinomial(as_array(weights), num_samples, False, g),
    )


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("rate", [0.0, 0.5, 3.0, 9.99, 10.0, 15.0, 100.0])
def test_poisson_is_the_same(name: str, rate: float) -> None:
    rates = torch.full((7, 11), rate, dtype=torch_dtype(name)).t()
    assert_same(18, lambda g: torch.poisson(rates, generator=g), lambda g: random.poisson(as_array(rates), g))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.3, 0.5, 1.0, 3.3, 100.1])
def test_gamma_is_the_same(name: str, alpha: float) -> None:
    shapes = torch.full((7, 101), alpha, dtype=torch_dtype(name))
    assert_same(
        19, lambda g: torch._standard_gamma(shapes, generator=g), lambda g: random.standard_gamma(as_array(shapes), g)
    )


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (3,), (5, 2), (5, 7), (2, 50), (4, 200), (3, 300), (2, 1500), (2, 3, 4), ()])
def test_dirichlet_is_the_same(name: str, shape: tuple[int, ...]) -> None:
    concentrations = torch.rand(shape, dtype=torch_dtype(name)) * 3 + 0.001
    assert_same(
        20,
        lambda g: torch._sample_dirichlet(concentrations, generator=g),
        lambda g: random.dirichlet(as_array(concentrations), g),
    )


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(
    ("count", "prob"),
    [(1, 0.5), (10, 0.3), (10, 0.8), (19, 0.5), (20, 0.5), (50, 0.3), (100, 0.9), (1000, 0.37), (1e6, 0.77), (1e7, 0.3),
     (1e6, 1e-6), (5, 0), (5, 1), (0, 0.5)],
)  # fmt: skip
def test_binomial_is_the_same(name: str, count: float, prob: float) -> None:
    counts, probs = (torch.full((300,), value, dtype=torch_dtype(name)) for value in (count, prob))
    assert_same(
        21,
        lambda g: torch.binomial(counts, probs, generator=g),
        lambda g: random.binomial(as_array(counts), as_array(probs), g),
    )


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(
    "sample",
    [
        lambda draw, ones, g: draw.poisson(ones * 4, g),
        lambda draw, ones, g: draw.poisson(ones * 70, g),
        lambda draw, ones, g: draw.binomial(ones * 20, ones * 0.3, g),
        lambda draw, ones, g: draw.binomial(ones * 200, ones * 0.7, g),
    ],
)
def test_many_equal_rejections_are_the_same(name: str, sample: Any) -> None:
    ones = torch.ones(10_000, dtype=torch_dtype(name))
    assert_same(22, lambda g: sample(torch, ones, g), lambda g: sample(random, as_array(ones), g))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.02, 0.6, 1.0, 4.0, 40.0])
def test_many_equal_gammas_are_the_same(name: str, alpha: float) -> None:
    shapes = torch.full((10_000,), alpha, dtype=torch_dtype(name))
    assert_same(
        23, lambda g: torch._standard_gamma(shapes, generator=g), lambda g: random.standard_gamma(as_array(shapes), g)
    )


@pytest.mark.parametrize("method", ["uniform_", "normal_", "exponential_", "bernoulli_", "random_", "log_normal_"])
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize("layout", ["transposed", "permuted", "strided", "column", "expanded inside"])
def test_filling_what_is_not_contiguous_is_the_same(method: str, name: str, layout: str) -> None:
    def view(base: Any) -> Any:
        return {
            "transposed": lambda: base.swapaxes(0, 2),
            "permuted": lambda: base.swapaxes(1, 2).swapaxes(0, 1),
            "strided": lambda: base[::2, :, ::3],
            "column": lambda: base[:, 2, :],
            "expanded inside": lambda: base[:, None, 1:3].swapaxes(0, 3),
        }[layout]()

    assert_same(
        22,
        lambda g: getattr(view(torch.empty(6, 7, 8, dtype=torch_dtype(name))), method)(generator=g),
        lambda g: getattr(random, method)(view(np.empty((6, 7, 8), numpy_dtype(name))), generator=g),
    )


@pytest.mark.parametrize("method", ["uniform_", "normal_"])
def test_filling_complex_numbers_that_are_not_contiguous_is_the_same(method: str) -> None:
    assert_same(
        23,
        lambda g: getattr(torch.empty(6, 7, dtype=torch.complex64).t()[::2], method)(generator=g),
        lambda g: getattr(random, method)(np.empty((6, 7), np.complex64).T[::2], generator=g),
    )


@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("size", [3, 15, 40])
def test_normal_with_tensors_is_the_same(name: str, size: int) -> None:
    dtype = torch_dtype(name)
    mean, std = torch.rand(size, dtype=dtype), torch.rand(size, dtype=dtype).abs()
    arrays = as_array(mean), as_array(std)
    assert_same(
        24,
        lambda g: torch.normal(mean, std, generator=g),
        lambda g: random.normal((size,), numpy_dtype(name), *arrays, g),
    )
    assert_same(
        24,
        lambda g: torch.normal(mean, 1.7, generator=g),
        lambda g: random.normal((size,), numpy_dtype(name), arrays[0], 1.7, g),
    )


def test_normal_with_a_tensor_of_deviations_is_the_same() -> None:
    std = torch.rand(40)
    assert_same(
        25,
        lambda g: torch.normal(0.3, std, generator=g),
        lambda g: random.normal((40,), np.dtype(np.float32), 0.3, as_array(std), g),
    )


@pytest.mark.parametrize("draws", [0, 1, 3, 311, 312, 623, 624, 625])
@pytest.mark.parametrize("normals", [0, 1, 2])
def test_a_state_of_torch_is_continued(draws: int, normals: int) -> None:
    theirs = torch.Generator().manual_seed(77)
    torch.rand(draws, generator=theirs)
    torch.randn(normals, generator=theirs)
    ours = random.Generator()
    ours.set_state(theirs.get_state().numpy())
    assert ours.pack_state().tobytes() == theirs.get_state().numpy().tobytes()
    assert ours.initial_seed() == 77
    expected = torch.randn(5, generator=theirs).numpy()
    np.testing.assert_array_equal(random.normal((5,), np.dtype(np.float32), generator=ours), expected)


@pytest.mark.parametrize("seed", [0, -1, -(2**63), 2**64 - 1, 2**63, 12345678901])
def test_seeds_mean_the_same(seed: int) -> None:
    expected = torch.Generator().manual_seed(seed)
    actual = random.Generator().manual_seed(seed)
    assert actual.initial_seed() == expected.initial_seed()
    assert actual.pack_state().tobytes() == expected.get_state().numpy().tobytes()


def test_dropout_masks_are_the_same() -> None:
    torch.manual_seed(3)
    expected = torch.nn.functional.dropout(torch.ones(30, 50).t(), 0.3) != 0
    mask = np.empty((30, 50), np.bool_).T
    np.testing.assert_array_equal(random.bernoulli_(mask, 0.7, random.Generator().manual_seed(3)), expected.numpy())
