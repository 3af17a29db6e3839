"""A custom Function: rounding with a straight-through gradient, in an autoencoder with a binary code.

Rounding has the derivative zero almost everywhere; its backward here passes the gradient on as if it were not there.
`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
from typing import Any

import pullback as torch

nn = torch.nn


class RoundStraightThrough(torch.autograd.Function):
    """round(x), differentiated as x where x lies in [0, 1]."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        (x,) = inputs
        ctx.save_for_backward((x >= 0) & (x <= 1))

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (is_inside,) = ctx.saved_tensors
        return grad_output * is_inside

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> torch.Tensor:
        return tangent


class BinaryAutoencoder(nn.Module):
    """Squeezes a vector through a few bits."""

    def __init__(self, size: int, bits: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 32), nn.ReLU(), nn.Linear(32, bits))
        self.decoder = nn.Sequential(nn.Linear(bits, 32), nn.ReLU(), nn.Linear(32, size))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the reconstruction and the bits."""
        code = RoundStraightThrough.apply(torch.sigmoid(self.encoder(x)))
        return self.decoder(code), code


def main() -> None:
    """Show the gradient, then learn codes for eight noisy patterns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    x = torch.tensor([-0.2, 0.3, 0.8, 1.4], requires_grad=True)
    RoundStraightThrough.apply(x).sum().backward()
    print("gradient of rounding:", x.grad.tolist())

    patterns = torch.randn(8, 12)
    model = BinaryAutoencoder(12, options.bits)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(options.steps):
        batch = patterns[torch.randint(8, (64,))] + 0.05 * torch.randn(64, 12)
        output, _ = model(batch)
        loss = nn.functional.mse_loss(output, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")
    _, code = model(patterns)
    print(f"distinct codes: {len({tuple(bits) for bits in code.int().tolist()})} of 8")


if __name__ == "__main__":
    main()
