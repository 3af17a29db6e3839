"""What went through pack hooks is unpacked once per node and pass, however often its rule reads it."""

from __future__ import annotations

from collections.abc import Callable
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


def values_seen(make: Callable[[Any], Any], *inputs: Any) -> tuple[list[Any], list[Any]]:
    """What the pack hook and, in a backward pass, the unpack hook are given."""
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor.tolist())
        return tensor

    def unpack(tensor: Any) -> Any:
        unpacked.append(tensor.tolist())
        return tensor

    with saved_tensors_hooks(pack, unpack):
        result = make(*inputs)
    result.sum().backward()
    return packed, unpacked


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda a, b: a * b, [[3.0], [2.0]]),  # other, self
        (lambda a, b: pullback.addcmul(a, a * 5, b), [[10.0], [3.0]]),  # tensor1, tensor2
        (lambda a, b: a**b, [[3.0], [2.0], [8.0]]),  # exponent, self, result
        (lambda a, b: pullback.dot(a, b), [[2.0], [3.0]]),  # self, tensor
    ],
)
def test_hooks_see_inputs_by_name_and_then_results(make: Callable[[Any], Any], expected: list[Any]) -> None:
    a, b = (pullback.tensor([value], requires_grad=True) for value in (2.0, 3.0))
    packed, unpacked = values_seen(make, a, b)
    assert packed == expected
    assert sorted(unpacked) == sorted(expected)


def test_the_indices_of_an_index_go_through_hooks() -> None:
    x, index = pullback.arange(3.0, requires_grad=True), pullback.tensor([2, 0])
    assert values_seen(lambda t: t[index], x) == ([[2, 0]], [[2, 0]])
    assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_all_that_a_node_packed_is_unpacked_whichever_gradient_is_wanted() -> None:
    quotient, inputs, calls = quotient_with_count()
    pullback.autograd.grad(quotient.sum(), inputs[:1])
    assert len(calls) == 2


def test_an_assignment_by_index_unpacks_what_it_saved_once() -> None:
    places, unpacked = pullback.tensor([0, 2]), []

    def unpack(tensor: Any) -> Any:
        unpacked.append(tensor)
        return tensor

    x, y = pullback.ones(3, 3, requires_grad=True), pullback.ones(2, requires_grad=True)
    with pullback.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        written = x.clone()
        written[1:, places] = y
    written.sum().backward()
    assert len(unpacked) == 1
    assert y.grad.tolist() == [2.0, 2.0]
