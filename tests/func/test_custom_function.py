"""autograd.Function under vmap and the other transforms."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.autograd import Function
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, vmap


class Cube(Function):
    """With a generated rule and a jvp."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * tangent


class ScaledProduct(Function):
    """Two inputs, a number, two outputs, a generated rule."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any, scale: float) -> Any:
        return x * y * scale, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, grad_product: Any, grad_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return grad_product * y * ctx.scale + grad_sum, grad_product * x * ctx.scale + grad_sum, None


class OwnRule(Function):
    """With a rule of its own, which gets whole batches."""

    calls: list[Any] = []

    @staticmethod
    def forward(x: Any) -> Any:
        return x.sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.unsqueeze(-1).expand(ctx.shape)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        OwnRule.calls.append((info.batch_size, info.randomness, x.shape))
        return OwnRule.apply(x.movedim(in_dims[0], 0)), 0


class NoRule(Cube):
    generate_vmap_rule = False


X = pullback.tensor([0.5, 1.0, 2.0])


def test_a_generated_rule_batches_forward_and_backward() -> None:
    assert pullback.equal(vmap(Cube.apply)(X), X**3)
    pullback.testing.assert_close(vmap(grad(Cube.apply))(X), 3 * X**2)
    pullback.testing.assert_close(vmap(grad(grad(Cube.apply)))(X), 6 * X)
    pullback.testing.assert_close(vmap(vmap(Cube.apply))(X.expand(2, 3)), (X**3).expand(2, 3))


def test_jacobians_and_hessians_of_a_custom_function() -> None:
    expected = pullback.diag(3 * X**2)
    pullback.testing.assert_close(jacrev(Cube.apply)(X), expected)
    pullback.testing.assert_close(jacfwd(Cube.apply)(X), expected)
    pullback.testing.assert_close(hessian(lambda x: Cube.apply(x).sum())(X), pullback.diag(6 * X))
    pullback.testing.assert_close(jacfwd(jacfwd(lambda x: Cube.apply(x).sum()))(X), pullback.diag(6 * X))


def test_a_shared_input_gets_the_sum_of_the_gradients() -> None:
    x, y = pullback.rand(4, 3), pullback.rand(3)

    def loss(x: Any, y: Any) -> Any:
        product, total = vmap(lambda a, b: ScaledProduct.apply(a, b, 2.0), in_dims=(0, None))(x, y)
        return product.pow(2).sum() + total.sum()

    def plain(x: Any, y: Any) -> Any:
        return (x * y * 2.0).pow(2).sum() + (x + y).sum()

    pullback.testing.assert_close(grad(loss, (0, 1))(x, y), grad(plain, (0, 1))(x, y))


def test_a_rule_of_its_own_gets_whole_batches_with_the_examples_where_they_are() -> None:
    OwnRule.calls.clear()
    x = pullback.arange(6.0).reshape(3, 2)
    assert pullback.equal(vmap(OwnRule.apply, in_dims=1)(x), x.sum(0))
    assert OwnRule.calls == [(2, "error", (3, 2))]
    assert pullback.equal(vmap(grad(OwnRule.apply))(x), pullback.ones(3, 2))


def test_without_a_rule_vmap_is_refused() -> None:
    with pytest.raises(RuntimeError, match="You tried to vmap over NoRule, but it does not have vmap support"):
        vmap(NoRule.apply)(X)


def test_without_setup_context_transforms_are_refused() -> None:
    class Old(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        grad(Old.apply)(pullback.tensor(1.0))


def test_the_jvp_of_a_function_under_vmap() -> None:
    tangents = pullback.eye(3)
    columns = vmap(lambda v: jvp(Cube.apply, (X,), (v,))[1])(tangents)
    pullback.testing.assert_close(columns, pullback.diag(3 * X**2))


def test_generated_rules_nest() -> None:
    x = pullback.rand(2, 2, 2)
    actual = vmap(vmap(jacrev(jacrev(Cube.apply))))(x)
    expected = pullback.stack([pullback.stack([jacrev(jacrev(lambda a: a**3))(b) for b in a]) for a in x])
    pullback.testing.assert_close(actual, expected)


def test_gradients_of_broadcast_inputs_are_summed() -> None:
    x = pullback.rand(4, 3)
    actual = vmap(grad(lambda a: ScaledProduct.apply(a, a.sum(), 2.0)[0].sum()))(x)
    pullback.testing.assert_close(actual, vmap(grad(lambda a: (a * a.sum() * 2.0).sum()))(x))
