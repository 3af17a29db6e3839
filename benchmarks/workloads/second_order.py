"""Jacobians and second derivatives through `torch.autograd.functional`."""

from __future__ import annotations

from typing import Any

from benchmarks.workload import Run, Workload, random_tensor


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def hessian(torch: Any) -> Run:
    x = random_tensor(torch, 1, 64)
    return lambda: [torch.autograd.functional.hessian(rosenbrock, x)]


def hessian_vector_product(torch: Any) -> Run:
    x, direction = random_tensor(torch, 1, 100_000), random_tensor(torch, 2, 100_000)
    return lambda: [torch.autograd.functional.hvp(rosenbrock, x, direction)[1]]


def jacobian(torch: Any) -> Run:
    x = random_tensor(torch, 1, 128)
    first, second = random_tensor(torch, 2, 128, 128, scale=0.1), random_tensor(torch, 3, 128, 128, scale=0.1)

    def layers(value: Any) -> Any:
        return torch.tanh(second @ torch.tanh(first @ value))

    return lambda: [torch.autograd.functional.jacobian(layers, x)]


WORKLOADS = [
    Workload("Hessian, 64 inputs", hessian, 0.2, small=True),
    Workload("Hessian-vector product, 100,000 inputs", hessian_vector_product, 0.2),
    Workload("Jacobian, 128 by 128", jacobian, 0.2),
]
