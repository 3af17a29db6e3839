"""Views, in-place writes and absent gradients where a function is cut, or its result is used in part: as in eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import autograd
from pullback.compiling import backend
from pullback.errors import InPlaceModificationError, ViewModificationError
from tests.compiling.comparison import skipped

CALLS = 5
Outcome = Callable[[Callable[..., Any]], Any]


@pytest.fixture(autouse=True)
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried here does not depend on it, and it takes long."""
    monkeypatch.setattr(backend, "find_compiler", lambda: None)
    monkeypatch.setattr(backend, "_tell_of_no_compiler", lambda: None)


def assert_same(function: Callable[..., Any], outcome: Outcome) -> None:
    """What `outcome` sees of calls is the same for the function and the compiled one."""
    compiled = pullback.compile(function)
    for _ in range(CALLS):
        expected, actual = outcome(function), outcome(compiled)
        assert actual == expected


def test_view_that_an_earlier_piece_gave_a_history_is_written_to() -> None:
    def function(b: Any, c: Any) -> Any:
        d = b.reshape(2)
        d *= c
        d = d * (1 + abs(d.detach().sum().item()))
        b.reciprocal_()
        float(d.detach().numpy().sum())
        return b[0]

    def outcome(run: Callable[..., Any]) -> Any:
        b, c = pullback.tensor([2.0, 1.0]).reshape(2), pullback.tensor(2.0, requires_grad=True)
        run(b, c).backward()
        return c.grad.item()  # 1 / (2 c) by c, at 2

    assert outcome(function) == -0.125
    assert_same(function, outcome)


def test_write_that_one_result_minds_does_not_trouble_another() -> None:
    function = lambda a: (a * 2, (a * 2).exp())  # noqa: E731  (what is kept for the second is the second)

    def outcome(run: Callable[..., Any]) -> Any:
        a = pullback.tensor([1.0, 0.0], requires_grad=True)
        doubled, raised = run(a)
        with pullback.no_grad():
            raised.zero_()
        doubled.sum().backward()
        with pytest.raises(InPlaceModificationError):
            raised.sum().backward()
        return a.grad.tolist()

    assert_same(function, outcome)


def test_view_that_may_not_be_used_any_more_is_an_argument() -> None:
    def function(c: Any) -> Any:
        e = c.repeat(2)
        with pullback.inference_mode():
            f = e.unfold(-1, 1, 1)
        e[:] = e.clone()
        float(f.detach().numpy().sum())
        return (f.detach() * 2).sum() + c

    def outcome(run: Callable[..., Any]) -> Any:
        c = pullback.ones(3, requires_grad=True)
        result = run(c)
        result.sum().backward()
        return result.tolist(), c.grad.tolist()

    assert_same(function, outcome)


def test_error_about_a_view_names_the_operation_that_made_it() -> None:
    def function(d: Any) -> Any:
        return d.div_(2)

    def outcome(run: Callable[..., Any]) -> Any:
        a = pullback.ones(2, requires_grad=True)
        with pullback.no_grad():
            b = a.transpose(-1, -1)
        with pytest.raises(ViewModificationError) as raised:
            run(b[:, None])
        return str(raised.value)

    assert "Output 0 of Unsqueeze" in outcome(function)
    assert_same(function, outcome)


@pytest.mark.filterwarnings("ignore:Use of index_fill_")
def test_elements_that_share_memory_are_written_to() -> None:
    def function(b: Any) -> Any:
        b.expand(2, 3).index_fill_(0, pullback.tensor([0]), 5)
        return b + 0

    assert_same(function, lambda run: run(pullback.arange(3)).tolist())


def test_result_without_dimensions_is_an_argument_of_the_next_function() -> None:
    x = pullback.zeros(3, dtype=pullback.float64)
    first, second = pullback.compile(lambda x: x.sum().atan()), pullback.compile(lambda x: x.cos())
    results = [first(x) for _ in range(CALLS)]
    assert skipped(first) == CALLS - 2
    assert second(results[-1]).item() == 1.0


def test_gradient_by_way_of_an_empty_array_is_zeros() -> None:
    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(1, 2, requires_grad=True)
        run(x)[0].sum().backward()
        return x.grad.tolist()

    assert_same(lambda x: (x[:0].sum(0), x * 2), outcome)


def test_empty_view_may_be_differentiated_twice() -> None:
    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(1, 2, requires_grad=True)
        y = run(x)
        y.sum().backward()
        y.sum().backward()
        return x.grad.tolist()

    assert_same(lambda x: x[:0], outcome)


def test_double_backward_after_an_argument_was_written_to_raises() -> None:
    compiled = pullback.compile(lambda x: x.exp())
    for _ in range(CALLS):
        x = pullback.zeros(2, requires_grad=True)
        y = compiled(x)
        with pullback.no_grad():
            x.add_(1)
        with pytest.raises(InPlaceModificationError):  # the function would run again, on other values
            autograd.grad(y.sum(), x, create_graph=True)


def test_view_of_a_tensor_that_was_given_other_memory_keeps_its_tie() -> None:
    def function(x: Any) -> Any:
        scaled = x * 2
        view = scaled.ravel()
        scaled.data = x.detach().clone()
        float(x.detach().sum())
        view.copy_(x * 3)  # a write to the view is one to its base, whose history it replaces
        return scaled

    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(2, requires_grad=True)
        run(x).sum().backward()
        return x.grad.tolist()

    assert outcome(function) == [3.0, 3.0]
    assert_same(function, outcome)


def test_view_of_an_argument_has_the_nodes_of_eager_execution() -> None:
    function = lambda x: (x.transpose(0, 1)[1:], x * 2)  # noqa: E731

    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(2, 3, requires_grad=True)
        view = run(x)[0]
        layouts: list[Any] = []
        x.register_hook(lambda grad: layouts.append(grad.stride()))
        view.sum().backward()
        return view.grad_fn.name(), view.grad_fn.next_functions[0][0].name(), layouts, x.grad.tolist()

    assert outcome(function)[:2] == ("SliceBackward0", "TransposeBackward0")
    assert_same(function, outcome)


def test_cut_of_a_view_that_may_not_be_used_any_more_is_noted() -> None:
    def function(x: Any) -> Any:
        with pullback.no_grad():
            view = x[:1]
        float(x.detach().sum())
        scaled = view.detach() * 2
        x.detach().add_(1)
        float(scaled.sum())
        return (view.detach() * 2).sum()

    def outcome(run: Callable[..., Any]) -> Any:
        return run(pullback.ones(2, requires_grad=True) * 1).item()

    assert_same(function, outcome)


def test_leaf_that_was_given_another_shape_gets_the_gradient_that_eager_execution_gives() -> None:
    sizes = iter([1, 1, 1, 1, 1, 1, 2, 2, 2, 2])  # each for eager and compiled
    double = lambda x: x * 2  # noqa: E731

    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(next(sizes), requires_grad=True)
        before = x * 1  # keeps the place at which gradients of the former shape arrive
        x.data = pullback.ones(3)
        try:
            run(x).sum().backward()
        except RuntimeError as error:
            return before.shape, str(error).partition(" ")[2].partition(" ")[2]
        return before.shape, x.grad.tolist()

    assert_same(double, outcome)


@pytest.mark.parametrize("alias", ["data", "detach()"])
def test_write_to_an_alias_counts_for_views_as_in_eager_execution(alias: str) -> None:
    def function(x: Any) -> Any:
        view = x.squeeze(0)
        hidden = x.data if alias == "data" else x.detach()
        float(view.detach().sum())
        with pullback.no_grad():
            hidden.mul_(2)  # by `.data` the view does not see it, by detach() its node is made anew
        float(view.detach().sum())
        return view * 3

    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(2, requires_grad=True)
        result = run(x)
        return x._version, result.tolist(), result.grad_fn.next_functions[0][0].name()

    assert_same(function, outcome)


def test_detached_result_is_not_a_view() -> None:
    function = lambda x: (x.detach(), x * 2)  # noqa: E731

    def outcome(run: Callable[..., Any]) -> Any:
        x = pullback.ones(2, requires_grad=True)
        alias = run(x)[0]
        alias[...] = x * 3
        return alias._is_view(), alias.grad_fn.name()

    assert_same(function, outcome)
