"""A fused node is one node to the engine and PyTorch's several nodes to who looks. See Note [Fused nodes]."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.nn import functional as F


def tree(node: Any) -> Any:
    """The names of a node and of those behind it."""
    return node and (type(node).__name__.removesuffix("Backward0"), *[tree(n) for n, _ in node.next_functions])


def linear(*shape: int) -> tuple[Any, Any, Any, Any]:
    """A layer's output with its input, weight and bias."""
    pullback.manual_seed(0)
    x = pullback.rand(*shape, requires_grad=True)
    weight, bias = pullback.rand(2, shape[-1], requires_grad=True), pullback.rand(2, requires_grad=True)
    return F.linear(x, weight, bias), x, weight, bias


LEAF = ("AccumulateGrad",)
STEPS = ("View", ("Addmm", LEAF, ("View", LEAF), ("T", LEAF)))


def gradients(tensors: Any) -> list[Any]:
    return [t.grad.clone() for t in tensors]


def test_looking_changes_no_gradient() -> None:
    output, *leaves = linear(3, 4, 5)
    output.sin().sum().backward()
    expected = gradients(leaves)
    output, *leaves = linear(3, 4, 5)
    assert tree(output.grad_fn) == STEPS
    output.sin().sum().backward()
    for actual, wanted in zip(gradients(leaves), expected, strict=True):
        pullback.testing.assert_close(actual, wanted)


def test_looking_twice_shows_the_same_nodes() -> None:
    output = linear(3, 4, 5)[0]
    first, second = output.grad_fn.next_functions, output.grad_fn.next_functions
    assert first == second
    assert first[0][0].next_functions[1][0] is second[0][0].next_functions[1][0]


def test_hooks_on_inner_nodes_see_and_replace_their_gradients() -> None:
    output, x, weight, bias = linear(3, 4, 5)
    product = output.grad_fn.next_functions[0][0]
    seen: list[Any] = []
    product.register_prehook(lambda grads: seen.append([tuple(g.shape) for g in grads]))
    product.register_hook(lambda inputs, outputs: (inputs[0], inputs[1] * 2, inputs[2]))
    product.next_functions[2][0].register_hook(lambda inputs, outputs: seen.append(tuple(inputs[0].shape)))
    output.sum().backward()
    assert seen == [[(12, 2)], (2, 5)]
    pullback.testing.assert_close(x.grad, 2 * weight.detach().sum(0).expand(3, 4, 5))
    pullback.testing.assert_close(bias.grad, pullback.full((2,), 12.0))


def test_a_hook_on_the_node_itself_sees_the_gradients_of_its_steps() -> None:
    output, *_ = linear(4, 5)
    seen: list[Any] = []
    output.grad_fn.register_hook(lambda inputs, outputs: seen.append([tuple(g.shape) for g in inputs]))
    output.sum().backward()
    assert seen == [[(2,), (4, 5), (5, 2)]]


def test_the_product_shows_what_it_saved() -> None:
    output, _, weight, _ = linear(3, 4, 5)
    product = output.grad_fn.next_functions[0][0]
    assert product._saved_mat1.shape == (12, 5)
    assert product._saved_mat2.equal(weight.T)
    assert output.grad_fn._saved_self_sym_sizes == (12, 2)


def test_the_steps_of_a_released_node_are_seen_and_refuse_to_run() -> None:
    output, *_ = linear(3, 4, 5)
    output.sum().backward()
    assert tree(output.grad_fn) == STEPS
    with pytest.raises(RuntimeError, match="second time"):
        output.sum().backward()


def test_a_step_notices_that_what_it_saved_was_modified_before_it_was_looked_at() -> None:
    output, _, weight, _ = linear(3, 4, 5)
    with pullback.no_grad():
        weight.mul_(2)
    assert tree(output.grad_fn) == STEPS
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_a_step_notices_that_what_it_saved_was_modified_afterwards() -> None:
    output, _, weight, _ = linear(3, 4, 5)
    assert tree(output.grad_fn) == STEPS
    with pullback.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.parametrize("only_input", [False, True])
def test_looking_while_a_pass_runs_lets_it_go_on(only_input: bool) -> None:
    output, *leaves = linear(3, 4, 5)
    output.sin().sum().backward()
    expected = gradients(leaves)
    output, *leaves = linear(3, 4, 5)
    output.register_hook(lambda grad: (tree(output.grad_fn), None)[1])
    if only_input:
        actual = list(pullback.autograd.grad(output.sin().sum(), leaves[:1]))
    else:
        output.sin().sum().backward()
        actual = gradients(leaves)
    for value, wanted in zip(actual, expected, strict=False):
        pullback.testing.assert_close(value, wanted)


def test_the_gradient_at_an_inner_edge_can_be_asked_for() -> None:
    output, *_ = linear(3, 4, 5)
    product = output.grad_fn.next_functions[0][0]
    edge = pullback.autograd.graph.GradientEdge(product, 0)
    (grad,) = pullback.autograd.grad(output.sum(), [edge])
    assert grad.equal(pullback.ones(12, 2))


def test_steps_are_differentiated_again() -> None:
    output, x, weight, _ = linear(3, 4, 5)
    assert tree(output.grad_fn) == STEPS
    (first,) = pullback.autograd.grad(output.pow(2).sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), weight)
    output, x, weight, _ = linear(3, 4, 5)
    (first,) = pullback.autograd.grad(output.pow(2).sum(), x, create_graph=True)
    pullback.testing.assert_close(second, pullback.autograd.grad(first.sum(), weight)[0])


def test_saved_tensor_hooks_get_what_the_steps_save() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tuple(tensor.shape))
        return tensor

    with pullback.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output, *leaves = linear(3, 4, 5)
    assert packed == [(12, 5), (5, 2)]
    output.sum().backward()
    pullback.testing.assert_close(leaves[2].grad, pullback.full((2,), 12.0))


def test_every_step_has_a_traceback_under_anomaly_mode() -> None:
    with pullback.autograd.set_detect_anomaly(True, check_nan=False):
        output, *_ = linear(3, 4, 5)
    product = output.grad_fn.next_functions[0][0]
    for node in (output.grad_fn, product, product.next_functions[2][0]):
        assert "linear" in "".join(node.metadata["traceback_"])


def test_nobody_pays_who_does_not_look() -> None:
    output, *_ = linear(3, 4, 5)
    output.sum().backward()
    assert output.grad_fn.extra is None


def rand(*shape: int) -> Any:
    return pullback.rand(*shape, dtype=pullback.float64, requires_grad=True)


FUSED = {
    "two factors": lambda x, y, z: pullback.einsum("bij,bkj->kbi", x, y),
    "without a sum": lambda x, y, z: pullback.einsum("bij,bkj->bikj", x, y),
    "three factors": lambda x, y, z: pullback.einsum("bij,bkj,j->bi", x, y, z),
    "rms_norm": lambda x, y, z: F.rms_norm(x, (4,), z) + y.sum(),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_node_passes_the_gradients_and_second_derivatives_of_its_steps(name: str) -> None:
    pullback.manual_seed(0)
    leaves = [rand(2, 3, 4), rand(2, 3, 4), rand(4)]

    def both_orders(look: bool) -> list[Any]:
        output = FUSED[name](*leaves)
        if look:
            tree(output.grad_fn)
        first = pullback.autograd.grad(output.sin().sum(), leaves, create_graph=True, allow_unused=True)
        known = [g for g in first if g is not None]
        total = known[0].pow(2).sum()
        return [*known, *[g for g in pullback.autograd.grad(total, leaves, allow_unused=True) if g is not None]]

    for actual, wanted in zip(both_orders(True), both_orders(False), strict=True):
        pullback.testing.assert_close(actual, wanted)


def test_a_hook_inside_of_a_sum_of_products_replaces_the_gradient_of_one_factor() -> None:
    x, y = rand(3, 4), rand(4, 5)
    output = pullback.einsum("ij,jk->ik", x, y)
    product = output.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0]
    assert product.name() == "BmmBackward0"
    product.register_hook(lambda inputs, outputs: (inputs[0] * 2, inputs[1]))
    output.sum().backward()
    pullback.testing.assert_close(x.grad, 2 * y.detach().sum(1).expand(3, 4))
    pullback.testing.assert_close(y.grad, x.detach().sum(0)[:, None].expand(4, 5))


def test_saved_tensor_hooks_get_the_batches_of_matrices_of_a_sum_of_products() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tuple(tensor.shape))
        return tensor

    with pullback.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        pullback.einsum("ij,jk->ik", rand(3, 4), rand(4, 5))
    assert packed == [(1, 4, 5), (1, 3, 4)]


def test_examples_are_one_more_label() -> None:
    x, y = rand(6, 3, 4).detach(), rand(4, 5).detach()
    grad: Any = pullback.func.grad
    together = pullback.vmap(lambda a: pullback.einsum("ij,jk->ki", a, y))(x)
    for one, whole in zip(x, together, strict=True):
        pullback.testing.assert_close(whole, (one @ y).T)
    grads = pullback.vmap(grad(lambda a: pullback.einsum("ij,jk->ki", a, y).sin().sum()))(x)
    pullback.testing.assert_close(grads[2], grad(lambda a: (a @ y).sin().sum())(x[2]))


def test_three_large_factors_are_multiplied_in_the_order_that_takes_the_least_work() -> None:
    x, y, z = rand(40, 50), rand(50, 60), rand(60)
    result = pullback.einsum("ij,jk,k->i", x, y, z)
    pullback.testing.assert_close(result, x @ (y @ z))
    inner = result.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0]
    assert inner.name() == "BmmBackward0"
    assert inner._saved_self.shape == (1, 40, 50)
