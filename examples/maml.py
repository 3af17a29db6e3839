"""Model-agnostic meta-learning: finds a start from which one gradient step learns a sine wave.

The outer gradient flows through the inner step, so it holds second derivatives.
`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
import math

import pullback as torch

nn = torch.nn
functional_call = torch.func.functional_call


def sample_task() -> tuple[torch.Tensor, torch.Tensor]:
    """The amplitude and phase of a random sine wave."""
    return torch.rand(1) * 4.9 + 0.1, torch.rand(1) * math.pi


def sample_points(task: tuple[torch.Tensor, torch.Tensor], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random points of a task's wave."""
    amplitude, phase = task
    x = torch.rand(count, 1) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


def adapt(model: nn.Module, x: torch.Tensor, y: torch.Tensor, inner_lr: float) -> dict[str, torch.Tensor]:
    """Parameters after one gradient step on a task; the step stays part of the graph."""
    parameters = dict(model.named_parameters())
    loss = nn.functional.mse_loss(functional_call(model, parameters, (x,)), y)
    grads = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
    return {name: p - inner_lr * g for (name, p), g in zip(parameters.items(), grads, strict=True)}


def main() -> None:
    """Meta-train on batches of tasks; print the loss after adaptation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--inner-lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    recent: list[float] = []
    report = max(options.steps // 6, 1)

    for step in range(options.steps):
        losses = []
        for _ in range(options.tasks):
            task = sample_task()
            fast = adapt(model, *sample_points(task, 10), options.inner_lr)
            x, y = sample_points(task, 10)
            losses.append(nn.functional.mse_loss(functional_call(model, fast, (x,)), y))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        if (step + 1) % report == 0:
            print(f"step {step}: loss after adaptation {sum(recent) / len(recent):.4f}")
            recent.clear()


if __name__ == "__main__":
    main()
