"""The same programs of transforms on PyTorch and on pullback: values, shapes, dtypes, whether results require grad."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.func
from tests.parity.func_programs import NESTING, OPERATIONS, RANDOM, Program

torch = pytest.importorskip("torch")

Call = Callable[[Any, Any, bool], Any]

CALLS: dict[str, Call] = {
    "jacobian": lambda f, t, v: f.jacobian(lambda x: x.sum(), t.randn(2, 3), vectorize=v),
    "jacobian of two": lambda f, t, v: f.jacobian(
        lambda x, y: (x * y.sum(), y.exp()), (t.randn(2), t.randn(3)), vectorize=v
    ),
    "constant": lambda f, t, v: f.jacobian(lambda x: t.ones(3), t.randn(2), vectorize=v),
    "recorded": lambda f, t, v: f.jacobian(
        lambda x: (x**2,), t.randn(2, requires_grad=True), create_graph=True, vectorize=v
    ),
    "hessian": lambda f, t, v: f.hessian(
        lambda x, y: (x * y.sum()).pow(2).sum(), (t.randn(2), t.randn(3)), vectorize=v
    ),
    "hessian of a sum": lambda f, t, v: f.hessian(lambda x: x.sum(), t.randn(2), vectorize=v),
}


def functional(call: Call, vectorize: bool) -> Program:
    return lambda t: call(t.autograd.functional, t, vectorize)


FUNCTIONAL = {
    f"{name}, vectorize={vectorize}": functional(call, vectorize)
    for vectorize in (False, True)
    for name, call in CALLS.items()
}
PROGRAMS = {**NESTING, **RANDOM, **OPERATIONS, **FUNCTIONAL}


def described(value: Any, module: Any) -> Any:
    """A result as plain data, by which two libraries can be compared."""
    if isinstance(value, module.Tensor):
        return str(value.dtype).rpartition(".")[2], tuple(value.shape), value.requires_grad, value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [described(v, module) for v in value]
    if isinstance(value, dict):
        return {k: described(v, module) for k, v in value.items()}
    return value


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert actual[:3] == expected[:3]
        np.testing.assert_allclose(actual[3], expected[3], rtol=2e-4, atol=2e-5)
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    else:
        assert actual.keys() == expected.keys()
        for key in expected:
            assert_same(actual[key], expected[key])


@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms_agree(name: str) -> None:
    results = []
    for module in (pullback, torch):
        module.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(described(PROGRAMS[name](module), module))
    assert_same(*results)
