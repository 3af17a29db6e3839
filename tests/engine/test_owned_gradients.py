"""Gradients that are overwritten on their way: never one that somebody else can see. See Note [Owned gradients]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor

SIZE = (40, 50)  # beyond the smallest arrays, which are never overwritten


def leaf(seed: int) -> Any:
    return pullback.tensor(np.random.default_rng(seed).standard_normal(SIZE), requires_grad=True)


def test_a_gradient_that_two_inputs_get_is_not_overwritten_by_either() -> None:
    x, y, z = leaf(0), leaf(1), leaf(2)
    ((x * z - y * z) * z).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (z * z).detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), -(z * z).detach().numpy())
    np.testing.assert_allclose(z.grad.numpy(), (2 * z * (x - y)).detach().numpy())


def test_the_gradient_a_user_starts_with_stays_as_it_was() -> None:
    x = leaf(0)
    start = pullback.ones(SIZE, dtype=pullback.float64)
    (x.tanh() * 2).backward(start)
    assert bool((start == 1).all())


def test_retained_and_hooked_gradients_keep_their_values() -> None:
    x = leaf(0)
    seen: list[Any] = []
    first = x * 3
    first.retain_grad()
    second = first.exp()
    second.register_hook(seen.append)
    (second * 2).tanh().sum().backward()
    expected = 2 * (1 - (second * 2).tanh() ** 2)
    np.testing.assert_allclose(seen[0].numpy(), expected.detach().numpy())
    np.testing.assert_allclose(first.grad.numpy(), (expected * second).detach().numpy())


def test_a_captured_gradient_keeps_its_values() -> None:
    x = leaf(0)
    middle = x * 3
    loss = (middle.exp() * 2).sum()
    at_middle, at_x = pullback.autograd.grad(loss, (middle, x))
    np.testing.assert_allclose(at_middle.numpy(), (2 * middle.exp()).detach().numpy())
    np.testing.assert_allclose(at_x.numpy(), (6 * middle.exp()).detach().numpy())


def test_the_gradient_of_a_leaf_is_not_overwritten_through_another_path() -> None:
    x, y = leaf(0), leaf(1)
    total = (x * y) + y  # y's second gradient is the one that arrives, the first is computed from it
    (total * 2).tanh().sum().backward()
    inner = 2 * (1 - (total * 2).tanh() ** 2)
    np.testing.assert_allclose(x.grad.numpy(), (inner * y).detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), (inner * (x + 1)).detach().numpy())


@pytest.mark.parametrize("first", [True, False])
def test_an_arrival_that_is_owned_takes_the_sum(first: bool) -> None:
    from pullback.engine.input_buffer import InputBuffer

    borrowed, owned = np.ones(3), np.full(3, 2.0)
    buffer = InputBuffer(1)
    for grad, is_owned in ((owned, True), (borrowed, False)) if first else ((borrowed, False), (owned, True)):
        buffer.add(0, grad, is_owned)
    assert buffer.grads[0] is owned
    assert buffer.owned[0]
    assert borrowed.tolist() == [1.0] * 3
    assert owned.tolist() == [3.0] * 3


@pytest.mark.parametrize(
    "function",
    [pullback.rad2deg, lambda x: 3 - x, lambda x: x.to(pullback.float64), lambda x: pullback.nn.functional.glu(x, 0)],
    ids=["rad2deg", "3 - x", "double", "glu"],
)
def test_a_large_gradient_that_a_rule_made_is_not_copied(function: Callable[[Tensor], Tensor]) -> None:
    x = pullback.rand(5000, requires_grad=True)
    function(x).sum().backward()
    assert x.grad is not None
    assert x.grad._version == 0  # a copy is written to once


def test_gradients_that_somebody_else_holds_are_copied() -> None:
    x, y = (pullback.rand(5000, requires_grad=True) for _ in range(2))
    given = pullback.ones(5000)
    (x + y).backward(given)
    assert x.grad is not None
    assert y.grad is not None
    memories = [tensor.detach().numpy() for tensor in (x.grad, y.grad, given)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(memories) for b in memories[:i])


def test_a_saved_value_that_is_the_gradient_stays_as_it_was() -> None:
    class Product(pullback.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(factor)
            return x * factor

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            return ctx.saved_tensors[0], None

    x, factor = pullback.rand(5000, requires_grad=True), pullback.rand(5000)
    before = factor.clone()
    Product.apply(x, factor).sum().backward()
    assert x.grad is not None
    x.grad.zero_()
    assert factor.equal(before)
