"""`torch.ops.aten`: operators, their overloads, and what runs when they are called."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback

aten = pullback.ops.aten


def test_operators_and_overloads_print_as_in_pytorch() -> None:
    assert (str(aten.mm), repr(aten.mm)) == ("aten.mm", "<OpOverloadPacket(op='aten.mm')>")
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    assert repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    assert (aten.mm.default.name(), aten.add.Tensor.name()) == ("aten::mm", "aten::add.Tensor")
    assert str(aten.add.Tensor._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


def test_an_overload_is_one_object() -> None:
    assert aten.mm.default is pullback.ops.aten.mm.default
    assert aten.mm.default != aten.bmm.default
    assert {aten.add.Tensor: 1}[pullback.ops.aten.add.Tensor] == 1
    assert copy.deepcopy(aten.mm.default) is aten.mm.default
    assert pickle.loads(pickle.dumps(aten.add.Tensor)) is aten.add.Tensor


def test_overloads_know_their_operator() -> None:
    overload = aten.add.Scalar
    assert overload.overloadpacket is aten.add
    assert (overload.namespace, overload._opname, overload._overloadname) == ("aten", "add", "Scalar")
    assert {"Tensor", "Scalar"} <= set(aten.add.overloads())


def test_an_overload_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"The underlying op of 'aten\.add' has no overload name 'nothing'"):
        _ = aten.add.nothing


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: aten.add.Tensor(x, x, alpha=2), [3.0, 6.0]),
        (lambda x: aten.add(x, 1), [2.0, 3.0]),
        (lambda x: aten.sum.dim_IntList(x, [0]), 3.0),
        (lambda x: aten.mul.Tensor(self=x, other=x), [1.0, 4.0]),
        (lambda x: aten._softmax.default(x * 0, 0, False), [0.5, 0.5]),
        (lambda x: aten.tanh_backward.default(x, x * 0), [1.0, 2.0]),
        (lambda x: aten.threshold_backward.default(x, x - 1, 0), [0.0, 2.0]),
        (lambda x: aten.slice.Tensor(x, 0, 1, 2), [2.0]),
        (lambda x: aten._to_copy.default(x, dtype=pullback.int64), [1, 2]),
        (lambda x: aten._local_scalar_dense.default(x[0]), 1.0),
        (lambda x: aten.view.default(x, [2, 1]), [[1.0], [2.0]]),
        (lambda x: aten.expand.default(x, [2, 2]), [[1.0, 2.0], [1.0, 2.0]]),
        (lambda x: aten.detach.default(x), [1.0, 2.0]),
        (lambda x: aten.add_.Tensor(x.clone(), x), [2.0, 4.0]),
        (lambda x: aten.relu.default(-x), [0.0, 0.0]),
    ],
)
def test_overloads_run(call: Any, expected: Any) -> None:
    result = call(pullback.tensor([1.0, 2.0]))
    assert (result.tolist() if isinstance(result, pullback.Tensor) else result) == expected


def test_the_gradients_of_a_convolution_as_one_operator() -> None:
    image = pullback.randn(1, 2, 4, 4, requires_grad=True)
    weight = pullback.randn(3, 2, 3, 3, requires_grad=True)
    bias = pullback.randn(3, requires_grad=True)
    result = pullback.nn.functional.conv2d(image, weight, bias)
    grad = pullback.randn(result.shape)
    expected = pullback.autograd.grad(result, (image, weight, bias), grad)
    actual = aten.convolution_backward(
        grad, image.detach(), weight.detach(), [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]
    )
    pullback.testing.assert_close(actual, expected)


def test_an_overload_that_is_called_is_recorded() -> None:
    x = pullback.ones(2, requires_grad=True)
    assert type(aten.sin.default(x).grad_fn).__name__ == "SinBackward0"


def test_operators_without_a_function_can_be_named_and_not_called() -> None:
    overload = aten._fused_adam_.default
    assert str(overload) == "aten._fused_adam_.default"
    with pytest.raises(NotImplementedError, match="Could not run 'aten::_fused_adam_'"):
        overload()
