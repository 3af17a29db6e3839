"""hvp from the left where the Hessian is symmetric, and from the right where it may not be. See Note [Symmetric Hessians]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import functional


@pytest.fixture
def from_the_right(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one for each product that was computed from the right."""
    seen: list[Any] = []
    original = functional._product_from_the_right

    def watched(*args: Any) -> Any:
        seen.append(args)
        return original(*args)

    monkeypatch.setattr(functional, "_product_from_the_right", watched)
    return seen


def smooth(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + pullback.logsumexp(
        x.tanh(), 0
    ) * x.exp().mean()


def test_smooth_functions_are_multiplied_from_the_left(from_the_right: list[Any]) -> None:
    x, v = pullback.linspace(-1, 1, 6, dtype=pullback.float64), pullback.arange(6.0, dtype=pullback.float64)
    actual = functional.hvp(smooth, x, v)[1]
    assert from_the_right == []
    expected = functional.hvp(smooth, x, v, create_graph=True)[1]
    assert len(from_the_right) == 1
    assert pullback.allclose(actual, expected, rtol=1e-12)
    assert not actual.requires_grad


def asymmetric(x: Any) -> Any:
    return pullback.atan2(x[0], x[1]) + x.abs().sum()


def custom(x: Any) -> Any:
    class Crooked(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grads[0] * pullback.stack([x[0] * x[1], x[0]])

    return Crooked.apply(x)


@pytest.mark.parametrize("function", [asymmetric, custom, lambda x: (x**-1).sum(), lambda x: (x**1.5).sum()])
def test_others_are_multiplied_from_the_right(function: Callable[[Any], Any], from_the_right: list[Any]) -> None:
    functional.hvp(function, pullback.tensor([1.0, 2.0]), pullback.ones(2))
    assert len(from_the_right) == 1


def test_a_crooked_gradient_is_multiplied_as_it_is() -> None:
    product = functional.hvp(custom, pullback.tensor([2.0, 3.0]), pullback.tensor([1.0, 0.0]))[1]
    assert product.tolist() == [3.0, 1.0]


def test_a_product_that_is_not_finite_is_computed_again(from_the_right: list[Any]) -> None:
    functional.hvp(lambda x: x.log().sum(), pullback.tensor([0.0, 2.0]), pullback.ones(2))
    assert len(from_the_right) == 1


def test_strict_mode_is_not_changed(from_the_right: list[Any]) -> None:
    with pytest.raises(RuntimeError, match="independent of the input"):
        functional.hvp(lambda x: (2 * x).sum(), pullback.ones(2), pullback.ones(2), strict=True)
    functional.hvp(lambda x: (x**2).sum(), pullback.ones(2), pullback.ones(2), strict=True)
    assert len(from_the_right) == 1


def test_hooks_in_the_graph_run_as_often_as_ever(from_the_right: list[Any]) -> None:
    def hooked(x: Any) -> Any:
        square = x * x
        square.register_hook(lambda grad: grad * 2)
        return square.sum()

    assert functional.hvp(hooked, pullback.ones(2), pullback.ones(2))[1].tolist() == [4.0, 4.0]
    assert len(from_the_right) == 1
