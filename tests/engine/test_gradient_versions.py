"""The version of a gradient says how often it was written to, as PyTorch's sums of gradients do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

X = pullback.Tensor
OTHER = pullback.ones(2, 3)


def leaf() -> X:
    return pullback.ones(2, 3, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "version"),
    [
        (lambda x: (x.sin() * x.cos()).sum(), 1),
        (lambda x: (x.sin() + x.cos() + x.exp()).sum(), 2),
        (lambda x: (x.sin() + x).sum(), 0),  # the gradient of the sum is one number, expanded
        (lambda x: ((x.sin() + x) * OTHER).sum(), 1),
        (lambda x: x.exp().sum() * x.sum(), 0),
        (lambda x: (x.sin() * x + x).sum(), 1),
        (lambda x: pullback.stack([x, x.sin()]).sum(), 0),
        (lambda x: x.mean(), 0),
        (lambda x: (x**2).sum(), 0),
        (lambda x: pullback.addcmul(x, x.sin(), x).sum(), 1),
    ],
    ids=["product", "three", "sum", "scaled sum", "sums", "nested", "stack", "mean", "square", "addcmul"],
)
def test_additions_in_place_are_counted(function: Callable[[X], X], version: int) -> None:
    x = leaf()
    function(x).backward()
    assert x.grad is not None
    assert (x.grad._version, pullback.autograd.grad(function(x), x)[0]._version) == (version, version)


def test_the_gradient_of_a_sum_is_copied() -> None:
    x = leaf()
    x.sum().backward()
    assert x.grad is not None
    assert (x.grad._version, x.grad.stride()) == (1, (3, 1))


@pytest.mark.parametrize(
    ("hook", "version"),
    [
        (lambda grad: None, 0),
        (lambda grad: grad, 0),
        (lambda grad: grad * 2, 0),
        (lambda grad: grad.add_(1), 1),
    ],
    ids=["nothing", "itself", "another", "written"],
)
def test_a_hook_that_keeps_nothing_costs_no_copy(hook: Callable[[X], Any], version: int) -> None:
    x = leaf()
    x.register_hook(hook)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad._version == version


def test_a_gradient_that_a_hook_keeps_is_copied() -> None:
    x = leaf()
    kept: list[X] = []
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.data_ptr() != kept[0].data_ptr()
    x.grad.zero_()
    assert kept[0].tolist() == [[2.0] * 3] * 2


def test_a_view_of_a_gradient_that_a_hook_keeps_is_not_overwritten() -> None:
    x = leaf()
    kept: list[X] = []
    x.register_hook(lambda grad: kept.append(grad[0]))
    (x * 2).sum().backward()
    assert x.grad is not None
    x.grad.zero_()
    assert kept[0].tolist() == [2.0] * 3


def test_transforms_sum_out_of_place() -> None:
    def function(x: X) -> X:
        return (x.sin() * x).sum()

    assert pullback.func.grad(function)(pullback.ones(2))._version == 0
    assert pullback.func.vjp(function, pullback.ones(2))[1](pullback.tensor(1.0))[0]._version == 0


def test_the_given_gradient_is_handed_on_as_it_is() -> None:
    a, b, given = leaf(), leaf(), pullback.ones(2, 3)
    first, second = pullback.autograd.grad(a + b, [a, b], given)
    assert first is given
    assert second is given


def test_equal_gradients_are_one_tensor() -> None:
    a, b = leaf(), leaf()
    first, second = pullback.autograd.grad(((a + b) * 2).sum(), [a, b])
    assert first is second
