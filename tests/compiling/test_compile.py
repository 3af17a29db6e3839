"""compile: the same values, gradients and effects as eager execution, with Python skipped where that is sound."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling.compiled_function import CompiledFunction, CompileError

F = nn.functional
CALLS = 4
"""Two recordings, and two runs of the program."""


def weights(*shape: int, seed: int = 0) -> Any:
    generator = pullback.Generator().manual_seed(seed)
    return pullback.randn(*shape, generator=generator, requires_grad=True)


def assert_close(actual: Any, expected: Any) -> None:
    """A compiled function may add in another order, and fuse a product with a sum: values agree to rounding."""
    pullback.testing.assert_close(actual.detach(), expected.detach(), rtol=2e-5, atol=2e-6, equal_nan=True)


def skipped(function: Any) -> int:
    """How often Python was skipped."""
    assert isinstance(function, CompiledFunction)
    return function.runs


def assert_same(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Values and gradients of a function are the same, whether compiled or not, and Python is skipped at last."""
    compiled = pullback.compile(function)
    for call in range(CALLS):
        results = []
        for run in (function, compiled):
            pullback.manual_seed(call)
            inputs = [weights(*shape, seed=call + number) for number, shape in enumerate(shapes)]
            result = run(*inputs)
            result.sum().backward()
            results.append([result.detach(), *[x.grad for x in inputs], pullback.rand(1)])
        for expected, actual in zip(*results, strict=True):
            assert_close(actual, expected)
    assert skipped(compiled) == CALLS - 2


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


OPTIMIZERS: list[Any] = [
    lambda p: pullback.optim.SGD(p, lr=0.1),
    lambda p: pullback.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    lambda p: pullback.optim.Adam(p, lr=0.1),
    lambda p: pullback.optim.AdamW(p, lr=0.1, amsgrad=True),
    lambda p: pullback.optim.RMSprop(p, lr=0.1),
    lambda p: pullback.optim.NAdam(p, lr=0.1),
    lambda p: pullback.optim.Adagrad(p, lr=0.1),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("set_to_none", [True, False])
def test_whole_training_step_is_one_program(make: Any, set_to_none: bool) -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.Linear(8, 2))
        optimizer = make(network.parameters())

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = F.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        act = pullback.compile(step) if compiles else step
        losses = [act(pullback.randn(6, 4), pullback.randint(0, 2, (6,))) for _ in range(8)]
        if compiles:
            assert skipped(act) >= 3
        return losses, [p.detach() for p in network.parameters()], [p.grad for p in network.parameters()]

    for expected, actual in zip(run(False), run(True), strict=True):
        for one, other in zip(expected, actual, strict=True):
            assert_close(one, other)


def scheduled(reads_rate: bool) -> Any:
    """The parameters after steps with a rate that changes, eager and compiled, and how often Python was skipped."""
    results = []
    for compiles in (False, True):
        w = weights(3)
        optimizer = pullback.optim.SGD([w], lr=1.0)
        scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x: Any, optimizer: Any = optimizer, w: Any = w) -> Any:
            optimizer.zero_grad()
            loss = (w * x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def reading_step(x: Any, optimizer: Any = optimizer, step: Any = step) -> Any:
            return step(x) * optimizer.param_groups[0]["lr"]

        chosen = reading_step if reads_rate else step
        act = pullback.compile(chosen) if compiles else chosen
        losses = []
        for _ in range(8):
            losses.append(act(pullback.ones(3)).item())
            scheduler.step()
        results.append((w.tolist(), losses))
    return (*results, skipped(act))


def test_rate_of_an_optimizer_may_change_from_step_to_step() -> None:
    expected, actual, count = scheduled(reads_rate=False)
    assert actual[0] == pytest.approx(expected[0], rel=1e-5)
    assert actual[1] == pytest.approx(expected[1], rel=1e-5)
    assert count >= 5


def test_rate_that_the_function_reads_is_followed() -> None:
    expected, actual, _ = scheduled(reads_rate=True)
    assert actual == expected


def test_scheduler_inside_of_a_function_steps_each_time() -> None:
    w = weights(3)
    optimizer = pullback.optim.SGD([w], lr=1.0)
    scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach()

    compiled = pullback.compile(step)
    for _ in range(5):
        compiled(pullback.ones(3))
    assert optimizer.param_groups[0]["lr"] == 0.5**5


def test_clipped_step_and_masked_attention_are_one_program() -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        w = weights(4, 8)
        optimizer = pullback.optim.SGD([w], lr=0.1)

        def step(q: Any, mask: Any) -> Any:
            optimizer.zero_grad()
            seen = F.scaled_dot_product_attention(q @ w, q @ w, q @ w, attn_mask=mask)
            loss = seen.pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_([w], 0.01)
            optimizer.step()
            return loss.detach()

        act = pullback.compile(step) if compiles else step
        losses = [act(pullback.randn(2, 3, 4), pullback.zeros(3, 3)).item() for _ in range(5)]
        assert not compiles or skipped(act) >= 2
        return losses

    assert run(True) == pytest.approx(run(False), rel=1e-5)


def test_one_result_may_be_used_up_inside_and_another_not() -> None:
    def function(x: Any) -> Any:
        used, fresh = (x * x).sum(), x.exp()
        used.backward()
        return used, fresh

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        x = weights(2)
        used, fresh = compiled(x)
        fresh.sum().backward()
        assert pullback.allclose(x.grad, 2 * x + x.exp())
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            used.backward()


def test_gradients_accumulate_where_they_are_not_zeroed() -> None:
    w = weights(3)

    def accumulate(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss.detach()

    compiled = pullback.compile(accumulate)
    for _ in range(5):
        compiled(pullback.ones(3))
    assert w.grad.tolist() == [5.0, 5.0, 5.0]
    assert skipped(compiled) >= 2


def test_arguments_are_written_to() -> None:
    def count(x: Any, y: Any) -> Any:
        x.add_(1)
        y[0] = x.sum()
        return x * 1

    compiled = pullback.compile(count)
    x, y = pullback.zeros(2), pullback.zeros(3)
    for call in range(CALLS):
        assert compiled(x, y).tolist() == [call + 1.0, call + 1.0]
    assert (x.tolist(), y.tolist()) == ([4.0, 4.0], [8.0, 0.0, 0.0])
    assert skipped(compiled) == 2
    assert x._version == CALLS


def test_result_may_be_a_view_of_an_argument() -> None:
    compiled = pullback.compile(lambda x: (x.T, x[1], x.detach()))
    for _ in range(CALLS):
        x = weights(2, 3) * 1
        turned, row, detached = compiled(x)
        assert turned._base is x
        with pullback.no_grad():
            x[1] = 5.0
        assert (turned[0, 1].item(), row[0].item(), detached[1, 0].item()) == (5.0, 5.0, 5.0)
        assert turned.requires_grad
        assert not detached.requires_grad
    assert skipped(compiled) == 2


def test_several_results_keep_their_names() -> None:
    compiled = pullback.compile(lambda x: x.max(0))
    for _ in range(CALLS):
        result = compiled(pullback.tensor([1.0, 3.0]))
        assert (result.values.item(), result.indices.item()) == (3.0, 1)
    assert skipped(compiled) == 2


def test_arguments_that_share_memory_are_not_mixed_up() -> None:
    def move(x: Any, y: Any) -> Any:
        x.mul_(2)
        return y + 1

    compiled = pullback.compile(move)
    for _ in range(CALLS):
        compiled(pullback.ones(2), pullback.ones(2))
    memory = pullback.ones(3)
    assert compiled(memory[:2], memory[1:]).tolist() == [3.0, 2.0]


# What ends the skipping.


def test_branch_on_a_value_stays_eager() -> None:
    compiled = pullback.compile(lambda x: x * 2 if x.sum() > 0 else -x)
    for value in (1.0, 1.0, 1.0, -1.0, 1.0, -1.0):
        x = pullback.full((2,), value)
        assert compiled(x).tolist() == [2.0 * value if value > 0 else 1.0] * 2
    assert skipped(compiled) == 0


def test_value_of_the_loss_may_be_the_result() -> None:
    w = weights(3)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss.item(), loss.detach()

    compiled = pullback.compile(step)
    for call in range(5):
        number, loss = compiled(pullback.full((3,), float(call)))
        assert type(number) is float
        assert number == loss.item() == pytest.approx((w * call).sum().item(), rel=1e-5)
    assert skipped(compiled) >= 2


NUMBERS: list[Any] = [
    lambda x: x * x.sum().item(), lambda x: (x, x.sum().item() + 1), lambda x: f"{x.sum().item()}", lambda x: x.sum().item() > 1,
    lambda x: math.exp(x.sum().item()), lambda x: [x.sum().item()][0] * 2, lambda x: round(x.sum().item()),
    lambda x: max(x.sum().item(), 1.0), lambda x: "%.1f" % x.sum().item(),  # noqa: UP031  # what is tested
]  # fmt: skip


@pytest.mark.parametrize("function", NUMBERS)
def test_value_that_python_computes_with_stays_eager(function: Any) -> None:
    compiled = pullback.compile(function)
    for call in range(CALLS):
        x = pullback.full((2,), 1.0 if call < 3 else 2.0)
        assert str(compiled(x)) == str(function(x))
    assert skipped(compiled) == 0


READS: list[Any] = [
    lambda x: x.sum().item() > 0, lambda x: x.tolist(), lambda x: int(x.sum()), lambda x: str(x), lambda x: x.numpy().sum(),
    lambda x: print(x.shape), lambda x: pullback.nonzero(x), lambda x: x[x > 0],
]  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_values_that_python_reads_stay_eager(read: Any, capsys: Any) -> None:
    def function(x: Any) -> Any:
        read(x)
        return x * 2

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    assert skipped(compiled) == 0


def test_fullgraph_raises_with_line_and_remedy() -> None:
    def choose(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(CompileError, match=r"decides a branch, at .*test_compile.py:\d+ .*torch.where"):
        pullback.compile(choose, fullgraph=True)(pullback.ones(2))


def test_global_that_changes_is_noticed() -> None:
    compiled = pullback.compile(lambda x: x * FACTOR[0] + OFFSET)
    global OFFSET
    for _ in range(CALLS):
        assert compiled(pullback.ones(1)).tolist() == [5.0]
    OFFSET = 4.0
    assert compiled(pullback.ones(1)).tolist() == [6.0]
    FACTOR[0] = 3.0
    assert compiled(pullback.ones(1)).tolist() == [7.0]
    FACTOR[0], OFFSET = 2.0, 3.0


FACTOR, OFFSET = [2.0], 3.0


def test_closure_and_attributes_that_change_are_noticed() -> None:
    class Settings:
        scale = 2.0

        def __init__(self) -> None:
            self.shift = 1.0

    settings, power = Settings(), 1

    def function(x: Any) -> Any:
        return (x * settings.scale + settings.shift) ** power

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        assert compiled(pullback.ones(1)).tolist() == [3.0]
    settings.shift = 2.0
    assert compiled(pullback.ones(1)).tolist() == [4.0]
    Settings.scale = 5.0
    assert compiled(pullback.ones(1)).tolist() == [7.0]
    power = 2
    assert compiled(pullback.ones(1)).tolist() == [49.0]


def test_parameter_that_is_replaced_is_noticed() -> None:
    layer = nn.Linear(2, 1, bias=False)
    compiled = pullback.compile(layer)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    layer.weight = nn.Parameter(pullback.full((1, 2), 3.0))
    assert compiled(pullback.ones(2)).tolist() == [6.0]
    layer.weight.data = pullback.full((1, 2), 4.0)
    assert compiled(pullback.ones(2)).tolist() == [8.0]
    layer.weight.requires_grad_(False)
    assert not compiled(pullback.ones(2)).requires_grad


def test_hook_that_is_added_later_runs() -> None:
    layer = nn.Linear(2, 1)
    compiled = pullback.compile(layer)
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    seen: list[Any] = []
    layer.register_forward_hook(lambda module, args, result: seen.append(1))
    for _ in range(CALLS):
        compiled(pullback.ones(2))
    assert len(seen) == CALLS


EFFECTS: list[Any] = []


def test_effects_on_containers_attributes_and_globals_are_not_lost() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            EFFECTS.append(self.calls)
            return x + 1

    counter = Counter()
    compiled = pullback.compile(counter)
    for _ in range(10):
        compiled(pullback.ones(1))
    assert counter.calls == 10
    assert list(range(1, 11)) == EFFECTS


def test_numbers_that_python_draws_are_drawn_each_time() -> None:
    import random

    compiled = pullback.compile(lambda x: x * random.random())
    random.seed(0)
    actual = [compiled(pullback.ones(1)).item() for _ in range(6)]
    random.seed(0)
    assert actual == pytest.approx([random.random() for _ in range(6)])


def test_kinds_of_arguments_are_bounded() -> None:
    compiled = pullback.compile(lambda x, n: x.sum() * n)
    for size in range(1, 17):
        assert compiled(pullback.ones(size), size).item() == size * size
    with pytest.warns(UserWarning, match="recompile_limit"):
        compiled(pullback.ones(20), 20)
    assert compiled(pullback.ones(21), 21).item() == 21 * 21
    assert len(compiled.kinds) <= 16


def test_wrong_shape_on_a_later_call_raises_what_eager_raises() -> None:
    compiled = pullback.compile(lambda x, y: x @ y)
    for _ in range(CALLS):
        compiled(pullback.ones(2, 3), pullback.ones(3, 2))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        compiled(pullback.ones(2, 3), pullback.ones(2, 2))
    assert compiled(pullback.ones(2, 3), pullback.ones(3, 2)).shape == (2, 2)


def test_exception_in_the_middle_leaves_tensors_as_they_were() -> None:
    layer = nn.Linear(2, 2)

    def function(x: Any, fails: bool) -> Any:
        y = layer(x)
        if fails:
            raise KeyError("on purpose")
        return y

    compiled = pullback.compile(function)
    with pytest.raises(KeyError, match="on purpose"):
        compiled(pullback.ones(2), True)
    assert type(layer.weight._array).__name__ == "ndarray"
    for _ in range(CALLS):
        assert pullback.equal(compiled(pullback.ones(2), False), layer(pullback.ones(2)))


def test_index_out_of_range_in_a_program_raises_what_eager_raises() -> None:
    table = weights(3, 2)
    compiled = pullback.compile(lambda i: F.embedding(i, table))
    for _ in range(CALLS):
        compiled(pullback.tensor([0, 2]))
    assert skipped(compiled) == 2
    with pytest.raises(IndexError, match="index out of range"):
        compiled(pullback.tensor([0, 7]))


def test_one_function_serves_many_threads() -> None:
    layer = nn.Linear(3, 3)
    compiled = pullback.compile(layer)
    failures: list[Any] = []

    def work(seed: int) -> None:
        for call in range(30):
            x = weights(2, 3, seed=seed * 100 + call)
            y = compiled(x)
            (grad,) = pullback.autograd.grad(y.sum(), x)
            if not pullback.allclose(y, x @ layer.weight.T + layer.bias, atol=1e-6):
                failures.append((seed, call))
            if not pullback.allclose(grad, layer.weight.sum(0).expand(2, 3), atol=1e-6):
                failures.append((seed, call, "grad"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


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
    with pytest.raises(ValueError, match="Invalid backend: 'nothing'"):
        pullback.compile(lambda x: x, backend="nothing")
    with pytest.raises(AssertionError, match="A callable function is expected"):
        pullback.compile(3)


def test_explain_tells_kernels_and_what_is_kept() -> None:
    text = str(pullback.compiler.explain(lambda x: x.sin().exp().sum())(weights(2)))
    assert "One program" in text
    assert "trigonometric.sin" in text
    assert "Kept for backward" in text


def test_explain_tells_what_keeps_a_function_eager() -> None:
    def choose(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    explanation = pullback.compiler.explain(choose)(pullback.ones(2))
    assert explanation.graph_break_count == 1
    assert "decides a branch" in str(explanation)
    assert "test_compile.py" in str(explanation)


def test_check_passes_where_a_program_is_right() -> None:
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    twin = copy.deepcopy(layer)
    compiled = pullback.compile(lambda x: layer(x).exp(), check=True)
    for call in range(CALLS):
        pullback.manual_seed(call)
        actual, after = compiled(weights(4, 3, seed=call)), pullback.rand(1)
        pullback.manual_seed(call)
        expected = twin(weights(4, 3, seed=call)).exp()
        assert pullback.equal(actual, expected)
        assert pullback.equal(after, pullback.rand(1))
    assert pullback.equal(layer[2].running_var, twin[2].running_var)
    assert skipped(compiled) == 2


def test_check_names_the_first_operation_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.compiling import compiled_function
    from pullback.compiling.program import Program, Runner, replay

    def build_wrongly(program: Program) -> Runner:
        for call in program.calls:
            if call.kernel == "trigonometric.cos":
                call.function = lambda x: x * 2
        return replay(program)

    def function(x: Any) -> Any:
        y = x.sin()
        y = y.cos()
        return y.exp()

    compiled = pullback.compile(function, check=True)
    monkeypatch.setattr(compiled_function, "build", build_wrongly)
    compiled(pullback.ones(2))
    compiled(pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"in trigonometric.cos at .*y = y.cos\(\)"):
        compiled(pullback.ones(2))


def test_no_warning_is_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pullback.compile(lambda x: x + 1)(pullback.ones(1))
