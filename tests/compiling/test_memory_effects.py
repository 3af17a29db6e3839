"""What compiled functions do to the memory of their arguments."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.compiling.comparison import CALLS, skipped, weights


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


def test_arguments_that_share_memory_in_later_calls_are_found() -> None:
    memory = pullback.ones(3)
    first, second = memory[:1], memory[2:]

    def move() -> Any:
        first.mul_(2)
        return second + 1

    compiled = pullback.compile(move)
    for _ in range(CALLS):
        compiled()
    second.set_(memory[:1])
    memory.fill_(1.0)
    assert compiled().tolist() == [3.0]


def test_results_of_inference_mode_inside_stay_such() -> None:
    def look(x: Any) -> Any:
        with pullback.inference_mode():
            return x.view(pullback.int32), x * 2, x[1:]

    compiled = pullback.compile(look)
    for _ in range(CALLS):
        assert [result.is_inference() for result in compiled(pullback.ones(3))] == [True, True, False]


def test_conjugated_views_elsewhere_do_not_matter() -> None:
    held = pullback.ones(3, dtype=pullback.complex64).conj()
    compiled = pullback.compile(lambda x: x.exp())
    for _ in range(3):
        compiled(pullback.ones(2))
    assert compiled.runs == 1
    assert held.is_conj()


def test_a_conjugated_view_of_what_is_written_to_follows() -> None:
    def double(z: Any) -> None:
        z.mul_(2)

    compiled, z = pullback.compile(double), pullback.tensor([1 + 1j])
    for _ in range(3):
        compiled(z)
    assert compiled.runs == 1
    view = z.conj()
    compiled(z)
    assert view.tolist() == [16 - 16j]
    assert z.tolist() == [16 + 16j]


@pytest.mark.parametrize("write", ["fill_", "copy_", "index"])
def test_numbers_that_are_written_one_after_the_other_are_all_written(write: str) -> None:
    def fill(x: Any) -> Any:
        results = []
        for number in (2.0, 3, 4.5):
            if write == "fill_":
                x.fill_(number)
            elif write == "copy_":
                x.copy_(pullback.tensor(number))
            else:
                x[:] = number
            results.append(x * 1)
        return pullback.stack(results)

    compiled = pullback.compile(fill)
    for _ in range(4):
        x = pullback.ones(2)
        assert compiled(x).tolist() == [[2.0, 2.0], [3.0, 3.0], [4.5, 4.5]]
        assert x.tolist() == [4.5, 4.5]


def test_view_that_was_taken_in_no_grad_may_not_be_used_after_a_break_either() -> None:
    def write(x: Any, value: Any) -> Any:
        with pullback.no_grad():
            part = x[:1]
        x[x > 0] = value
        return part

    compiled = pullback.compile(write)
    value = pullback.tensor(2.0, requires_grad=True)
    for _ in range(4):
        for function in (write, compiled):
            part = function(pullback.ones(2), value)
            with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
                part.grad_fn  # what raises


def test_write_through_a_view_of_an_argument_that_is_a_view_is_differentiated() -> None:
    def write(x: Any, value: Any) -> None:
        x[None] = value

    compiled = pullback.compile(write)
    for _ in range(CALLS):
        grads = []
        for function in (write, compiled):
            value = pullback.tensor(1.5, requires_grad=True)
            x = pullback.ones(3)[1:2]
            x.sub_(value)
            function(x, value)
            (x * 2).sum().backward()
            grads.append(value.grad)
        assert grads[0] == grads[1] == 2
