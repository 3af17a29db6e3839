"""Tensors print as PyTorch prints them: the same random values, shapes, states and print options in both."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pullback.tensor import formatting
from pullback.typing import Array

torch = pytest.importorskip("torch")

SPECIAL_VALUES = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf")]
BORDER_VALUES = [1e8, 1e8 + 8, 1e-4, 9.9999e-5, 1.0, 999.99, 1000.0, 1001.0, 9.99995, 0.1]
SHAPES = [(), (1,), (5,), (30,), (1500,), (0,), (2, 3), (0, 3), (2, 0), (40, 50), (2, 3, 4), (30, 2, 30), (1, 1, 2, 2)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"precision": 2, "sci_mode": True},
    {"precision": 7, "sci_mode": False},
    {"linewidth": 40},
    {"edgeitems": 1, "threshold": 4},
    {"edgeitems": 0},
    {"profile": "short"},
]


@pytest.fixture(autouse=True)
def _default_print_options() -> Iterator[None]:
    yield
    torch.set_printoptions(profile="default")
    formatting.set_printoptions(profile="default")


def sample_floats(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    normal = generator.standard_normal(shape)
    kinds = [
        normal,
        np.round(normal * 10),
        np.round(normal * 10.0 ** generator.integers(0, 10)),
        normal * 10.0 ** generator.integers(-12, 12, shape),
        normal * 10.0 ** generator.integers(-30, 30),
        generator.choice(SPECIAL_VALUES, shape),
        generator.choice(BORDER_VALUES, shape),
        np.where(generator.random(shape) < 0.2, generator.choice(SPECIAL_VALUES, shape), normal * 100),
    ]
    return np.asarray(kinds[generator.integers(len(kinds))])


def sample(dtype_name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    if dtype_name.startswith("complex"):
        return np.asarray(sample_floats(generator, shape) + 1j * sample_floats(generator, shape), dtype=dtype_name)
    if dtype_name.startswith("float"):
        return np.asarray(sample_floats(generator, shape), dtype=dtype_name)
    if dtype_name == "bool":
        return np.asarray(generator.random(shape) < 0.5)
    bounds = np.iinfo(dtype_name)
    return np.asarray(generator.integers(bounds.min, bounds.max, shape, dtype=dtype_name, endpoint=True))


@pytest.mark.filterwarnings("ignore")  # NumPy's overflow when a sample does not fit float16
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "dtype_name", ["float32", "float64", "float16", "complex64", "complex128", "int64", "int16", "uint8", "bool"]
)
def test_random_values_print_alike(dtype_name: str, options: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    arrays = [sample(dtype_name, shape, generator) for shape in SHAPES for _ in range(4)]
    torch.set_printoptions(**options)
    formatting.set_printoptions(**options)

    expected = [repr(torch.from_numpy(array)) for array in arrays]
    actual = [formatting.format_tensor(array, dtype_name=dtype_name, namespace="torch") for array in arrays]

    assert actual == expected


@pytest.mark.parametrize("length", range(1, 40))
def test_suffixes_wrap_alike(length: int) -> None:
    function: Any = type("F" * length, (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x.clone())})
    array = np.random.default_rng(length).standard_normal(random.Random(length).randrange(1, 20))
    result = function.apply(torch.from_numpy(array).requires_grad_())

    actual = formatting.format_tensor(
        array, dtype_name="float64", namespace="torch", requires_grad=True, grad_fn_name="F" * length + "Backward"
    )

    assert actual == repr(result)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch's own, on opening a dual level
@pytest.mark.parametrize("shape", [(), (3,), (12,), (3, 3)])
def test_a_dual_tensor_prints_alike(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    primal, tangent = np.asarray(generator.standard_normal(shape)), np.asarray(generator.standard_normal(shape))
    with torch.autograd.forward_ad.dual_level():
        expected = repr(torch.autograd.forward_ad.make_dual(torch.from_numpy(primal), torch.from_numpy(tangent)))
    written_tangent = formatting.format_tensor(tangent, dtype_name="float64", namespace="torch")

    actual = formatting.format_tensor(
        primal,
        dtype_name="float64",
        namespace="torch",
        tangent=formatting.format_spec(tangent, "", written_tangent),
    )

    assert actual == expected
