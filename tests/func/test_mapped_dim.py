"""The mapped dimension stays where it was until a batching rule wants it in front."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.func import grad, jvp, vmap


def dim_of(function: Any) -> int:
    """Where the examples of the result of `function` lie, if those of its input lie along the last dimension."""
    seen = []

    def inside(x: Any) -> Any:
        result = function(x)
        seen.append(result._dim)
        return result

    vmap(inside, in_dims=-1)(pullback.rand(2, 3))
    return int(seen[0])


@pytest.mark.parametrize(
    ("function", "dim"),
    [
        (lambda x: x, 1),
        (lambda x: x.exp(), 1),
        (lambda x: x.relu_(), 1),
        (lambda x: x.clone().detach(), 1),
        (lambda x: x > 0, 1),
        (lambda x: pullback.ones_like(x), 1),
        (lambda x: x + 1, 0),
        (lambda x: x * x, 0),
        (lambda x: x.cumsum(0), 0),
    ],
)
def test_an_operation_on_one_tensor_leaves_it_there(function: Any, dim: int) -> None:
    assert dim_of(function) == dim


def test_writes_reach_the_batch_wherever_the_examples_lie() -> None:
    x = pullback.arange(6.0).reshape(2, 3)
    vmap(lambda a: a.mul_(pullback.tensor([1.0, 10.0])), in_dims=1)(x)
    assert x.tolist() == [[0.0, 1.0, 2.0], [30.0, 40.0, 50.0]]


def test_a_batch_read_without_recording_can_be_written_to_afterwards() -> None:
    w = pullback.ones(2, requires_grad=True)

    def f(a: Any) -> Any:
        with pullback.no_grad():
            total = a.sum()
        return a.mul_(w) + total

    vmap(f, in_dims=1)(pullback.ones(2, 3)).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]


def test_writes_are_differentiated_along_any_dimension() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        return vmap(lambda a: a.clone().mul_(2).exp_() * a, in_dims=1)(y).sum()

    x = pullback.rand(2, 3, dtype=pullback.float64)
    pullback.testing.assert_close(grad(f)(x), (1 + 2 * x) * (2 * x).exp())


def test_tangents_follow_the_mapped_dimension() -> None:
    x, t = pullback.rand(2, 3), pullback.rand(2, 3)
    _, pushed = jvp(lambda x: vmap(lambda a: a.sin() * a, in_dims=1, out_dims=1)(x), (x,), (t,))
    pullback.testing.assert_close(pushed, (x.cos() * x + x.sin()) * t)


def test_without_a_move_the_result_keeps_its_memory_order() -> None:
    x = pullback.rand(2, 3)
    assert vmap(pullback.exp, in_dims=1, out_dims=1)(x).stride() == (3, 1)
    assert vmap(pullback.exp, in_dims=1)(x).stride() == (1, 3)
    assert vmap(lambda a: a, in_dims=1, out_dims=-1)(x) is x
