"""Sizes that change from call to call: programs for new sizes are written down from recordings of others."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling import compiled_function
from pullback.compiling.library import library
from pullback.compiling.numbers import Sizes, TracedInt
from pullback.compiling.templates import is_same_function, layout_of

F = nn.functional
STATE: Any = pullback.Generator().manual_seed(3).get_state()
SIZES = [4, 12, 5, 8, 11, 6, 10, 7, 9]


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The texts that were compiled, one list for each compilation."""
    seen: list[list[str]] = []
    add = library._add

    def note(texts: list[str]) -> None:
        seen.append(texts)
        add(texts)

    monkeypatch.setattr(library, "_addresses", {})
    monkeypatch.setattr(library, "_add", note)
    return seen


def compare(function: Any, make: Any, sizes: list[int], **options: Any) -> Any:
    """Results and gradients are those of eager execution for all sizes; gives the compiled function."""
    compiled = pullback.compile(function, **options)
    for size in sizes:
        seen = []
        x = make(size)
        for run in (function, compiled):
            pullback.manual_seed(size)
            given = x.clone().requires_grad_()
            result = run(given)
            tensor, *others = result if isinstance(result, tuple) else (result,)
            tensor.sum().backward()
            seen.append((tensor.detach(), given.grad, others))
        pullback.testing.assert_close(seen[1][:2], seen[0][:2], rtol=1e-4, atol=1e-5)
        assert seen[1][2] == seen[0][2]
    return compiled


def attention(x: Any) -> Any:
    batch, length, width = x.shape
    heads = x.view(batch, length, 2, width // 2).transpose(1, 2)
    scores = heads @ heads.transpose(-2, -1) * (width // 2) ** -0.5
    scores = scores.masked_fill(pullback.tril(pullback.ones(length, length)) == 0, float("-inf"))
    return (scores.softmax(-1) @ heads).transpose(1, 2).reshape(batch, length, width)


def halves(x: Any) -> Any:
    return x[: x.shape[0] // 2].square(), x.shape[0] // 2, x.shape


LINEAR = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 2))
FUNCTIONS: list[Any] = [
    lambda x: LINEAR(x), halves, lambda x: F.mse_loss(x, x.flip(1)), lambda x: x.softmax(0).std(), lambda x: F.dropout(x, 0.5),
    lambda x: x / x.shape[0] ** 0.5 + x[1:].sum() / (x.size(0) - 1), lambda x: x.t() @ x,
    lambda x: x * pullback.arange(x.shape[0])[:, None], lambda x: pullback.cat([x, x * 2, x[:1]]),
    lambda x: x.reshape(-1).cumsum(0), lambda x: F.pad(x, (0, 0, 2, 1)), lambda x: (x.sum(), x.numel(), x.stride()),
    lambda x: x.new_zeros(x.shape).add(x), lambda x: x.expand(2, *x.shape) * 3, lambda x: x.max(0).values + x.mean(0),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_sizes_that_were_not_seen_run_compiled(function: Any) -> None:
    compiled = compare(function, lambda size: pullback.randn(size, 3), SIZES)
    assert compiled.runs >= len(SIZES) - 3


def test_many_sizes_are_compiled_at_most_twice(texts: list[list[str]]) -> None:
    def function(x: Any) -> Any:
        return (LINEAR(x) ** 2).mean()

    compiled = compare(function, lambda size: pullback.randn(size, 3), [4, 4, 60, *range(5, 60, 3)])
    assert compiled.runs == 1 + len(range(5, 60, 3)) - 1
    assert len(texts) <= 4  # forward and backward: for the first shape, and for all others


def test_several_sizes_change_at_once() -> None:
    shapes = iter([(2, 9), (5, 3), (3, 5), (4, 8), (4, 4), (3, 9), (2, 3), (5, 9), (4, 7), (3, 8)] * 2)
    compiled = compare(attention, lambda _: pullback.randn(*next(shapes), 4), list(range(10)))
    assert compiled.runs >= 4


def test_branch_on_a_size_has_a_program_for_each_outcome() -> None:
    def function(x: Any) -> Any:
        return x * 2 if x.shape[0] > 7 else x - 1

    compiled = compare(function, lambda size: pullback.randn(size, 3), [4, 6, 12, 9, 5, 8, 10, 7, 11, 5])
    assert compiled.runs >= 4


def test_slice_that_ends_beyond_the_sizes_seen_is_cut_off_where_it_ends() -> None:
    compiled = compare(lambda x: x[:10] * 2, lambda size: pullback.randn(size, 3), [3, 5, 7, 4, 6, 20, 12, 9, 30, 15])
    assert compiled.runs >= 2


def test_parts_of_a_size_are_as_many_as_eager_execution_gives() -> None:
    compare(lambda x: x.split(4)[-1] * 2, lambda size: pullback.randn(size, 3), [5, 6, 8, 7, 12, 9, 10, 4, 11])


def test_size_of_one_or_none_is_recorded_on_its_own() -> None:
    compare(lambda x: x + x.sum(0), lambda size: pullback.randn(size, 3), [4, 8, 6, 1, 5, 0, 1, 0, 1, 7, 2])


def test_length_that_python_reads_leaves_a_program_for_each_shape() -> None:
    compiled = compare(lambda x: x * (2 if len(x) > 6 else 3), lambda size: pullback.randn(size, 3), [4, 8, 6, 5, 7])
    assert compiled.runs == 0
    assert any("len()" in problem for problem in compiled.templates.problems)


def test_loop_as_long_as_a_size_leaves_a_program_for_each_shape() -> None:
    compiled = compare(lambda x: sum(row * row for row in x), lambda size: pullback.randn(size, 3), [4, 5, 6, 4, 4])
    assert any("something else" in problem for problem in compiled.templates.problems)


def test_dynamic_false_compiles_for_each_shape() -> None:
    compiled = compare(lambda x: x * 2, lambda size: pullback.randn(size, 3), [4, 8, 6, 5, 6, 6], dynamic=False)
    assert compiled.runs == 1


def test_sizes_of_many_calls_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_function, "INSTANCES", 3)
    compiled = compare(lambda x: x * 2, lambda size: pullback.randn(size, 3), [4, 12, *range(5, 12), *range(5, 12)])
    assert compiled.runs == 14
    assert sum(kind.is_instance for kind in compiled.kinds.values()) <= 4


def test_size_that_grows_from_call_to_call_is_no_error_and_not_recorded_each_time() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compare(lambda x: x * 2, lambda size: pullback.randn(size, 3), list(range(2, 60)))
    assert compiled.runs == 0
    assert len(compiled.kinds) < 30


def test_sizes_just_beyond_those_seen_are_recorded_when_they_come_back() -> None:
    compiled = compare(lambda x: x.exp() * 2, lambda size: pullback.randn(size, 3), [*range(20, 32), 31, 31, 30, 29])
    assert compiled.runs == 3


def test_layouts_that_alternate_have_templates_each() -> None:
    def make(size: int) -> Any:
        return pullback.randn(size, 3) if size % 2 else pullback.randn(3, size).t()

    compiled = compare(lambda x: (x * 2).softmax(0), make, [5, 6, 15, 16, 9, 10, 25, 26, 7, 8, 11, 12, 13, 14])
    assert compiled.runs >= 6


def test_text_that_grows_and_then_moves_through_a_window_has_programs() -> None:
    layer = nn.Embedding(5, 4)

    def score(words: Any) -> Any:
        return layer(words).softmax(-1) + pullback.arange(words.shape[1])[:, None]

    def write(run: Any) -> list[Any]:
        words, scores = (pullback.arange(40) % 5)[None, :4], []
        for _ in range(24):
            scores.append(run(words[:, -16:]))
            words = pullback.cat([words, scores[-1].argmax(-1)[:, -1:].clamp(max=4)], 1)
        return scores

    compiled = pullback.compile(score)
    expected = write(score)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one would tell of too many kinds
        for _ in range(3):
            before, actual = compiled.runs, write(compiled)
    for one, other in zip(actual, expected, strict=True):
        pullback.testing.assert_close(one, other)
        assert one.stride() == other.stride()
    assert compiled.runs - before == 24


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), (12, 4), (0, 1, True)),
        ((2, 3), (4, 8), (1, 0, True)),
        ((2, 3), (20, 4), (0, 1, False)),
        ((1, 3), (400, 4), (1, True)),
        ((2, 3), (0, 4), (1, 0, False)),
    ],
)
def test_layout_tells_the_order_of_dimensions_and_gaps(shape: Any, strides: Any, expected: Any) -> None:
    assert layout_of(shape, strides, 4) == expected


def test_training_step_with_a_last_batch_of_another_size() -> None:
    def train(compile: bool) -> list[Any]:
        pullback.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = pullback.optim.Adam(model.parameters())

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = pullback.compile(step) if compile else step
        data = pullback.randn(22, 4)
        return [run(part[:, :3], part[:, 3:]).item() for _ in range(5) for part in data.split(8)]

    assert train(True) == pytest.approx(train(False), rel=1e-4)


def test_conditions_and_numbers_of_sizes_are_written_down() -> None:
    sizes = Sizes()
    n = sizes.see([6, 4])[0]
    made: Any = eval("n // 2 + 1", {"n": n})  # as the user's code would, in a file of its own
    assert type(made) is TracedInt
    assert made == 4
    assert [value for value, _ in sizes.computed] == [3, 4]
    assert sizes.conditions[0].holds([6, 4])
    assert not sizes.conditions[0].holds([8, 4])


def test_functions_are_the_same_if_text_and_surroundings_are() -> None:
    def make(number: int) -> Any:
        return lambda x: x * number

    assert is_same_function(make(1), make(1))
    assert not is_same_function(make(1), make(2))
    assert not is_same_function(make(1), len)


def test_explain_tells_what_became_of_sizes() -> None:
    compiled = compare(lambda x: x * (2 if len(x) > 6 else 3), lambda size: pullback.randn(size, 3), [4, 8])
    told = str(pullback.compiler.explain(compiled)(pullback.ones(5, 3)))
    assert "Recorded for 2 kinds of arguments; 0 more have programs made for their sizes." in told
    assert "recorded for a shape of its own: the function uses sizes in a way that cannot be followed (len()" in told


@pytest.mark.parametrize("move", [lambda: pullback.manual_seed(3), lambda: pullback.set_rng_state(STATE)])
def test_random_stream_that_the_function_moves_is_moved_in_every_call(move: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        move()
        return y

    compiled = pullback.compile(function)
    for seed in range(5):
        pullback.manual_seed(seed)
        compiled(pullback.ones(3))
        assert pullback.get_rng_state().tolist() == STATE.tolist()
