"""Elementwise operations beside PyTorch: values, dtypes, node names, gradients, second order and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch: Any = pytest.importorskip("torch")
PULLBACK: Any = pullback

TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2, "complex128": 1e-9}
REALS = ("float64", "float32", "float16", "bfloat16")
NUMBERS = (*REALS, "complex128", "int64", "uint8")
ALL = (*NUMBERS, "bool")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e-30, 1e30, 6.0]


def names(text: str) -> list[str]:
    return text.split()


UNARY = {
    **dict.fromkeys(names("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sigmoid sgn angle"), ALL),
    **dict.fromkeys(names("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh conj_physical"), ALL),
    **dict.fromkeys(names("isnan isinf isfinite isreal logical_not"), ALL),
    "abs": NUMBERS, "neg": NUMBERS, "positive": NUMBERS, "floor": (*REALS, "int64"), "ceil": (*REALS, "int64"),
    "trunc": (*REALS, "int64"), "round": (*REALS, "int64"), "frac": REALS, "sign": (*REALS, "int64", "bool"),
    "signbit": (*REALS, "int64"), "nan_to_num": (*REALS, "int64"), "relu": (*REALS, "int64"), "erf": REALS,
    "erfc": REALS, "deg2rad": REALS, "rad2deg": REALS, "bitwise_not": ("int64", "uint8", "bool"),
}  # fmt: skip
ACTIVATIONS = names(
    "relu6 gelu silu mish logsigmoid softplus softshrink hardshrink hardtanh hardswish elu selu celu leaky_relu "
    "tanhshrink softsign rrelu"
)
BINARY = {
    **dict.fromkeys(names("add mul div eq ne logical_and logical_or logical_xor"), ALL),
    "sub": NUMBERS, "pow": REALS, "floor_divide": (*REALS, "int64"), "remainder": REALS, "fmod": REALS,
    "lt": (*REALS, "int64", "bool"), "ge": (*REALS, "int64", "bool"), "maximum": (*REALS, "int64", "bool"),
    "minimum": (*REALS, "int64", "bool"), "fmax": REALS, "fmin": REALS, "atan2": (*REALS, "int64"), "hypot": REALS,
    "copysign": (*REALS, "int64"), "ldexp": REALS, "xlogy": (*REALS, "int64"), "logaddexp": REALS, "logaddexp2": REALS,
    "isclose": (*REALS, "int64"), "bitwise_and": ("int64", "uint8", "bool"), "bitwise_xor": ("int64", "uint8", "bool"),
    "bitwise_left_shift": ("int64", "uint8"), "bitwise_right_shift": ("int64", "uint8"), "gcd": ("int64", "uint8"),
    "lcm": ("int64", "uint8"), "float_power": (*REALS, "int64"), "rsub": NUMBERS,
}  # fmt: skip
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "2 + x": lambda x: 2 + x, "x - 2.5": lambda x: x - 2.5, "1 - x": lambda x: 1 - x, "x * 3": lambda x: x * 3,
    "2 / x": lambda x: 2 / x, "x / 2": lambda x: x / 2, "x ** 2": lambda x: x**2, "x ** 3": lambda x: x**3,
    "x ** 0": lambda x: x**0, "x ** 0.5": lambda x: x**0.5, "2 ** x": lambda x: 2**x, "x == 1": lambda x: x == 1,
    "x * 2j": lambda x: x * 2j,
}  # fmt: skip
KINKS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda F, x: F.relu(x), "abs": lambda F, x: abs(x), "clamp": lambda F, x: x.clamp(-1, 1),
    "clamp_min": lambda F, x: x.clamp_min(0), "clamp_max": lambda F, x: x.clamp(max=0), "sign": lambda F, x: x.sign(),
    "sqrt": lambda F, x: x.abs().sqrt(), "hardtanh": lambda F, x: F.hardtanh(x), "relu6": lambda F, x: F.relu6(x),
    "hardshrink": lambda F, x: F.hardshrink(x), "softshrink": lambda F, x: F.softshrink(x),
    "elu": lambda F, x: F.elu(x), "leaky_relu": lambda F, x: F.leaky_relu(x),
    "threshold": lambda F, x: F.threshold(x, 1, 5),
    "hardswish": lambda F, x: F.hardswish(x), "maximum": lambda F, x: x.maximum(x.detach() * 0 + 1),
    "minimum": lambda F, x: x.minimum(x * 1), "fmax": lambda F, x: x.fmax(x.detach() * 1),
    "floor": lambda F, x: x.floor(), "pow": lambda F, x: x**2.5, "pow-0": lambda F, x: x**0,
    "frac": lambda F, x: x.frac(), "fmod": lambda F, x: x.fmod(1),
}  # fmt: skip


def values(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, size=shape).astype(bool)
    if dtype in ("int64", "uint8"):
        return rng.integers(1, 6, size=shape).astype(dtype)
    made = rng.normal(size=shape) * 1.5
    return made + 1j * rng.normal(size=shape) if dtype == "complex128" else made


def tensors(library: Any, dtypes: list[str], shapes: list[tuple[int, ...]]) -> list[Any]:
    """The same inputs in either library; those that can require grad do."""
    made = []
    for index, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True)):
        array = np.asarray(values(dtype, shape, index))
        tensor = library.from_numpy(array).to(getattr(library, dtype)).detach()
        made.append(tensor.requires_grad_() if dtype not in ("bool", "int64", "uint8") else tensor)
    return made


def as_array(tensor: Any) -> Any:
    if "bfloat16" in str(tensor.dtype):
        tensor = tensor.float()
    if isinstance(tensor, torch.Tensor):
        tensor = torch.clone(tensor.detach()).resolve_conj().resolve_neg()
    return tensor.detach().numpy()


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def assert_same(actual: Any, expected: Any, factor: float = 1.0, least: float = 0.0) -> None:
    assert dtype_name(actual) == dtype_name(expected)
    assert tuple(actual.shape) == tuple(expected.shape)
    tolerance = max(TOLERANCE.get(dtype_name(expected), 0.0), least) * factor
    np.testing.assert_allclose(as_array(actual), as_array(expected), rtol=tolerance, atol=tolerance)


def gradients(library: Any, result: Any, inputs: list[Any], *, create_graph: bool = False) -> list[Any]:
    cotangent = library.from_numpy(np.asarray(values("float64", tuple(result.shape), 7))).to(result.dtype)
    wanted = [i for i in inputs if i.requires_grad]
    return list(library.autograd.grad(result, wanted, cotangent, create_graph=create_graph, allow_unused=True))


def compare(call: Callable[[Any], Callable[..., Any]], dtypes: list[str], shapes: list[tuple[int, ...]]) -> None:
    """Values, node names, gradients of both paths, and in double precision the second order."""
    theirs, ours = tensors(torch, dtypes, shapes), tensors(PULLBACK, dtypes, shapes)
    expected, actual = call(torch)(*theirs), call(PULLBACK)(*ours)
    assert_same(actual, expected)
    assert actual.requires_grad == expected.requires_grad
    if not expected.requires_grad or "NotImplemented" in str(expected.grad_fn):
        return
    assert actual.grad_fn is None or actual.grad_fn.name() == expected.grad_fn.name()
    first = gradients(torch, expected, theirs, create_graph=True)
    differentiable = gradients(PULLBACK, actual, ours, create_graph=True)
    on_arrays = gradients(PULLBACK, call(PULLBACK)(*ours), ours)
    least = max(TOLERANCE.get(dtype, 0.0) for dtype in dtypes)  # PyTorch computes mixed gradients in the lower one
    for mine, array, reference in zip(differentiable, on_arrays, first, strict=True):
        assert_same(array, reference, 4, least)
        assert_same(mine, reference, 4, least)
    if "float64" in dtypes and first[0].requires_grad:
        second = gradients(torch, first[0], theirs)
        for mine, reference in zip(gradients(PULLBACK, differentiable[0], ours), second, strict=True):
            if mine is not None and reference is not None:
                assert_same(mine, reference, 100)


UNARY_CASES = [(name, dtype) for name, dtypes in UNARY.items() for dtype in dtypes]
BINARY_CASES = [(name, dtype) for name, dtypes in BINARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 2)])
def test_unary_operations_agree(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    compare(lambda library: getattr(library, name), [dtype], [shape])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree(name: str, dtype: str) -> None:
    compare(lambda library: getattr(library.nn.functional, name), [dtype], [(3, 4)])


@pytest.mark.parametrize(("name", "dtype"), BINARY_CASES)
@pytest.mark.parametrize("shapes", [[(3, 4), (3, 4)], [(3, 1), (4,)], [(2, 3), ()]])
def test_binary_operations_agree(name: str, dtype: str, shapes: list[tuple[int, ...]]) -> None:
    compare(lambda library: getattr(library, name), [dtype, dtype], shapes)


@pytest.mark.parametrize(
    "dtypes", [["int64", "float32"], ["float32", "float64"], ["bool", "int64"], ["uint8", "int64"]]
)
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq"])
@pytest.mark.parametrize("shapes", [[(3,), (3,)], [(3,), ()], [(), (3,)]])
def test_mixed_dtypes_agree(name: str, dtypes: list[str], shapes: list[tuple[int, ...]]) -> None:
    compare(lambda library: getattr(library, name), dtypes, shapes)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex128", "int64", "bool"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_numbers_agree(name: str, dtype: str) -> None:
    if dtype == "bool" and ("-" in name or "**" in name):
        pytest.skip("bools have no difference and no powers")
    compare(lambda library: OPERATORS[name], [dtype], [(2, 3)])


@pytest.mark.parametrize("name", KINKS)
def test_subgradients_at_kinks_agree(name: str) -> None:
    points = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0]
    grads = []
    for library, functional in ((torch, torch.nn.functional), (PULLBACK, PULLBACK.nn.functional)):
        x = library.tensor(points, dtype=library.float64, requires_grad=True)
        result = KINKS[name](functional, x)
        grads.append(as_array(library.autograd.grad(result, x, library.ones(9, dtype=library.float64))[0]))
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-6)


@pytest.mark.parametrize("name", [n for n, dtypes in UNARY.items() if "float64" in dtypes and n != "square"])
def test_special_values_agree(name: str) -> None:
    expected = getattr(torch, name)(torch.tensor(SPECIAL, dtype=torch.float64))
    assert_same(getattr(PULLBACK, name)(PULLBACK.tensor(SPECIAL, dtype=PULLBACK.float64)), expected)


ERRORS: list[Callable[[Any], Any]] = [
    lambda t: t.ones(2) + t.ones(3),
    lambda t: t.tensor([True]) - t.tensor([True]),
    lambda t: t.tensor([1.5]) - True,
    lambda t: -t.tensor([True]),
    lambda t: t.tensor([1, 2]) // 0,
    lambda t: t.tensor([1, 2]) % 0,
    lambda t: t.tensor([1, 2]) ** -1,
    lambda t: t.tensor([1j]) < 1,
    lambda t: t.tensor([1.5]) & 1,
    lambda t: t.floor(t.tensor([1j])),
    lambda t: t.sign(t.tensor([1j])),
    lambda t: t.clamp(t.ones(2)),
    lambda t: t.where(t.ones(2), 1, 2),
    lambda t: t.add(t.tensor([1]), t.tensor([1]), alpha=1.5),
    lambda t: t.div(t.ones(2), 2, rounding_mode="up"),
    lambda t: t.tensor([1]).add_(1.5),
    lambda t: t.lerp(t.ones(2), t.ones(2, dtype=t.float64), 0.5),
    lambda t: t.complex(t.ones(2), t.ones(2, dtype=t.float64)),
    lambda t: t.isclose(t.ones(2), t.ones(2, dtype=t.float64)),
    lambda t: t.addcdiv(t.tensor([1]), t.tensor([1]), t.tensor([1])),
    lambda t: t.ones(2) + "a",
    lambda t: t.exp("a"),
]


@pytest.mark.parametrize("program", ERRORS, ids=range(len(ERRORS)))
def test_errors_are_of_the_same_type_and_begin_alike(program: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as expected:  # whatever PyTorch raises
        program(torch)
    with pytest.raises(expected.type) as actual:
        program(PULLBACK)
    assert str(actual.value)[:20] == str(expected.value)[:20]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 1.7, -3])
def test_products_and_quotients_of_16_bits_by_numbers_are_equal(dtype: str, number: float) -> None:
    values = np.random.default_rng(0).normal(0, 3, 2000).tolist()
    for call in (lambda x: x * number, lambda x: x / number, lambda x: number / x, lambda x: x // number):
        expected = call(torch.tensor(values, dtype=getattr(torch, dtype)))
        actual = call(PULLBACK.tensor(values, dtype=getattr(PULLBACK, dtype)))
        assert actual.tolist() == expected.tolist()
