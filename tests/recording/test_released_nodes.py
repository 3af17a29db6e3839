"""A second backward asks only of nodes whose gradients read saved tensors that they still have them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pullback
from pullback import Tensor

MATRIX = pullback.arange(9.0).reshape(3, 3) + 1
ONLY_ADDED: dict[str, Callable[[Tensor], Tensor]] = {
    "addcmul": lambda x: pullback.addcmul(x, MATRIX, MATRIX),
    "addmm": lambda x: pullback.addmm(x, MATRIX, MATRIX),
    "baddbmm": lambda x: pullback.baddbmm(x[None], MATRIX[None], MATRIX[None]),
    "addmv": lambda x: pullback.addmv(x[0], MATRIX, MATRIX[0]),
    "linear": lambda x: pullback.nn.functional.linear(MATRIX, MATRIX, x[0]),
    "index_add": lambda x: x.index_add(0, pullback.tensor([0]), MATRIX[:1]),
    "scatter_add": lambda x: x.scatter_add(0, pullback.tensor([[0, 1, 2]]), MATRIX[:1]),
    "fmod": lambda x: x.fmod(MATRIX),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", ONLY_ADDED)
def test_node_whose_gradient_reads_nothing_saved_runs_again(name: str, create_graph: bool) -> None:
    x = pullback.ones(3, 3, requires_grad=True)
    loss = ONLY_ADDED[name](x).sum()
    (first,) = pullback.autograd.grad(loss, x)
    (second,) = pullback.autograd.grad(loss, x, create_graph=create_graph)
    assert first.equal(second)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "function", [lambda x: x * MATRIX, lambda x: pullback.addcmul(MATRIX, x, MATRIX), pullback.exp]
)
def test_node_whose_gradient_reads_what_was_saved_does_not(
    function: Callable[[Tensor], Tensor], create_graph: bool
) -> None:
    x = pullback.ones(3, 3, requires_grad=True)
    loss = function(x).sum()
    pullback.autograd.grad(loss, x)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        pullback.autograd.grad(loss, x, create_graph=create_graph)
