"""A normalising flow learns the density of two moons: affine couplings, trained by maximum likelihood.

Each layer scales and moves half of the coordinates by what the other half says, so it can be inverted and its
Jacobian is triangular. `import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
import math

import pullback as torch

nn = torch.nn
D = torch.distributions


class Coupling(nn.Module):
    """y1 = x1, y2 = x2 * exp(s(x1)) + t(x1), or with the halves exchanged."""

    def __init__(self, width: int, is_flipped: bool) -> None:
        super().__init__()
        self.is_flipped = is_flipped
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        )

    def halves(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The half that is kept and the half that is changed."""
        first, second = x.chunk(2, dim=1)
        return (second, first) if self.is_flipped else (first, second)

    def joined(self, kept: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
        """The inverse of `halves`."""
        return torch.cat((changed, kept) if self.is_flipped else (kept, changed), dim=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return y and the logarithm of the Jacobian's determinant."""
        kept, changed = self.halves(x)
        scale, shift = self.net(kept).chunk(2, dim=1)
        scale = torch.tanh(scale)
        return self.joined(kept, changed * scale.exp() + shift), scale.sum(1)

    def inverse(self, y: torch.Tensor) -> torch.Tensor:
        """Return the x that gives y."""
        kept, changed = self.halves(y)
        scale, shift = self.net(kept).chunk(2, dim=1)
        return self.joined(kept, (changed - shift) * torch.exp(-torch.tanh(scale)))


class Flow(nn.Module):
    """From data to a standard normal variable, through several couplings."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Coupling(width, bool(i % 2)) for i in range(layers)])
        self.base = D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1)

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        """The logarithm of the density at x."""
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return self.base.log_prob(x) + total

    def sample(self, count: int) -> torch.Tensor:
        """Draw points."""
        y = self.base.sample((count,))
        for layer in reversed(self.layers):
            y = layer.inverse(y)
        return y


def two_moons(count: int) -> torch.Tensor:
    """Points on two half circles that face each other, with a little noise."""
    angle = torch.rand(count) * math.pi
    is_upper = (torch.rand(count) < 0.5).float()
    x = torch.cos(angle) * (2 * is_upper - 1) + (1 - is_upper)
    y = torch.sin(angle) * (2 * is_upper - 1) + 0.5 * (1 - is_upper)
    return torch.stack((x, y), dim=1) + 0.05 * torch.randn(count, 2)


def main() -> None:
    """Train on fresh points; check that the flow inverts and what it draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    flow = Flow(options.layers, options.width)
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    for step in range(options.steps):
        loss = -flow.log_prob(two_moons(256)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")

    with torch.no_grad():
        x = two_moons(16)
        y = x
        for layer in flow.layers:
            y, _ = layer(y)
        for layer in reversed(flow.layers):
            y = layer.inverse(y)
        print(f"inverse recovers the input: {torch.allclose(x, y, atol=1e-3)}")
        print(f"mean of samples: {[round(v, 1) for v in flow.sample(2000).mean(0).tolist()]}")


if __name__ == "__main__":
    main()
