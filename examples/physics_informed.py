"""A network learns to solve a differential equation: u'' = -u with u(0) = 0, u'(0) = 1, whose solution is sin.

The loss holds second derivatives of the network, so training differentiates three times.
`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse

import pullback as torch

nn = torch.nn


def derivative(output: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """d output / d points, element by element, itself differentiable."""
    (result,) = torch.autograd.grad(output.sum(), points, create_graph=True)
    return result


def main() -> None:
    """Minimise the equation's residual at fixed points, and the error at the start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--points", type=int, default=32)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = nn.Sequential(
        nn.Linear(1, options.width), nn.Tanh(), nn.Linear(options.width, options.width), nn.Tanh(),
        nn.Linear(options.width, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    points = torch.linspace(0.0, 3.0, options.points).view(-1, 1).requires_grad_()
    report = max(options.steps // 6, 1)

    for step in range(options.steps):
        u = model(points)
        slope = derivative(u, points)
        curvature = derivative(slope, points)
        equation = (curvature + u).pow(2).mean()
        start = u[0].pow(2).sum() + (slope[0] - 1).pow(2).sum()
        loss = equation + 10 * start
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % report == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.5f}")

    error = (model(points) - torch.sin(points)).abs().max().item()
    print(f"largest error against sin: {error:.3f}")


if __name__ == "__main__":
    main()
