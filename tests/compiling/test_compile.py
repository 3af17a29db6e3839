"""compile: the same values and gradients as eager execution, with PyTorch's options."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback
from pullback import nn
from tests.compiling.comparison import CALLS, F, assert_close, assert_same, skipped, weights


class Square(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


def with_views_and_writes(x: Any) -> Any:
    y = x * 2
    y[1:] += y[:-1].clone()
    y.view(-1)[0] = 7.0
    return y.t() * y.t()


def with_a_loop(x: Any) -> Any:
    parts = []
    for row in x.unbind(0):
        parts.append(row.cumsum(0))
    return pullback.stack(parts).softmax(-1)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, y: (x @ y).tanh().sum(0), [(3, 4), (4, 2)]),
        (lambda x: F.dropout(x, 0.5) * pullback.rand(3, 4), [(3, 4)]),
        (with_views_and_writes, [(3, 4)]),
        (with_a_loop, [(3, 4)]),
        (lambda x: Square.apply(x).sum(), [(3,)]),
        (lambda x: pullback.func.grad(lambda z: (z**3).sum())(x), [(3,)]),
        (lambda x: pullback.func.vmap(lambda z: z.sin().sum())(x), [(3, 4)]),
        (lambda x: pullback.func.hessian(lambda z: (z**3).sum())(x.detach()) * x, [(3,)]),
        (lambda x: pullback.autograd.functional.hvp(lambda z: (z**3).sum(), x.detach(), x.detach() + 1)[1] * x, [(3,)]),
        (lambda x: pullback.func.jacrev(lambda z: z.exp())(x), [(3,)]),
        (lambda x: pullback.autograd.grad((x**3).sum(), x, create_graph=True)[0], [(3,)]),
        (lambda x: pullback.utils.checkpoint.checkpoint(lambda z: z.sin().exp(), x, use_reentrant=False), [(3,)]),
        (lambda x: pullback.cat([x, x.flip(0)]).index_select(0, pullback.tensor([1, 0])), [(3, 4)]),
        (lambda x: pullback.where(x > 0, x, -x) + pullback.arange(4.0), [(3, 4)]),
        (lambda x: (x @ x.T).logsumexp(0), [(3, 4)]),
    ],
)  # fmt: skip
def test_compiled_function_gives_the_values_and_gradients_of_eager(function: Any, shapes: Any) -> None:
    assert_same(function, *shapes)


def test_autocast_inside_of_a_function_is_compiled() -> None:
    def product(x: Any, y: Any) -> Any:
        with pullback.autocast("cpu", dtype=pullback.bfloat16):
            z = x @ y
        return z.float().relu()

    assert_same(product, (3, 4), (4, 2))


def test_result_has_the_node_of_compiled_functions_from_the_first_call_on() -> None:
    double = pullback.compile(lambda x: x * 2)
    for _ in range(CALLS):
        assert type(double(weights(2)).grad_fn).__name__ == "CompiledFunctionBackward"


def test_results_may_be_nested_and_hold_arguments_and_plain_values() -> None:
    compiled = pullback.compile(lambda x, options: {"a": [x * options["k"], x], "b": ("text", None, 3)})
    x = weights(2)
    for _ in range(CALLS):
        result = compiled(x, {"k": 2.0})
    assert result["a"][0].tolist() == (x * 2).tolist()
    assert result["a"][1] is x
    assert result["b"] == ("text", None, 3)
    assert skipped(compiled) == 2


def test_argument_with_a_history_sends_gradients_on() -> None:
    compiled = pullback.compile(lambda x: x.exp())
    for _ in range(CALLS):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)
        compiled((w * 3)[0:1]).sum().backward()
        expected = pullback.autograd.grad((w * 3)[0:1].exp().sum(), w)[0]
        assert pullback.allclose(w.grad, expected)


def test_second_backward_needs_retain_graph() -> None:
    compiled = pullback.compile(lambda x: x.exp().sum())
    for _ in range(CALLS):
        result = compiled(weights(2))
        result.backward(retain_graph=True)
        result.backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            result.backward()


def test_modified_argument_is_noticed_in_backward() -> None:
    compiled = pullback.compile(lambda x: (x * x).sum())
    for _ in range(CALLS):
        x = weights(2) * 1
        result = compiled(x)
        with pullback.no_grad():
            x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()


def test_modified_result_is_noticed_in_backward() -> None:
    compiled = pullback.compile(lambda x: x.exp())
    for _ in range(CALLS):
        result = compiled(weights(2))
        with pullback.no_grad():
            result.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def test_double_backward_is_exact() -> None:
    compiled = pullback.compile(lambda x: x.sin().exp().sum())
    for _ in range(CALLS):
        x = weights(3)
        (first,) = pullback.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = pullback.autograd.grad(first.sum(), x)
        (eager,) = pullback.autograd.grad(x.sin().exp().sum(), x, create_graph=True)
        (expected,) = pullback.autograd.grad(eager.sum(), x)
        assert_close(second, expected)


def test_hooks_on_results_and_arguments_run() -> None:
    compiled = pullback.compile(lambda x: x * 2)
    for _ in range(CALLS):
        x = weights(2)
        x.register_hook(lambda grad: grad * 10)
        result = compiled(x)
        result.register_hook(lambda grad: grad + 1)
        result.sum().backward()
        assert x.grad.tolist() == [40.0, 40.0]


def test_grad_of_one_input_alone() -> None:
    compiled = pullback.compile(lambda x, y: (x * y).sum())
    for _ in range(CALLS):
        x, y = weights(2), weights(2, seed=1)
        (grad,) = pullback.autograd.grad(compiled(x, y), [y])
        assert pullback.equal(grad, x)
        assert x.grad is None


def test_unused_result_gets_no_gradient() -> None:
    compiled = pullback.compile(lambda x: (x * 2, x * 3))
    for _ in range(CALLS):
        x = weights(2)
        compiled(x)[1].sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


def test_unused_result_spoils_no_gradient_where_its_own_is_infinite() -> None:
    compiled = pullback.compile(lambda x: (x.log(), x * 2, x.exp()))
    for _ in range(CALLS):
        x = pullback.zeros(1, requires_grad=True)
        _, double, power = compiled(x)
        (double + power).backward()
        assert x.grad.tolist() == [3.0]


def test_gradient_without_elements_is_there_if_a_used_result_leads_to_it() -> None:
    compiled = pullback.compile(lambda x: (x.sum(1), x * 2))
    for _ in range(CALLS):
        x = pullback.empty(0, 3, requires_grad=True)
        compiled(x)[0].sum().backward()
        assert x.grad is not None
        assert x.grad.shape == (0, 3)


def test_results_with_nothing_in_common_have_a_backward_each() -> None:
    compiled = pullback.compile(lambda x, y: (x.exp(), y.exp(), x - 3))
    for _ in range(CALLS):
        x, y = weights(2), weights(2)
        one, other, difference = compiled(x, y)
        one.sum().backward()
        other.sum().backward()
        assert_close(x.grad, x.exp())
        assert_close(y.grad, y.exp())
        difference.sum().backward()
        difference.sum().backward()
        assert_close(x.grad, x.exp() + 2)
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            other.sum().backward()


def test_modes_are_told_apart() -> None:
    compiled = pullback.compile(lambda x: x * 2)
    x = weights(2)
    for _ in range(CALLS):
        assert compiled(x).requires_grad
        with pullback.no_grad():
            assert not compiled(x).requires_grad
        with pullback.inference_mode():
            assert compiled(x).is_inference()
    assert skipped(compiled) == 3 * (CALLS - 2)


def test_module_in_training_updates_its_buffers() -> None:
    layer, twin = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    compiled = pullback.compile(layer)
    for call in range(CALLS + 2):
        x = weights(4, 3, seed=call).detach()
        if call == CALLS:
            compiled.eval()
            twin.eval()
        assert_close(compiled(x), twin(x))
    assert_close(layer.running_mean, twin.running_mean)
    assert int(layer.num_batches_tracked) == CALLS


def test_compiled_module_is_a_module_around_its_own() -> None:
    layer = nn.Linear(2, 3)
    compiled = pullback.compile(layer)
    assert type(compiled).__name__ == "OptimizedModule"
    assert compiled._orig_mod is layer
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert compiled.out_features == 3
    twin = copy.deepcopy(compiled)
    assert pullback.equal(twin(pullback.ones(2)), layer(pullback.ones(2)))
    again = pickle.loads(pickle.dumps(compiled))
    assert pullback.equal(again(pullback.ones(2)), layer(pullback.ones(2)))


def test_module_compiles_itself_in_place() -> None:
    layer = nn.Linear(2, 3)
    layer.compile()
    for _ in range(CALLS):
        result = layer(pullback.ones(2))
    assert type(result.grad_fn).__name__ == "CompiledFunctionBackward"
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert pullback.equal(copy.deepcopy(layer)(pullback.ones(2)), result)


def test_compile_inside_of_a_transform_and_a_dispatch_mode_runs_eagerly() -> None:
    compiled = pullback.compile(lambda x: x.sin().sum())
    for _ in range(CALLS):
        assert pullback.equal(pullback.func.grad(compiled)(pullback.zeros(2)), pullback.ones(2))


def test_compiled_function_inside_of_a_compiled_function_is_part_of_it() -> None:
    inner = pullback.compile(lambda x: x.sin())
    outer = pullback.compile(lambda x: inner(x) * 2)
    for _ in range(CALLS):
        assert pullback.equal(outer(pullback.ones(2)), pullback.ones(2).sin() * 2)
    assert skipped(outer) == 2
    assert skipped(inner) == 0


def test_calls_inside_of_a_recording_are_no_kinds_of_their_own() -> None:
    inner = pullback.compile(lambda x, text: x * len(text))
    outer = pullback.compile(lambda x, text: inner(x, text).exp())
    for count in range(3):
        outer(pullback.ones(2), "a" * count)
    assert len(outer.kinds) == 3
    assert not inner.kinds


def test_decorated_method_is_compiled_for_its_object() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @pullback.compile
        def apply(self, x: Any) -> Any:
            return x * self.factor

    one, two = Scale(2.0), Scale(3.0)
    for _ in range(CALLS):
        assert one.apply(pullback.ones(1)).item() == 2.0
        assert two.apply(pullback.ones(1)).item() == 3.0


def test_disable_keeps_a_function_out() -> None:
    calls = []

    @pullback.compiler.disable
    def log(x: Any) -> Any:
        calls.append(1)
        return x

    compiled = pullback.compile(lambda x: log(x) * 2)
    for _ in range(CALLS):
        compiled(pullback.ones(1))
    assert len(calls) == CALLS
    assert skipped(compiled) == 0


def test_reset_forgets_programs() -> None:
    compiled = pullback.compile(lambda x: x * 2)
    for _ in range(CALLS):
        compiled(pullback.ones(1))
    pullback.compiler.reset()
    compiled(pullback.ones(1))
    assert skipped(compiled) == 2


def test_options_of_pytorch_are_taken_and_wrong_ones_refused() -> None:
    assert pullback.compile(mode="max-autotune", dynamic=True)(lambda x: x + 1)(pullback.ones(1)).item() == 2.0
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        pullback.compile(lambda x: x, mode="fast")
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        pullback.compile(lambda x: x, mode="default", options={})
    with pytest.raises(RuntimeError, match="Invalid backend: 'nothing'"):
        pullback.compile(lambda x: x, backend="nothing")
    with pytest.raises(AssertionError, match="A callable function is expected"):
        pullback.compile(3)


@pytest.mark.parametrize("reduced", [lambda x: x.mean(0), lambda x: x.sum(0), lambda x: x.mean(), lambda x: x.sum()])
def test_gradient_that_one_element_stands_for_is_not_written_to(reduced: Any) -> None:
    compiled = pullback.compile(lambda x: (reduced(x), x))
    for _ in range(CALLS):
        x, y = (pullback.ones(2, 3, requires_grad=True) for _ in range(2))
        sum(result.sum() for result in compiled(x)).backward()
        (reduced(y).sum() + y.sum()).backward()
        assert x.grad is not None
        assert x.grad.tolist() == y.grad.tolist()


def test_view_of_an_argument_that_is_a_view_is_a_result() -> None:
    compiled = pullback.compile(lambda x: x.detach().view(-1))
    for _ in range(4):
        assert compiled(pullback.arange(6)[:3]).tolist() == [0, 1, 2]
    assert skipped(compiled) == 2


def test_result_of_an_expanded_operand_that_is_cast_is_laid_out_as_in_eager_execution() -> None:
    def program(x: Any) -> Any:
        return x.expand([2, 2]) * 0.5

    compiled = pullback.compile(program)
    for _ in range(4):
        x = pullback.tensor([-1, 0])
        assert compiled(x).stride() == program(x).stride() == (2, 1)


def test_function_that_makes_sparse_tensors_runs_as_it_is() -> None:
    def multiply(indices: Any, values: Any, x: Any) -> Any:
        return pullback.sparse.mm(pullback.sparse_coo_tensor(indices, values, (3, 3)), x)

    compiled = pullback.compile(multiply)
    for call in range(CALLS):
        values = pullback.full((2,), call + 1.0, requires_grad=True)
        result = compiled(pullback.tensor([[0, 1], [1, 2]]), values, pullback.eye(3))
        assert result.tolist() == [[0.0, call + 1.0, 0.0], [0.0, 0.0, call + 1.0], [0.0, 0.0, 0.0]]
        result.sum().backward()
        assert values.grad is not None
        assert values.grad.tolist() == [1.0, 1.0]
