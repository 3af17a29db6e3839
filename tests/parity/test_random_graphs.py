"""Random graphs of many operations on both libraries: values, node names, gradients and second derivatives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")

Unary = Callable[[Any, Any], Any]


def _view_in_place(m: Any, x: Any) -> Any:
    y = x * 1
    y[0].mul_(2).add_(x[-1])
    y[:, 0] = x[:, 0].sin()
    return y


def _clone_in_place(m: Any, x: Any) -> Any:
    y = x.clone()
    y.mul_(x).add_(1)
    y[0].zero_()
    return y


UNARY: dict[str, Unary] = {
    "sin": lambda m, x: x.sin(), "exp": lambda m, x: x.exp(), "tanh": lambda m, x: x.tanh(), "relu": lambda m, x: x.relu(),
    "sigmoid": lambda m, x: x.sigmoid(), "sqrt": lambda m, x: (x.abs() + 0.1).sqrt(), "pow": lambda m, x: x**3,
    "gelu": lambda m, x: m.nn.functional.gelu(x), "softplus": lambda m, x: m.nn.functional.softplus(x),
    "clamp": lambda m, x: x.clamp(-0.5, 0.8), "cumsum": lambda m, x: x.cumsum(0), "softmax": lambda m, x: x.softmax(-1),
    "log_softmax": lambda m, x: x.log_softmax(0), "logsumexp": lambda m, x: x.logsumexp(0, keepdim=True),
    "transpose": lambda m, x: x.transpose(0, 1), "reshape": lambda m, x: x.reshape(x.shape[1], x.shape[0]),
    "flip": lambda m, x: x.flip(0), "sum": lambda m, x: x.sum(0, keepdim=True), "mean": lambda m, x: x.mean(1, keepdim=True),
    "max": lambda m, x: x.max(1, keepdim=True)[0], "amax": lambda m, x: x.amax(0, keepdim=True),
    "norm": lambda m, x: x / (x.norm() + 1), "expand": lambda m, x: x[:1].expand(3, x.shape[1]),
    "slice": lambda m, x: x[:, : max(1, x.shape[1] - 1)], "index": lambda m, x: x[m.tensor([0, -1, 0])],
    "roll": lambda m, x: x.roll(1, 0), "tril": lambda m, x: x.tril(), "sort": lambda m, x: x.sort(-1)[0],
    "prod": lambda m, x: x * x.prod(1, keepdim=True), "diagonal": lambda m, x: x * x.diagonal().sum(),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 0, 0, 1)), "view in place": _view_in_place,
    "clone in place": _clone_in_place, "chunk": lambda m, x: m.cat(x.chunk(2, 1)[::-1], 1),
    "where": lambda m, x: m.where(x > 0, x, x * 0.1), "masked_fill": lambda m, x: x.masked_fill(x < -0.5, 0.3),
    "gather": lambda m, x: x.gather(1, m.zeros(x.shape, dtype=m.int64)), "topk": lambda m, x: x.topk(1, 1)[0],
    "index_select": lambda m, x: x.index_select(0, m.tensor([0, 0])), "detach": lambda m, x: x.detach() * x,
    "stack": lambda m, x: m.stack([x, x.sin()]).sum(0), "erf": lambda m, x: x.erf(), "matmul": lambda m, x: x @ x.t() @ x,
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, a, b: a + b, "sub": lambda m, a, b: a - 2 * b, "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / (b.abs() + 1), "maximum": lambda m, a, b: m.maximum(a, b),
    "lerp": lambda m, a, b: m.lerp(a, b.expand_as(a), 0.3), "atan2": lambda m, a, b: m.atan2(a, b + 2),
    "where": lambda m, a, b: m.where(a > b, a, b), "cat": lambda m, a, b: m.cat([a, b.expand_as(a)], 0)[:5],
    "dist": lambda m, a, b: a * (a - b).pow(2).sum().add(1).sqrt(),
}  # fmt: skip


def grow(m: Any, seed: int, rows: int, columns: int) -> list[Any]:
    """The tensors of the graph that `seed` describes: three leaves, then the results of operations."""
    choose, values = random.Random(seed), np.random.default_rng(seed)
    leaves = [
        m.from_numpy(values.normal(size=size)).requires_grad_()
        for size in ((rows, columns), (rows, columns), (1, columns))
    ]
    pool = list(leaves)
    for _ in range(choose.randint(3, 9)):
        if choose.random() < 0.7:
            made = UNARY[choose.choice(sorted(UNARY))](m, choose.choice(pool))
        else:
            a, b = choose.choice(pool), choose.choice(pool)
            made = BINARY[choose.choice(sorted(BINARY))](m, a, b if b.shape == a.shape else b[:1, :1])
        is_large = made.shape[0] > 2 * rows or made.shape[1] > 2 * columns
        pool.append(made[: 2 * rows, : 2 * columns] if is_large else made)
    return pool


def loss_of(pool: list[Any]) -> Any:
    return sum((p.tanh() * (i + 1)).sum() for i, p in enumerate(pool[3:]))


def run(m: Any, seed: int) -> tuple[list[Any], list[str | None]]:
    """Values, gradients and second derivatives of a graph, and the names of its nodes."""
    pool = grow(m, seed, 3, 4)
    leaves, loss = pool[:3], loss_of(pool)
    grads = m.autograd.grad(loss, leaves, create_graph=True, allow_unused=True, materialize_grads=True)
    total = sum((g * g).sum() for g in grads) + sum(leaf.sum() for leaf in leaves) * 0
    second = m.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    results = [t.detach().numpy() for t in (*pool, *grads, *second)]
    return results, [p.grad_fn.name() if p.grad_fn is not None else None for p in pool]


@pytest.mark.parametrize("seed", range(150))
def test_a_random_graph_is_the_same(seed: int) -> None:
    expected, expected_names = run(torch, seed)
    actual, actual_names = run(pullback, seed)
    assert actual_names == expected_names
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def run_larger(m: Any, seed: int) -> list[Any]:
    """First derivatives of a graph of tensors that are large enough for gradients to be overwritten on their way."""
    pool = grow(m, seed, 12, 14)
    kept = [p for p in pool[3:] if p.requires_grad][-1:]
    for p in kept:
        p.retain_grad()
    loss_of(pool).backward()
    return [p.grad.numpy() for p in (*pool[:3], *kept) if p.grad is not None]


@pytest.mark.parametrize("seed", range(150))
def test_a_random_graph_of_larger_tensors_has_the_same_gradients(seed: int) -> None:
    for a, b in zip(run_larger(pullback, seed), run_larger(torch, seed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
