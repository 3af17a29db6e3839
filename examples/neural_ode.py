"""A neural ordinary differential equation learns a spiral, with gradients by the adjoint method.

The adjoint solves a second equation backwards in time instead of remembering the steps; it is checked against
backpropagation through the solver. `import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pullback as torch

nn = torch.nn
State = tuple[torch.Tensor, ...]


def rk4(field: Callable[[State], State], state: State, time: float, steps: int) -> State:
    """Integrate d state / dt = field(state) over `time` by the classical Runge-Kutta method."""
    h = time / steps

    def moved(by: State, amount: float) -> State:
        return tuple(s + amount * b for s, b in zip(state, by, strict=True))

    for _ in range(steps):
        k1 = field(state)
        k2 = field(moved(k1, h / 2))
        k3 = field(moved(k2, h / 2))
        k4 = field(moved(k3, h))
        slopes = zip(k1, k2, k3, k4, strict=True)
        state = moved(tuple((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in slopes), h)
    return state


class AdjointSolve(torch.autograd.Function):
    """Solves forward without a graph; backward solves the adjoint equation from the end."""

    @staticmethod
    def forward(ctx: Any, model: nn.Module, y0: torch.Tensor, time: float, steps: int, *parameters: Any) -> Any:
        with torch.no_grad():
            (y1,) = rk4(lambda state: (model(state[0]),), (y0,), time, steps)
        ctx.model, ctx.time, ctx.steps = model, time, steps
        ctx.save_for_backward(y1, *parameters)
        return y1

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        y1, *parameters = ctx.saved_tensors

        def augmented(state: State) -> State:
            y, adjoint, *_ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                slope = ctx.model(y)
                grads = torch.autograd.grad(slope, [y, *parameters], adjoint)
            return slope.detach(), -grads[0], *(-g for g in grads[1:])

        start = (y1, grad_output, *(torch.zeros_like(p) for p in parameters))
        _, grad_y, *grad_parameters = rk4(augmented, start, -ctx.time, ctx.steps)
        return None, grad_y, None, None, *grad_parameters


def main() -> None:
    """Fit the field to one turn of a spiral."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--solver-steps", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2)).double()
    parameters = list(model.parameters())
    rotation = torch.tensor([[-0.2, 2.0], [-2.0, -0.2]], dtype=torch.float64)
    y0 = torch.randn(32, 2, dtype=torch.float64)
    (target,) = rk4(lambda state: (state[0] @ rotation,), (y0,), 1.0, 50)
    optimizer = torch.optim.Adam(parameters, lr=2e-2)

    for step in range(options.steps):
        y1 = AdjointSolve.apply(model, y0, 1.0, options.solver_steps, *parameters)
        loss = nn.functional.mse_loss(y1, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.5f}")

    adjoint = torch.autograd.grad(
        AdjointSolve.apply(model, y0, 1.0, options.solver_steps, *parameters).pow(2).sum(), parameters
    )
    (y1,) = rk4(lambda state: (model(state[0]),), (y0,), 1.0, options.solver_steps)
    plain = torch.autograd.grad(y1.pow(2).sum(), parameters)
    worst = max(((a - b).norm() / b.norm()).item() for a, b in zip(adjoint, plain, strict=True))
    print(f"adjoint against backpropagation through the solver: relative difference {worst:.0e}")


if __name__ == "__main__":
    main()
