"""What went through pack hooks is unpacked once per node and pass, however often its rule reads it."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.autograd.graph import saved_tensors_hooks
from pullback.utils.checkpoint import checkpoint


def quotient_with_count() -> tuple[Any, Any, list[int]]:
    x, y = pullback.ones(3, requires_grad=True), pullback.full((3,), 2.0, requires_grad=True)
    calls: list[int] = []

    def unpack(tensor: Any) -> Any:
        calls.append(1)
        return tensor

    with saved_tensors_hooks(lambda tensor: tensor, unpack):
        return x / y, (x, y), calls


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_value_that_two_lines_of_a_rule_read_is_unpacked_once(create_graph: bool) -> None:
    quotient, inputs, calls = quotient_with_count()
    grads = pullback.autograd.grad(quotient.sum(), inputs, create_graph=create_graph)
    assert len(calls) == 2
    assert grads[1].tolist() == [-0.25] * 3


def test_each_pass_unpacks_again() -> None:
    quotient, _, calls = quotient_with_count()
    quotient.sum().backward(retain_graph=True)
    quotient.sum().backward()
    assert len(calls) == 4


def test_users_see_the_hook_run_each_time() -> None:
    quotient, _, calls = quotient_with_count()
    assert quotient.grad_fn._saved_other.tolist() == quotient.grad_fn._saved_other.tolist()
    assert len(calls) == 2


def test_quotients_and_convolutions_can_be_checkpointed() -> None:
    x, y = pullback.ones(3, requires_grad=True), pullback.full((3,), 2.0, requires_grad=True)
    checkpoint(lambda a, b: a / b, x, y, use_reentrant=False).sum().backward()
    assert y.grad.tolist() == [-0.25] * 3
    layer, image = nn.Conv2d(1, 1, 2), pullback.ones(1, 1, 3, 3, requires_grad=True)
    checkpoint(layer, image, use_reentrant=False).sum().backward()
    assert layer.bias.grad.tolist() == [4.0]
