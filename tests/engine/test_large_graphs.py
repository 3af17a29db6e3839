"""Deep and wide graphs, and memory that comes back."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import pullback


def test_a_chain_of_200_000_nodes_runs_and_is_freed() -> None:
    x = pullback.ones(1, requires_grad=True)
    y: Any = x
    for _ in range(200_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_a_chain_that_saves_tensors_is_freed_without_backward() -> None:
    x = pullback.ones(1, requires_grad=True)
    y: Any = x
    for _ in range(100_000):
        y = y * x
    del y
    assert x.grad is None


def test_the_sum_of_10_000_leaves() -> None:
    leaves = [pullback.ones(2, requires_grad=True) for _ in range(10_000)]
    total: Any = leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf
    total.sum().backward()
    assert all(leaf.grad.tolist() == [1.0, 1.0] for leaf in leaves)


def test_a_stack_of_10_000_leaves() -> None:
    leaves = [pullback.ones(2, requires_grad=True) for _ in range(10_000)]
    (pullback.stack(leaves) * 3).sum().backward()
    assert all(leaf.grad.tolist() == [3.0, 3.0] for leaf in leaves)


def test_a_dropped_graph_is_freed_by_reference_counting_alone() -> None:
    gc.collect()
    gc.disable()
    try:
        x = pullback.ones(3, 3, requires_grad=True)
        hidden = (x @ x).relu() + 1
        view = hidden[0]
        view.mul_(2)
        result = (hidden.exp() * view).softmax(-1).sum()
        references = [weakref.ref(t) for t in (hidden, view, result)]
        result.backward()
        del hidden, view, result
        assert [r() for r in references] == [None] * 3
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_training_loop_does_not_grow() -> None:
    w = pullback.ones(20, 20, requires_grad=True)
    data = pullback.ones(5, 20)

    def step() -> None:
        loss = (data @ w).tanh().pow(2).mean()
        loss.backward()
        with pullback.no_grad():
            w.sub_(w.grad * 0.01)
        w.grad = None

    for _ in range(20):
        step()
    gc.collect()
    tracemalloc.start()
    for _ in range(5):
        step()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        step()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


def test_saved_tensor_hooks_and_checkpoints_make_no_cycles() -> None:
    from pullback.utils.checkpoint import checkpoint

    class Exp(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    def run() -> None:
        x = pullback.ones(3, requires_grad=True)
        with pullback.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            (x.tanh().exp() * Exp.apply(x)).sum().backward()
        checkpoint(lambda t: (t.tanh() @ t).exp(), x, use_reentrant=False).backward()
        checkpoint(lambda t: (t.tanh() @ t).exp(), x, use_reentrant=True).backward()

    run()
    gc.collect()
    gc.disable()
    try:
        run()
        assert gc.collect() == 0
    finally:
        gc.enable()
