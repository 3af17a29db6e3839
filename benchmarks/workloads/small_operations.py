"""Many operations on little data: what is measured is the cost of recording and of running the graph."""

from __future__ import annotations

import itertools
from typing import Any

from benchmarks.workload import Run, Workload, gradients_of, random_tensor


def chain(torch: Any, *size: int) -> Run:
    a, b = torch.full(size, 0.99), torch.full(size, 0.01)
    x = torch.ones(size, requires_grad=True)

    def run() -> list[Any]:
        h = x
        for _ in range(200):
            h = h * a + b
        h.sum().backward()
        return gradients_of([x])

    return run


def small_mlp(torch: Any, batch: int) -> Run:
    widths = (16, 32, 32, 4)
    weights = [
        random_tensor(torch, nr, i, o, scale=i**-0.5, requires_grad=True)
        for nr, (i, o) in enumerate(itertools.pairwise(widths))
    ]
    biases = [torch.zeros(o, requires_grad=True) for o in widths[1:]]
    x, target = random_tensor(torch, 10, batch, 16), random_tensor(torch, 11, batch, 4)

    def run() -> list[Any]:
        h = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.tanh(h @ weight + bias)
        difference = h @ weights[-1] + biases[-1] - target
        (difference * difference).mean().backward()
        return gradients_of(weights + biases)

    return run


def deep_graph(torch: Any) -> Run:
    x = torch.full((4,), 0.5, requires_grad=True)

    def run() -> list[Any]:
        h = x
        for _ in range(5000):
            h = torch.sin(h * 1.001)
        h.sum().backward()
        return gradients_of([x])

    return run


def many_leaves(torch: Any) -> Run:
    leaves = [torch.tensor(float(nr % 7), requires_grad=True) for nr in range(10_000)]

    def run() -> list[Any]:
        total = leaves[0]
        for leaf in leaves[1:]:
            total = total + leaf
        total.backward()
        return gradients_of(leaves)[:: len(leaves) // 10]

    return run


WORKLOADS = [
    Workload("chain of 200 x*a+b, 8 floats", lambda torch: chain(torch, 8), 0.33, small=True),
    Workload("chain of 200 x*a+b, scalars", chain, 0.33, small=True),
    Workload("small MLP, batch 1", lambda torch: small_mlp(torch, 1), 0.33, small=True),
    Workload("small MLP, batch 16", lambda torch: small_mlp(torch, 16), 0.33, small=True),
    Workload("deep graph, 10,000 operations", deep_graph, 0.33, small=True),
    Workload("10,000 leaves summed", many_leaves, 0.33, small=True),
]
