"""Code of a user that must pass mypy --strict: it is type-checked with the tests."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback.autograd.function import Function, FunctionCtx


class Square(Function):
    """A custom Function, typed."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        result: Tensor = 2 * x * grad
        return result


class Named(Tensor):
    """A subclass with an attribute of its own."""

    label: str = ""


def use() -> Any:
    """Calls with the types that users see."""
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    y: Tensor = Square.apply(x)
    total: Tensor = (y + 1).sum() @ y
    with pullback.no_grad():
        total.backward()
    return x.grad
