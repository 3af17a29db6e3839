"""Training steps of common networks, written with `torch.nn` and `torch.optim`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

from benchmarks.workload import Run, Workload, gradients_of, random_labels, random_tensor


def training_step(torch: Any, model: Any, optimizer: Any, x: Any, labels: Any) -> Run:
    loss_of = torch.nn.CrossEntropyLoss()
    parameters = list(model.parameters())

    def run() -> list[Any]:
        optimizer.zero_grad()
        loss_of(model(x).flatten(0, -2), labels).backward()
        gradients = [parameter.grad for parameter in parameters]
        optimizer.step()
        return gradients

    return run


def mlp(torch: Any, batch: int) -> Run:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return training_step(
        torch, model, optimizer, random_tensor(torch, 1, batch, 784), random_labels(torch, 2, 10, batch)
    )


def lenet(torch: Any) -> Run:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return training_step(
        torch, model, optimizer, random_tensor(torch, 1, 32, 1, 28, 28), random_labels(torch, 2, 10, 32)
    )


def convolution(torch: Any) -> Run:
    x = random_tensor(torch, 1, 16, 64, 32, 32, requires_grad=True)
    weight = random_tensor(torch, 2, 64, 64, 3, 3, scale=0.05, requires_grad=True)
    seed = random_tensor(torch, 3, 16, 64, 32, 32)

    def run() -> list[Any]:
        torch.nn.functional.conv2d(x, weight, padding=1).backward(seed)
        return gradients_of([x, weight])

    return run


def lstm(torch: Any) -> Run:
    torch.manual_seed(0)
    batch, width, steps = 16, 64, 64
    cell = torch.nn.Linear(2 * width, 4 * width)
    inputs = [random_tensor(torch, nr, batch, width) for nr in range(steps)]

    def run() -> list[Any]:
        hidden = state = torch.zeros(batch, width)
        for x in inputs:
            gates = cell(torch.cat([x, hidden], 1))
            forget, enter, leave, candidate = gates.chunk(4, 1)
            state = torch.sigmoid(forget) * state + torch.sigmoid(enter) * torch.tanh(candidate)
            hidden = torch.sigmoid(leave) * torch.tanh(state)
        (hidden * hidden).mean().backward()
        return gradients_of(cell.parameters())

    return run


def deep_mlp(torch: Any, width: int, batch: int, *, parts: int = 0) -> Run:
    """64 layers, in checkpointed parts or not: its peak of resident memory is what is compared."""
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint_sequential
    weights = [random_tensor(torch, nr, width, width, scale=width**-0.5, requires_grad=True) for nr in range(64)]
    x = random_tensor(torch, 100, batch, width)

    def layer(weight: Any) -> Callable[[Any], Any]:
        return lambda value: torch.relu(value @ weight)

    layers = [layer(weight) for weight in weights]

    def run() -> list[Any]:
        h = checkpoint(layers, parts, x, use_reentrant=False) if parts else reduce(lambda h, f: f(h), layers, x)
        h.sum().backward()
        return gradients_of(weights)[::16]

    return run


WORKLOADS = [
    Workload("MLP 784-512-512-10, batch 64, SGD step", lambda torch: mlp(torch, 64), 0.9),
    Workload("MLP 784-512-512-10, batch 512, SGD step", lambda torch: mlp(torch, 512), 0.9, quick=False),
    Workload("LeNet, batch 32, SGD step", lenet, 1.0),
    Workload("3x3 convolution, 16x64x32x32", convolution, 1.0),
    Workload("LSTM unrolled 64 steps", lstm, 0.7, small=True),
    # The gradient of the first layer differs by 4e-3 between PyTorch in single and in double precision, too.
    Workload("peak memory, MLP of 64 layers", lambda torch: deep_mlp(torch, 1024, 256), 0.78, 2e-2, quick=False,
             measures="memory"),
    Workload("peak memory, 64 layers on 4096 rows", lambda torch: deep_mlp(torch, 256, 4096), 1.0, 2e-2, quick=False,
             measures="memory"),
    Workload("peak memory, the same in 8 checkpointed parts", lambda torch: deep_mlp(torch, 256, 4096, parts=8), 1.0, 2e-2,
             quick=False, measures="memory"),
]  # fmt: skip
