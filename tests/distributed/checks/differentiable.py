"""Gradients through collectives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import pullback
import pullback.distributed.nn.functional as torch_functional
from pullback import distributed as dist
from pullback.autograd import forward_ad
from pullback.distributed import functional

RANK = int(os.environ.get("RANK", 0))

Program = Callable[[Any], Any]

LINEAR: dict[str, Program] = {
    "all_reduce": functional.all_reduce,
    "mean": lambda x: functional.all_reduce(x, dist.ReduceOp.AVG),
    "broadcast": lambda x: functional.broadcast(x, 1),
    "reduce": lambda x: functional.reduce(x, 1),
    "all_gather": lambda x: pullback.stack(functional.all_gather(x)),
    "gather": lambda x: pullback.stack(functional.gather(x, 1)),
    "scatter": lambda x: functional.scatter(list(x), 0),
    "reduce_scatter": lambda x: functional.reduce_scatter(list(x)),
    "mean_scatter": lambda x: functional.reduce_scatter(list(x), dist.ReduceOp.AVG),
    "all_to_all_single": functional.all_to_all_single,
    "all_to_all": lambda x: pullback.stack(functional.all_to_all(list(x), list(x))),
}
"""Maps of a tensor of shape (2, 3) on every rank."""


def total(values: Any) -> float:
    """The sum over all ranks."""
    summed = values.detach().double().sum()
    dist.all_reduce(summed)
    return float(summed)


def seeded(number: int) -> Any:
    pullback.manual_seed(10 * number + RANK)
    return pullback.randn(2, 3, dtype=pullback.float64)


def check_gradients_are_the_transposed_maps() -> None:
    for name, program in LINEAR.items():
        x, direction = seeded(1).requires_grad_(), seeded(2)
        result = program(x)
        weights = seeded(3) if result.shape == x.shape else pullback.randn(result.shape, dtype=pullback.float64)
        (gradient,) = pullback.autograd.grad(result, x, weights)
        # <weights, A direction> over all ranks is <A' weights, direction>.
        assert total(weights * program(direction)) == pytest.approx(total(gradient * direction), rel=1e-12), name


def check_tangents_are_maps_of_tangents() -> None:
    for name, program in LINEAR.items():
        x, direction = seeded(1), seeded(2)
        expected = program(direction)
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(program(forward_ad.make_dual(x, direction))).tangent
        assert tangent is not None, name
        assert pullback.allclose(tangent, expected), name


def check_second_derivatives() -> None:
    for name, program in LINEAR.items():
        x, direction = seeded(1).requires_grad_(), seeded(2)
        loss = (program(x) ** 3).sum()
        (gradient,) = pullback.autograd.grad(loss, x, create_graph=True)
        (second,) = pullback.autograd.grad((gradient * direction).sum(), x)
        # The Hessian of sum((A x)^3) is A' diag(6 A x) A.
        y = program(x.detach()).requires_grad_()
        middle = 6 * y.detach() * program(direction)
        z = x.detach().requires_grad_()
        (expected,) = pullback.autograd.grad(program(z), z, middle)
        assert pullback.allclose(second, expected), name


def check_gradients_come_back_from_where_they_were_sent() -> None:
    if RANK == 0:
        x = pullback.tensor([1.0, 2.0], requires_grad=True)
        functional.send(x * x, 1).backward()
        assert x.grad.tolist() == [6.0, 12.0]
    else:
        like = pullback.zeros(2, requires_grad=True)
        y = functional.recv(like, 0)
        assert y.tolist() == [1.0, 4.0]
        (3 * y).sum().backward()


def check_pytorchs_spelling() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    torch_functional.all_reduce(x * (RANK + 1)).sum().backward()
    assert x.grad.tolist() == [2.0 * (RANK + 1)] * 2
    parts = torch_functional.all_gather(x.detach().requires_grad_())
    assert [part.tolist() for part in parts] == [[1.0, 2.0]] * 2
    output = pullback.zeros(2)
    result = torch_functional.reduce_scatter(output, [x, x])
    assert result.tolist() == output.tolist() == [2.0, 4.0]
    assert torch_functional.reduce(x, 0).tolist() == ([2.0, 4.0] if RANK == 0 else [1.0, 2.0])
    torch_functional.all_to_all_single(pullback.zeros(2), x).sum().backward()


def check_what_is_not_linear_has_no_gradient() -> None:
    with pytest.raises(NotImplementedError, match="gradients pass through sums and means of ranks"):
        functional.all_reduce(pullback.ones(1, requires_grad=True), dist.ReduceOp.MAX)
    x = pullback.tensor([float(RANK)])
    assert functional.all_reduce(x, dist.ReduceOp.MAX).tolist() == [1.0]
    assert functional.reduce_scatter([x, x + 2], dist.ReduceOp.MAX).tolist() == [1.0 + 2 * RANK]
