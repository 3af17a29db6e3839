"""A chain of elementwise operations on arrays that fit the cache, half fit it and do not."""

from __future__ import annotations

from typing import Any

from benchmarks.workload import Run, Workload, gradients_of, random_tensor


def elementwise_chain(torch: Any, size: int) -> Run:
    x = random_tensor(torch, 1, size, requires_grad=True)
    scale, shift = random_tensor(torch, 2, size), random_tensor(torch, 3, size)

    def run() -> list[Any]:
        h = torch.tanh(x * scale + shift)
        h = torch.nn.functional.gelu(h * x)
        h = torch.sigmoid(h) * torch.exp(-h * h)
        h.sum().backward()
        return gradients_of([x])

    return run


WORKLOADS = [
    Workload("elementwise chain, 2^17 elements", lambda torch: elementwise_chain(torch, 2**17), 0.4),
    Workload("elementwise chain, 2^20 elements", lambda torch: elementwise_chain(torch, 2**20), 0.4),
    Workload("elementwise chain, 2^23 elements", lambda torch: elementwise_chain(torch, 2**23), 0.4, quick=False),
]
