"""The graphs of recorded gradients: where a rule of PyTorch's computes with a number, its node is that of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import grad as differentiate

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], str]] = {
    "sum of one": (lambda x: x.sum(), ((),), "Expand"),
    "mean": (lambda x: x.mean(), ((3, 4),), "Div1 Expand"),
    "mean of rows": (lambda x: x.mean(1), ((3, 4),), "Div1 Expand Unsqueeze"),
    "log2": (lambda x: x.log2(), ((3,),), "Div Mul1"),
    "unsqueeze": (lambda x: x.unsqueeze(-1), ((3,),), "Squeeze1"),
    "squeeze": (lambda x: x.squeeze(0), ((1, 3),), "Unsqueeze"),
    "mm": (lambda x, y: x @ y, ((2, 3), (3, 4)), "Mm T"),
    "mv": (lambda x, y: y.mv(x), ((3,), (2, 3)), "Mv T"),
    "var": (lambda x: x.var(), ((3, 4),), "Mul Mul1 Sub Mean"),
    "linear": (lambda x, w, b: pullback.nn.functional.linear(x, w, b), ((2, 3), (4, 3), (4,)), "Mm T T"),
    "linear of a batch": (lambda x, w: pullback.nn.functional.linear(x, w), ((2, 2, 3), (4, 3)), "View Mm View T T"),
    "mse_loss": (lambda x, y: pullback.nn.functional.mse_loss(x, y), ((3,), (3,)), "MseLossBackward"),
    "layer_norm": (lambda x: pullback.nn.functional.layer_norm(x, (3,)), ((2, 3),), "NativeLayerNormBackward"),
    "conv1d": (lambda x, w: pullback.nn.functional.conv1d(x, w), ((1, 1, 5), (1, 1, 3)), "ConvolutionBackward"),
    "norm": (lambda x: x.norm(), ((3, 4),), "Mul MaskedFill Div LinalgVectorNorm"),
    "cumsum": (lambda x: x.cumsum(0), ((3,),), "Flip Cumsum Flip"),
    "max": (lambda x: x.max(0).values, ((3, 4),), "Scatter Unsqueeze"),
    "square": (lambda x: x**2, ((3,),), "Mul Mul1 Pow"),
    "a number of the user's": (lambda x: x * 2, ((3,),), "Mul"),
    "a number that is divided": (lambda x: 2 / x, ((3,),), "Mul Neg Mul Mul Reciprocal Reciprocal"),
}


def names(node: Any) -> list[str]:
    """The names of the nodes behind a gradient but for those of leaves, each where it is first reached."""
    seen: list[Any] = [node]
    for one in seen:
        seen += [to for to, _ in one.next_functions if to is not None and to not in seen]
    shown = [one.name().replace("Backward0", "").replace("Backward1", "1") for one in seen]
    return [name for name in shown if "AccumulateGrad" not in name]


@pytest.mark.parametrize("name", CASES)
def test_names_of_the_nodes_of_a_gradient(name: str) -> None:
    function, shapes, expected = CASES[name]
    inputs = [pullback.rand(shape, dtype=pullback.float64).requires_grad_() for shape in shapes]
    result = function(*inputs)
    grad = pullback.ones_like(result).requires_grad_()
    (gradient,) = differentiate(result, inputs[:1], grad, create_graph=True)
    assert " ".join(names(gradient.grad_fn)) == expected


def squared_slope(x: Any, target: Any) -> tuple[Any, Any]:
    """A gradient that one node stands for, and a loss of it."""
    (slope,) = differentiate(pullback.nn.functional.mse_loss(x.sin(), target), x, create_graph=True)
    return slope, (slope * slope).sum()


def leaves() -> tuple[Any, Any]:
    x = pullback.tensor([0.5, -1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    return x, pullback.tensor([1.0, 0.0, 0.5], dtype=pullback.float64, requires_grad=True)


def gradient_node(slope: Any) -> Any:
    """The node of `mse_loss_backward` behind the slope."""
    return slope.grad_fn.next_functions[0][0]


def test_a_hook_on_a_gradient_node_sees_what_leaves_it() -> None:
    x, target = leaves()
    slope, loss = squared_slope(x, target)
    expected = differentiate(loss, (x, target), retain_graph=True)
    node = gradient_node(slope)
    assert node.name() == "MseLossBackwardBackward0"
    seen: list[Any] = []
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    found = differentiate(loss, (x, target), retain_graph=True)
    assert all(pullback.equal(f, e) for f, e in zip(found, expected, strict=True))
    ((inputs, (arrived,)),) = seen
    assert inputs[0] is None  # the gradient of the loss is a one that nobody differentiates
    assert pullback.allclose(inputs[1], arrived * 2 / 3)
    assert pullback.allclose(inputs[2], -arrived * 2 / 3)


def test_a_hook_on_a_gradient_node_replaces_what_leaves_it() -> None:
    x, target = leaves()
    slope, loss = squared_slope(x, target)
    gradient_node(slope).register_hook(lambda inputs, outputs: (None, inputs[1] * 0, inputs[2] * 0 + 7))
    found = differentiate(loss, (x, target))
    without = -2 / 3 * (x.sin() - target) * x.sin() * 2 * slope  # through the cosine alone
    assert pullback.allclose(found[0], without)
    assert pullback.allclose(found[1], pullback.full((3,), 7.0, dtype=pullback.float64))


def test_a_gradient_node_can_be_called() -> None:
    x, target = leaves()
    slope, loss = squared_slope(x, target)
    ones = pullback.ones(3, dtype=pullback.float64)
    none, to_input, to_target = gradient_node(slope)(ones)
    assert none is None
    assert pullback.allclose(to_input, ones * 2 / 3)
    assert pullback.allclose(to_target, -ones * 2 / 3)
    loss.backward()
    assert x.grad is not None
    assert target.grad is not None


@pytest.mark.parametrize("is_hooked", [False, True])
def test_a_gradient_node_is_freed_with_its_graph(is_hooked: bool) -> None:
    x, target = leaves()
    slope, loss = squared_slope(x, target)
    node = gradient_node(slope)
    if is_hooked:
        node.register_hook(lambda inputs, outputs: None)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        (slope * slope).sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = node._saved_grad_output
    assert [kept[0].name() for kept in node.next_functions[1:]] == ["SinBackward0", "torch::autograd::AccumulateGrad"]


def test_looking_at_a_gradient_node_while_the_pass_runs_loses_no_gradient() -> None:
    x, target = leaves()
    slope, loss = squared_slope(x, target)
    expected = differentiate(loss, (x, target), retain_graph=True)

    def look(grad: Any) -> None:
        node = gradient_node(slope)
        node.register_hook(lambda inputs, outputs: None)
        assert len(node.next_functions) == 3

    handle = slope.register_hook(look)
    for _ in range(2):  # in the first pass the node still hands on
        found = differentiate(loss, (x, target), retain_graph=True)
        assert all(pullback.equal(f, e) for f, e in zip(found, expected, strict=True))
    handle.remove()


AT_ONCE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mse_loss": (pullback.nn.functional.mse_loss, ((3, 4), (3, 4))),
    "sum of squares": (lambda x, y: pullback.nn.functional.mse_loss(x, y, reduction="sum"), ((3, 4), (3, 4))),
    "smooth_l1_loss": (lambda x, y: pullback.nn.functional.smooth_l1_loss(x, y, beta=0.3), ((3, 4), (3, 4))),
    "huber_loss": (lambda x, y: pullback.nn.functional.huber_loss(x, y, delta=0.3), ((3, 4), (3, 4))),
    "huber_loss of each": (lambda x, y: pullback.nn.functional.huber_loss(x, y, reduction="none"), ((3, 4), (3, 4))),
    "layer_norm": (lambda x, w, b: pullback.nn.functional.layer_norm(x, (2, 5), w, b), ((3, 2, 5), (2, 5), (2, 5))),
    "layer_norm alone": (lambda x: pullback.nn.functional.layer_norm(x, (5,)), ((3, 2, 5),)),
    "batch_norm": (
        lambda x, w, b: pullback.nn.functional.batch_norm(x, None, None, w, b, True), ((4, 3, 2, 2), (3,), (3,)),
    ),
    "batch_norm alone": (lambda x: pullback.nn.functional.batch_norm(x, None, None, None, None, True), ((4, 3),)),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
def test_gradients_that_a_kernel_differentiates_are_those_of_their_chain(name: str) -> None:
    function, shapes = AT_ONCE[name]
    inputs = [pullback.randn(shape, dtype=pullback.float64).requires_grad_() for shape in shapes]
    result = function(*inputs)
    grad = pullback.randn_like(result).requires_grad_()
    slopes = differentiate(result, inputs, grad, create_graph=True)
    weights = [pullback.randn_like(slope) for slope in slopes]
    at_once = differentiate(slopes, [*inputs, grad], weights, allow_unused=True, retain_graph=True)
    by_chain = differentiate(slopes, [*inputs, grad], weights, allow_unused=True, create_graph=True)
    pullback.testing.assert_close(
        [g for g in at_once if g is not None], [g.detach() for g in by_chain if g is not None]
    )
    assert len(at_once) == len(by_chain)
    result.sum().backward()  # it releases what the operation saved, and not what its gradient needs
    again = differentiate(slopes, [*inputs, grad], weights, allow_unused=True)
    pullback.testing.assert_close([g for g in again if g is not None], [g for g in at_once if g is not None])
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        differentiate(slopes, [*inputs, grad], weights, allow_unused=True)


def test_the_third_derivative_of_a_layer_norm_is_that_of_its_formula() -> None:
    def by_hand(x: Any) -> Any:
        return (x - x.mean(1, True)) * (x.var(1, True, correction=0) + 1e-5).rsqrt()

    found = []
    for norm in (by_hand, lambda x: pullback.nn.functional.layer_norm(x, (3,))):
        x = pullback.tensor([[1.0, 2.0, 4.0]], dtype=pullback.float64, requires_grad=True)
        value = (norm(x) ** 3).sum()
        for _ in range(3):
            (slope,) = differentiate(value, x, create_graph=True)
            value = (slope * pullback.tensor([1.0, -2.0, 0.5])).sum()
        found.append(slope.detach())
    pullback.testing.assert_close(found[1], found[0])


def test_a_saved_value_that_was_changed_is_found_by_the_gradient_of_the_gradient() -> None:
    x, target = pullback.ones(3, requires_grad=True), pullback.zeros(3)
    (slope,) = differentiate(
        pullback.nn.functional.mse_loss(x, target), x, pullback.ones(()).requires_grad_(), create_graph=True
    )
    target.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        slope.sum().backward()
