"""What the tests of elementwise kernels share: every rendered kernel, arguments for it, and the comparison."""

from __future__ import annotations

import itertools
from functools import lru_cache, wraps
from importlib import import_module
from typing import Any

import numpy as np

import pullback.native
from pullback import kernels
from pullback.expressions.python_sources import PythonSources
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from tools.codegen.generator import SOURCE
from tools.codegen.native_kernels import CParameter, NativeKernel, find_native_kernels

# Numbers that reach every variant of a kernel; 0.6 for the rest.
NUMBERS: dict[str, tuple[float, ...]] = {
    "alpha": (1, 2.5), "value": (1, -0.5), "exponent": (2, 3, -2, 0.5, -0.5, 1.5), "weight": (0.25, 0.75),
    "negative_slope": (0.01, 0.0, 3.0), "threshold": (0.4,), "beta": (1, 2.0), "scale": (1.5,),
}  # fmt: skip
TEXTS = {"approximate": ("none", "tanh"), "rounding_mode": ("floor", "trunc")}
# Where terms cancel, as in 1 - input * input near 1, the compiled kernel rounds less: factors of the tolerance.
CANCELLING = dict.fromkeys(
    (
        "acos_grad_of_input",
        "acosh_grad_of_input",
        "asin_grad_of_input",
        "atanh_grad_of_input",
        "gelu_backward",
        "sinc_grad_of_input",
    ),
    1000,
)
# Whose references lay out reversed arrays, or two arrays, in their own way.
OTHERWISE_LAID_OUT = ("digamma", "entr", "erf", "erfc", "erfinv", "expit", "lgamma", "sinc", "xlog1py", "xlogy")
# A product that overflows on its own need not do so where it is added in one step, as PyTorch's vectors do too.
FUSED = ("add", "sub", "addcmul", "lerp")


@lru_cache
def rendered_kernels() -> dict[str, NativeKernel]:
    """Every kernel that the generator renders, by name."""
    found = read_kernels(SOURCE / "kernels", [])
    operations = read_rules(SOURCE / "derivatives", found, [])
    return {
        kernel.name: kernel for kernel in find_native_kernels(PythonSources(SOURCE), operations, SOURCE / "native", [])
    }


def compiled(name: str) -> Any:
    """The callable of a rendered kernel."""
    kernel = rendered_kernels()[name]
    if kernel.is_line:
        return getattr(import_module(f"pullback.generated.{kernel.origin.split('.')[1]}"), name)
    return getattr(kernels, name)


def choices(parameter: CParameter, shape: tuple[int, ...], dtype: Any, seed: int, fill: Any = None) -> list[Any]:
    """Arguments to try for a parameter."""
    generator = np.random.default_rng(seed)
    if parameter.kind == "TEXT":
        return list(TEXTS[parameter.name])
    if parameter.kind in ("NUMBER", "OPTIONAL_NUMBER"):
        numbers: list[Any] = list(NUMBERS.get(parameter.name, (0.6,)))
        return [*numbers, None] if parameter.kind == "OPTIONAL_NUMBER" else numbers
    if parameter.kind == "MASK":
        return [generator.random(shape) < 0.5]
    array = generator.standard_normal(shape).astype(dtype) if fill is None else fill(generator, shape).astype(dtype)
    if parameter.kind == "OPTIONAL_ARRAY":
        return [array, None]
    return [array, 1.5] if parameter.kind == "ARRAY_OR_NUMBER" else [array]


def calls(name: str, shape: tuple[int, ...], dtype: Any, seed: int = 0, fill: Any = None) -> list[list[Any]]:
    """Argument lists that reach every variant of a kernel."""
    parameters = rendered_kernels()[name].parameters
    options = [choices(p, shape, dtype, seed + nr, fill) for nr, p in enumerate(parameters)]
    return [list(made) for made in itertools.product(*options) if any(isinstance(a, np.ndarray) for a in made)]


def keyword_names(name: str) -> list[str]:
    """The parameters that the kernel takes by keyword only."""
    code = compiled(name).__wrapped__
    while hasattr(code, "__wrapped__"):
        code = code.__wrapped__
    positional = code.__code__.co_argcount
    return [p.name for p in rendered_kernels()[name].parameters[positional:]]


def call(function: Any, name: str, arguments: list[Any]) -> Any:
    """Call with those arguments, by keyword where the signature asks for it."""
    keywords = keyword_names(name)
    positional = arguments[: len(arguments) - len(keywords)]
    return function(*positional, **dict(zip(keywords, arguments[len(positional) :], strict=True)))


def strictly_compiled(name: str) -> Any:
    """The compiled kernel with a reference that fails the test when it is asked."""

    def reference(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"{name} left a call to its reference")

    return pullback.native.native(wraps(compiled(name).__wrapped__)(reference))


def assert_same(name: str, actual: Any, expected: Any) -> None:
    """Compare type, dtype, shape, memory order and values."""
    expected = np.asarray(expected)
    assert type(actual) is np.ndarray
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.size > 1 and name not in OTHERWISE_LAID_OUT:
        assert actual.strides == expected.strides, (actual.strides, expected.strides)
    eps = float(np.finfo(actual.dtype).eps)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = min(float(finite.max()), 1.0) if finite.size else 1.0
    factor = CANCELLING.get(name, 1)
    np.testing.assert_allclose(actual, expected, rtol=16 * eps * factor, atol=4 * eps * scale * factor, equal_nan=True)
