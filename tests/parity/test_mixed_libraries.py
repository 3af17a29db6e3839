"""Tensors of an installed PyTorch and of pullback in one expression: an error that names both."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.pow, operator.floordiv,
    operator.mod, operator.lt, operator.eq, operator.iadd,
]  # fmt: skip
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda t, p: pullback.cat([p, t]),
    lambda t, p: torch.cat([t, p]),
    lambda t, p: p.add_(t),
    lambda t, p: t.add_(p),
    lambda t, p: p.copy_(t),
    lambda t, p: pullback.nn.functional.mse_loss(p, t),
    lambda t, p: torch.nn.functional.mse_loss(t, p),
    lambda t, p: pullback.where(p > 0, t, p),
    lambda t, p: pullback.sin(t),
    lambda t, p: torch.sin(p),
    lambda t, p: pullback.nn.Linear(2, 2)(t),
    lambda t, p: torch.nn.Linear(2, 2)(p),
    lambda t, p: pullback.ones(2, requires_grad=True).mul(2).backward(t),
    lambda t, p: pullback.nn.Parameter(t),
    lambda t, p: pullback.distributions.Normal(t, p),
]
PLACES: list[Callable[[Any, Any], Any]] = [
    lambda t, p: setattr(p, "grad", t),
    lambda t, p: setattr(p, "data", t),
    lambda t, p: pullback.autograd.grad(p.sum(), t),
    lambda t, p: pullback.optim.SGD([t]),
    lambda t, p: pullback.nn.Module().register_buffer("b", t),
    lambda t, p: setattr(pullback.nn.Linear(1, 1), "weight", t),
    lambda t, p: pullback.func.grad(pullback.sum)(t),
    lambda t, p: pullback.utils.data.default_collate([t]),
    lambda t, p: pullback.zeros(2, dtype=t.dtype),
    lambda t, p: pullback.zeros(2, device=t.device),
]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("pytorch_first", [True, False])
def test_operators_name_both_libraries(function: Any, pytorch_first: bool) -> None:
    operands = [torch.ones(2), pullback.ones(2)]
    with pytest.raises(TypeError, match=r"torch\.Tensor.*pullback\.Tensor"):
        function(*(operands if pytorch_first else operands[::-1]))


@pytest.mark.parametrize("call", CALLS)
def test_functions_name_both_libraries(call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"torch\.Tensor.*pullback\.Tensor"):
        call(torch.ones(2), pullback.ones(2))


def test_values_of_pytorch_can_be_copied() -> None:
    assert pullback.tensor(torch.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("place", PLACES)
def test_what_only_the_library_tells_apart_is_named_with_it(place: Callable[[Any, Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"torch\.\w+ \(of the installed PyTorch\)"):
        place(torch.ones(2), pullback.ones(2, requires_grad=True))
