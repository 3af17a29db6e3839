"""Functions that are cut where they cannot be recorded: the pieces are compiled, and everything is as in eager execution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling import compiled_function, entries
from pullback.compiling.compiled_function import CompiledFunction
from pullback.compiling.function_text import CannotSplit
from pullback.compiling.segments import Segmented
from tests.compiling.comparison import assert_close, weights

CALLS = 8


def skipped_pieces(compiled: Any) -> list[int]:
    """How often the Python of each piece was skipped."""
    assert isinstance(compiled, CompiledFunction)
    assert compiled.segments is not None
    return [piece.runs for piece in compiled.segments.pieces]


def values(seed: int, *shape: int) -> Any:
    generator = pullback.Generator().manual_seed(seed)
    return pullback.randn(*shape, generator=generator, requires_grad=True)


def assert_same(function: Callable[..., Any], calls: int = CALLS) -> Any:
    """Values, gradients and the random stream are the same; gives the compiled function."""
    compiled = pullback.compile(function)
    for call in range(calls):
        seen = []
        for run in (function, compiled):
            pullback.manual_seed(call)
            x = values(call, 3, 4)
            result = run(x)
            result.sum().backward()
            seen.append([result.detach(), x.grad, pullback.rand(1)])
        for expected, actual in zip(*seen, strict=True):
            pullback.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-6)
    return compiled


def branching(x: Any) -> Any:
    y = x * 2 + 1
    z = y.tanh() * pullback.rand(())
    if z.sum() > 0:
        w = z * z
    else:
        w = -z.exp()
    w = w + y
    return w.sum(0)


def looping(x: Any) -> Any:
    y = x.sin()
    while y.abs().max() > 0.3:
        y = y * 0.7
        y = y + 0.001
    return y * x


def counting(x: Any) -> Any:
    parts = []
    for row in x.unbind(0):
        y = row.exp() * 2
        if y.sum() > 7:
            continue
        parts.append(y)
        if len(parts) == 2:
            break
    total = pullback.stack([x[0], *parts])
    return total.cos().sum(0)


def reading(x: Any) -> Any:
    scale = (x * x).sum().sqrt().item()
    y = x.exp() + 1
    return y / scale


def with_numpy(x: Any) -> Any:
    y = (x * 3).detach()
    largest = y.numpy().max()
    z = x.sin() * x
    return z * float(largest)


def with_blocks(x: Any) -> Any:
    with pullback.no_grad():
        mean = x.mean() * 2
        if mean > 0:
            mean = mean + 1
        mean = mean.exp()
    try:
        y = (x * mean).sum(1)
        if y[0] > 0:
            raise KeyError("on purpose")
        y = y + 1
    except KeyError:
        y = (x * mean).cos()
    return y * y


def inner(x: Any) -> Any:
    y = x.sin() * 3
    if y.mean() > 0:
        return y + 1
    return (y - 1).exp()


def calling(x: Any) -> Any:
    a = x * x
    b = inner(a) + inner(-a)
    return b.cos() * a


def writing(x: Any) -> Any:
    y = x * 2
    y[0] = 1.0
    if y.sum() > 0:
        y[1] += y[0]
    z = y.view(-1)
    z.mul_(3)
    return y * 1 + z.sum()


FUNCTIONS = [branching, looping, counting, reading, with_numpy, with_blocks, calling, writing]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_in_pieces_gives_values_gradients_and_random_numbers_of_eager(function: Any) -> None:
    compiled = assert_same(function)
    assert sum(skipped_pieces(compiled)) > 0


def test_piece_before_and_after_a_branch_skip_their_python() -> None:
    assert skipped_pieces(assert_same(branching))[0] == CALLS - 4
    assert skipped_pieces(assert_same(branching))[-1] == CALLS - 4


def test_conditional_expression_of_a_lambda_is_a_branch() -> None:
    compiled = assert_same(lambda x: x.exp() * 2 if x.sum() > 0 else -x.exp() + 1)
    assert sum(skipped_pieces(compiled)) > 0


def test_printed_text_comes_out_each_time_and_the_rest_is_compiled(capsys: Any) -> None:
    def function(x: Any) -> Any:
        y = x.exp().sum() * 2
        print(f"{y.item():.1f}")
        return y * y

    compiled = pullback.compile(function)
    for call in range(CALLS):
        compiled(pullback.full((2,), float(call)))
    lines = capsys.readouterr().out.split()
    assert lines == [f"{4 * math.exp(call):.1f}" for call in range(CALLS)]
    assert skipped_pieces(compiled) == [CALLS - 4, CALLS - 4]


def test_attributes_and_lists_from_outside_change_each_time() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.calls = 0
            self.log: list[float] = []

        def forward(self, x: Any) -> Any:
            x = self.layer(x).relu()
            self.calls += 1
            x = self.layer(x) * 2
            self.log.append(float(x.detach().sum()))
            return x.sum(1)

    network = Net()
    compiled = pullback.compile(network)
    for call in range(CALLS):
        compiled(pullback.full((2, 4), float(call)))
    assert network.calls == len(network.log) == CALLS
    assert len(set(network.log)) == CALLS
    assert min(skipped_pieces(compiled.forward)) == CALLS - 4


def test_training_step_that_prints_is_compiled_on_both_sides(capsys: Any) -> None:
    def run(compiles: bool) -> Any:
        pullback.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = pullback.optim.Adam(model.parameters(), lr=0.01)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            if loss.item() > 1e6:
                return None
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss.detach()

        act = pullback.compile(step) if compiles else step
        losses = [act(values(call, 5, 4).detach(), pullback.ones(5, 1)).item() for call in range(CALLS)]
        if compiles:
            assert min(skipped_pieces(act)) >= 2
        return losses + [p.sum().item() for p in model.parameters()]

    assert run(True) == pytest.approx(run(False), rel=1e-4)


def test_argument_list_that_is_changed_is_changed_each_time() -> None:
    def function(found: list[Any], x: Any) -> Any:
        y = x * 2
        found.append(y)
        return y + 1

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        found: list[Any] = []
        compiled(found, pullback.ones(2))
        assert len(found) == 1


def test_list_that_is_returned_twice_or_was_given_is_the_same_object() -> None:
    def function(given: list[Any], x: Any) -> Any:
        made = [x * 2]
        return made, made, given

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        given = [1]
        one, other, again = compiled(given, pullback.ones(2))
        assert one is other
        assert again is given


def test_object_of_the_package_that_holds_tensors_is_made_each_time() -> None:
    compiled = pullback.compile(lambda x: pullback.distributions.Normal(x * 1, 1.0))
    for call in range(CALLS):
        assert compiled(pullback.full((2,), float(call))).loc.tolist() == [call, call]


def test_results_that_hold_the_same_values_do_not_share_memory() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        return pullback.empty_like(x).copy_(x), y, pullback.empty_like(y).copy_(y)

    compiled = pullback.compile(function)
    for _ in range(4):
        x = pullback.ones(2)
        one, two, three = compiled(x)
        one.zero_()
        two.zero_()
        assert x.tolist() == [1.0, 1.0]
        assert three.tolist() == [2.0, 2.0]


def test_strides_along_dimensions_of_one_element_are_those_of_eager() -> None:
    compiled = pullback.compile(lambda x: x.transpose(-1, 1).double())
    for _ in range(4):
        x = pullback.ones(1, 3).movedim(0, -1).requires_grad_()
        assert compiled(x).stride() == x.transpose(-1, 1).double().stride()


def test_gradient_through_an_argument_is_not_counted_twice() -> None:
    w = pullback.tensor([3.0], requires_grad=True)
    compiled = pullback.compile(lambda y: y * w)
    for _ in range(4):
        w.grad = None
        compiled(w * 2).backward()
        assert w.grad.tolist() == [12.0]
    assert compiled.runs == 2


def test_backward_of_an_argument_goes_on_before_the_function() -> None:
    def function(loss: Any, x: Any) -> Any:
        y = x.exp() * 2
        loss.backward()
        return y + 1

    compiled = pullback.compile(function)
    for call in range(CALLS):
        w = pullback.full((2,), float(call), requires_grad=True)
        compiled((w * w).sum(), pullback.ones(2))
        assert w.grad.tolist() == [2.0 * call] * 2


def test_break_that_another_path_meets_cuts_anew() -> None:
    def function(x: Any, reads: bool) -> Any:
        y = x * 2
        if x.sum() > 1e9:
            y = y + 1
        z = y.exp()
        if reads:
            z = z * z.sum().item()
        return z.log1p()  # the sine of hundreds would make an error of 1e-5 out of a rounding

    compiled = pullback.compile(function)
    for call in range(2 * CALLS):
        x = pullback.full((2,), 0.1 * call)
        assert pullback.allclose(compiled(x, call >= CALLS), function(x, call >= CALLS))
    assert sum(skipped_pieces(compiled)) > 0


def test_variable_that_one_path_leaves_unbound_is_unbound() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        if y.sum() > 0:
            z = y + 1
            z = z * 1
        w = y * 3
        return z + w

    compiled = pullback.compile(function)
    for value in (1.0, 1.0, 1.0, -1.0, 1.0, -1.0):
        if value > 0:
            assert compiled(pullback.full((1,), value)).item() == 9.0
        else:
            with pytest.raises(UnboundLocalError, match="z"):
                compiled(pullback.full((1,), value))


def test_error_in_a_piece_shows_the_line_of_the_function() -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * 2
        if z.sum() > 0:
            z = z + 1
        return z @ y

    compiled = pullback.compile(function)
    for _ in range(CALLS):
        compiled(pullback.ones(2, 3), pullback.ones(3, 2))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as raised:
        compiled(pullback.ones(2, 3), pullback.ones(2, 2))
    assert any(
        str(entry.path).endswith("test_segments.py") and "z @ y" in str(entry.statement) for entry in raised.traceback
    )


def test_no_grad_function_that_reads_values_is_compiled_inside() -> None:
    @pullback.no_grad()
    def evaluate(x: Any) -> Any:
        y = (x * 2).exp()
        count = int((y > 1).sum())
        return y.sum() / max(count, 1)

    compiled = pullback.compile(evaluate)
    for call in range(CALLS + 2):
        x = values(call, 4)
        actual = compiled(x)
        assert pullback.allclose(actual, evaluate(x))
        assert not actual.requires_grad


def test_explain_tells_segments_with_lines_and_kernels() -> None:
    explanation = pullback.compiler.explain(branching)(values(0, 3, 4))
    assert explanation.graph_count == 3
    assert explanation.graph_break_count == 1
    first = branching.__code__.co_firstlineno + 1
    assert f"lines {first} to {first + 2}" in str(explanation)
    assert "decides a branch" in str(explanation)


def generator(x: Any) -> Any:
    yield x


def looks_at_its_frame(x: Any) -> Any:
    return locals()


def captures_what_changes(x: Any) -> Any:
    twice = lambda: x * 2  # noqa: E731  # what is tested
    x = x + 1
    return twice()


@pytest.mark.parametrize("function", [generator, looks_at_its_frame, captures_what_changes])
def test_text_that_cannot_be_cut_is_refused(function: Any) -> None:
    with pytest.raises(CannotSplit):
        Segmented(function, {}, 0, lambda function, lines: function)


def hooked(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    return pullback.autograd.grad((y * y).sum(), y, create_graph=True)[0].clone()


def asked_between(x: Any) -> Any:
    y = x * 2
    y = y * (1 + y.detach().sum().item() % 3)
    z = y.to(pullback.float32)
    z = z * (1 + z.detach().sum().item() % 3)
    return pullback.autograd.grad((z * z).sum(), y)[0]


@pytest.mark.parametrize("function", [hooked, asked_between])
def test_gradient_with_respect_to_what_a_piece_gave_is_that_of_eager(function: Any) -> None:
    compiled = pullback.compile(function)
    for call in range(5):
        x = pullback.tensor([1.0, 2.0 + call], requires_grad=True)
        pullback.testing.assert_close(compiled(x).detach(), function(x).detach())


def test_names_of_an_outer_scope_are_bound_where_they_are() -> None:
    def make() -> Any:
        count, total = 0, pullback.zeros(3)

        def program(x: Any) -> Any:
            nonlocal count, total
            y = (x * 2).sin()
            count += 1
            total = total + y.detach()
            z = y * total.sum()
            if count % 2:
                z = z + 1
            return z.sum(), count

        return program

    eager, compiled = make(), pullback.compile(make())
    for call in range(8):
        x = pullback.full((3,), 0.1 * call)
        expected, actual = eager(x), compiled(x)
        assert actual[1] == expected[1] == call + 1
        assert_close(actual[0], expected[0])
    assert sum(skipped_pieces(compiled)) > 0


def test_hook_of_a_result_runs_where_eager_execution_runs_it() -> None:
    arrived: list[Any] = []

    def program(x: Any) -> Any:
        y, z = x * 2, (x * 3).sum()
        y.register_hook(arrived.append)
        y.detach_()
        return z, y

    compiled = pullback.compile(program)
    for _ in range(6):
        x = weights(3)
        compiled(x)[0].backward()
        assert x.grad.tolist() == [3.0] * 3
    assert arrived == []


def test_gradient_that_is_set_on_a_result_stays_there() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        with pullback.no_grad():
            y.grad = pullback.ones_like(y)
        if y.sum() > 0:
            return y
        return -y

    compiled = pullback.compile(program)
    for _ in range(6):
        assert compiled(weights(3).abs())._grad.tolist() == [1.0] * 3


def test_small_piece_is_left_to_python_and_a_large_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_SMALL_CALLS", [4, 12])

    def function(x: Any) -> Any:
        y = x.exp()
        if y.sum() > 0:
            y = y.sin().cos().tanh().sqrt().exp().sin().cos()
        return y

    compiled = pullback.compile(function)
    x = pullback.ones(2)
    for _ in range(8):
        assert_close(compiled(x), function(x))
    first, second = compiled.segments.pieces
    assert first.is_small
    assert not second.is_small
    before = first.runs, second.runs
    compiled(x)
    assert (first.runs, second.runs - 1) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: pullback.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        lambda optimizer: pullback.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20),
    ],
)
def test_step_of_a_schedule_leaves_the_backward_in_a_piece(make: Any) -> None:
    def run(compiles: bool) -> list[Any]:
        pullback.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = pullback.optim.Adam(network.parameters(), lr=0.01)
        schedule = make(optimizer)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = network(x).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            return loss.detach()

        act: Any = pullback.compile(step) if compiles else step
        results = [act(pullback.randn(3, 4)) for _ in range(CALLS)]
        if compiles:
            (first, *_) = act.segments.pieces
            assert first.runs > 0
            assert first.lines[1] - first.lines[0] == 2
        return [*results, *[p.detach() for p in network.parameters()]]

    for expected, actual in zip(run(False), run(True), strict=True):
        assert_close(expected, actual, rtol=1e-4)


def test_function_whose_surroundings_always_differ_is_recorded_so_many_times_alone() -> None:
    class Holder:
        factors = (1.0, 2.0)

    holder = Holder()

    def function(x: Any) -> Any:
        return x * holder.factors[0]

    compiled = pullback.compile(function)
    for call in range(3 * compiled_function.KINDS):
        holder.factors = (float(call), 2.0)
        assert compiled(pullback.ones(2)).tolist() == [float(call)] * 2
    (kind,) = compiled.kinds.values()
    assert kind.is_eager
