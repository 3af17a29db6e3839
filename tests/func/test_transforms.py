"""grad, vjp, jvp, jacrev, jacfwd, hessian, linearize: values, nesting, what their results remember."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback
from pullback.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

TRANSFORMS = {
    "jacfwd of jacrev": lambda f: jacfwd(jacrev(f)),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(f)),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev of jacrev": lambda f: jacrev(jacrev(f)),
}
FUNCTIONS = {
    "polynomial": lambda x: (x**3).sum() + x[0] * x[1],
    "saved results": lambda x: (x.exp() * x.tanh()).sum(),
    "softmax": lambda x: (x.softmax(0) * x).sum(),
    "in place": lambda x: x.sin().mul_(x).sum(),
    "writing a part": lambda x: _write_part(x),
    "variance": lambda x: x.var() * x.norm(),
    "products": lambda x: pullback.outer(x, x).logsumexp((0, 1)),
}


def _write_part(x: Any) -> Any:
    y = x.clone()
    y[1:] = x[:1] * x[1:] ** 2
    return (y**2).sum()


@pytest.mark.parametrize("second", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives_agree_whatever_the_modes(function: str, second: str) -> None:
    x = pullback.tensor([0.3, 0.7, 1.1], dtype=pullback.float64)
    expected = pullback.autograd.functional.hessian(FUNCTIONS[function], x)
    pullback.testing.assert_close(TRANSFORMS[second](FUNCTIONS[function])(x), expected)


@pytest.mark.parametrize("second", TRANSFORMS)
def test_second_derivatives_of_a_batch(second: str) -> None:
    x = pullback.tensor([[0.3, 0.7], [1.1, 0.2]], dtype=pullback.float64)
    transform = TRANSFORMS[second](FUNCTIONS["saved results"])
    pullback.testing.assert_close(vmap(transform)(x), pullback.stack([transform(a) for a in x]))


def test_inner_derivatives_are_not_confused_with_outer_ones() -> None:
    one = pullback.tensor(1.0)
    assert grad(lambda x: x * grad(lambda y: x + y)(one))(one).item() == 1.0
    assert jvp(lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1], (one,), (one,))[1].item() == 1.0
    assert jvp(lambda x: x * grad(lambda y: x * y)(one), (one,), (one,))[1].item() == 2.0
    assert grad(lambda x: x * jvp(lambda y: x * y, (one,), (one,))[1])(one).item() == 2.0


def test_cotangents_mapped_inside_and_outside_of_a_mapped_vjp() -> None:
    x = pullback.rand(2, 3)
    jacobians = vmap(lambda a: vmap(vjp(lambda b: b.sin() * b.sum(), a)[1])(pullback.eye(3))[0])(x)
    pullback.testing.assert_close(jacobians, vmap(jacrev(lambda b: b.sin() * b.sum()))(x))


def test_tangents_mapped_over_one_primal() -> None:
    x = pullback.rand(3)
    columns = vmap(lambda v: jvp(pullback.sin, (x,), (v,))[1])(pullback.eye(3))
    pullback.testing.assert_close(columns, jacfwd(pullback.sin)(x))


def test_results_lead_outside_only_where_inputs_do() -> None:
    plain, tracked = pullback.ones(2), pullback.ones(2, requires_grad=True)
    assert not grad(lambda x: (x**2).sum())(plain).requires_grad
    assert not hessian(lambda x: (x**3).var())(plain).requires_grad
    assert not jvp(lambda x: x.cumprod(0), (plain,), (plain,))[1].requires_grad
    assert grad(lambda x: (x**2).sum())(tracked).requires_grad
    assert grad(lambda x: (x * tracked).sum())(plain).requires_grad
    assert not any(o.requires_grad for o in grad(lambda x: (x.sum(), x * 2), has_aux=True)(plain))


def test_grad_modes_outside_are_ignored_and_inside_respected() -> None:
    x = pullback.tensor(3.0)
    with pullback.no_grad():
        assert grad(lambda a: a**2)(x).item() == 6.0

    def half(a: Any) -> Any:
        with pullback.no_grad():
            b = a * a
        return a * b

    assert grad(half)(x).item() == 9.0


def test_gradients_of_transforms_reach_the_graph_outside() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    (second,) = pullback.autograd.grad(grad(lambda a: (a**3).sum())(x).sum(), x)
    assert pullback.equal(second, pullback.tensor([6.0, 12.0]))


def test_grad_and_value_and_aux() -> None:
    gradient, (value, aux) = grad_and_value(lambda x: (x**2, x + 1), has_aux=True)(pullback.tensor(2.0))
    assert (gradient.item(), value.item(), aux.item()) == (4.0, 4.0, 3.0)


def test_vjp_fn_can_be_called_again() -> None:
    _, vjp_fn = vjp(lambda x: x**2, pullback.tensor([1.0, 2.0]))
    first, second = vjp_fn(pullback.ones(2))[0], vjp_fn(pullback.full((2,), 2.0))[0]
    assert pullback.equal(first * 2, second)


def test_linearize_runs_the_function_once() -> None:
    runs = []

    def function(x: Any) -> Any:
        runs.append(x)
        return {"product": x.sin() * x.sum(), "constant": pullback.ones(2)}

    x = pullback.tensor([1.0, 2.0, 3.0])
    output, jvp_fn = linearize(function, x)
    columns = vmap(jvp_fn)(pullback.eye(3))
    assert len(runs) == 1
    pullback.testing.assert_close(output["product"], x.sin() * 6)
    pullback.testing.assert_close(columns["product"].T, jacfwd(function)(x)["product"])
    assert columns["constant"].tolist() == [[0.0, 0.0]] * 3


def test_linearize_can_be_differentiated_and_batched() -> None:
    def second(x: Any) -> Any:
        return linearize(lambda y: y**3, x)[1](pullback.ones(2)).sum()

    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    pullback.testing.assert_close(grad(second)(x[0]), 6 * x[0])
    pullback.testing.assert_close(vmap(second)(x), (3 * x**2).sum(1))
    pullback.testing.assert_close(vmap(grad(second))(x), 6 * x)


def test_linearize_falls_back_to_forward_mode() -> None:
    class Twice(pullback.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return 2 * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return 2 * tangent

    output, jvp_fn = linearize(Twice.apply, pullback.ones(2))
    assert (output.tolist(), jvp_fn(pullback.ones(2) * 3).tolist()) == ([2.0, 2.0], [6.0, 6.0])


def test_linearize_multiplies_at_the_same_place() -> None:
    x = pullback.tensor([0.5, 1.0])
    output, jvp_fn = linearize(pullback.sin, x)
    assert pullback.equal(output, x.sin())
    pullback.testing.assert_close(vmap(jvp_fn)(pullback.eye(2)), pullback.diag(x.cos()))
    with pytest.raises(RuntimeError, match="doesn't match the shape"):
        jvp_fn(pullback.ones(3))


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 10])
def test_rows_of_a_jacobian_in_chunks(chunk_size: int | None) -> None:
    x = pullback.rand(3)
    actual = jacrev(lambda a: {"square": a**2, "sum": a.sum()}, chunk_size=chunk_size)(x)
    pullback.testing.assert_close(actual["square"], pullback.diag(2 * x))
    pullback.testing.assert_close(actual["sum"], pullback.ones(3))


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda x: grad(lambda a: a)(x), "Expected f(*args) to return a scalar Tensor, got tensor with 1 dims"),
        (lambda x: grad(lambda a: 2)(x), "Expected f(*args) to return a Tensor"),
        (lambda x: grad(lambda a: a.sum(), has_aux=True)(x), "should be a tuple: (output, aux) if has_aux is True"),
        (lambda x: grad(lambda a: a.sum(), argnums=2)(x), "Got argnum=2, but only 1 positional inputs"),
        (lambda x: grad(lambda a: a.sum(), argnums=(0, 0))(x), "argnums elements must be unique"),
        (lambda x: grad(lambda a: a.sum())(x.long()), "only Tensors of floating point dtype can require gradients"),
        (lambda x: vjp(lambda a: (a, a), x)[1](x), "Expected pytree structure of cotangents to be the same as"),
        (lambda x: jvp(lambda a: a, x, x), "Expected primals to be a tuple"),
        (lambda x: jvp(lambda a: a, (x,), (x, x)), "to have the same python structure"),
        (lambda x: jvp(lambda a: a, (x,), (x[:1],)), "a different size than that of the original Tensor"),
        (lambda x: jvp(lambda a: pullback.ones(2), (x,), (x,), strict=True), "independent of the inputs"),
        (lambda x: jacfwd(lambda a: a)(x + 0j), "jacfwd: Expected all inputs to be real"),
        (lambda x: grad(lambda a: a.sum().backward())(x), "backward() called inside a functorch transform."),
        (lambda x: grad(lambda a: _retain(a))(x), "You are attempting to call Tensor.retain_grad()"),
    ],
)
def test_misuse_is_named(call: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError) as error:
        call(pullback.ones(2))
    assert phrase in str(error.value)


def _retain(a: Any) -> Any:
    b = a * 2
    b.retain_grad()
    return b.sum()


def test_saved_tensor_hooks_are_refused() -> None:
    hooks = pullback.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with hooks, pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        grad(lambda a: a**2)(pullback.tensor(1.0))


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 1}], ids=["plain", "smoothed", "ignoring"]
)
def test_a_hessian_of_cross_entropy_is_mapped_without_a_warning(options: dict[str, Any]) -> None:
    scores, classes = pullback.arange(6.0).reshape(2, 3), pullback.tensor([0, 2])

    def loss(scores: Any) -> Any:
        return pullback.nn.functional.cross_entropy(scores, classes, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_rows = pullback.func.hessian(loss)(scores)

    assert pullback.allclose(by_rows, pullback.autograd.functional.hessian(loss, scores), atol=1e-6)


def test_what_linearize_gives_is_apart_from_the_tangents() -> None:
    tangent = pullback.ones(3)
    _, push = linearize(lambda x: (x + 1, x.view(3, 1), x - 1), pullback.arange(3.0))
    for product in push(tangent):
        product.mul_(3)
        assert product.flatten().tolist() == [3.0, 3.0, 3.0]
    assert tangent.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("alias", [lambda y: y.detach(), lambda y: y[:2]], ids=["detached", "view"])
def test_what_has_other_aliases_is_not_written_to_inside_of_a_hessian(alias: Any) -> None:
    """They would keep the former memory: PyTorch writes to it, here it is refused and not silently wrong."""

    def f(x: Any) -> Any:
        y = pullback.zeros(3)
        other = alias(y)
        y[0] = x[0]
        return (y**3).sum() + other.sum()

    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        pullback.func.hessian(f)(pullback.ones(3))
