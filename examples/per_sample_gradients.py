"""Gradients of each sample's own loss, with vmap over grad; used to train with clipped and noisy gradients.

The gradient of the mean loss hides what single samples contribute. Differential privacy clips each contribution.
`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse

import pullback as torch

nn = torch.nn
func = torch.func


def main() -> None:
    """Compare with a loop, then train by clipped per-sample gradients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    x = torch.randn(options.samples, 4)
    y = (x @ torch.randn(4, 3)).argmax(1)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def sample_loss(parameters: dict[str, torch.Tensor], sample: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        scores = func.functional_call(model, parameters, (sample.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    per_sample = func.vmap(func.grad(sample_loss), in_dims=(None, 0, 0))
    grads = per_sample(parameters, x, y)
    looped = [func.grad(sample_loss)(parameters, x[i], y[i]) for i in range(options.samples)]
    worst = max((grads[n] - torch.stack([g[n] for g in looped])).abs().max().item() for n in parameters)
    print(f"vmap agrees with a loop: {worst < 1e-5}")
    print("shapes:", {name: tuple(g.shape) for name, g in grads.items()})

    for step in range(options.steps):
        grads = per_sample(parameters, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        factors = (options.clip / norms).clamp(max=1.0)
        for name, g in grads.items():
            clipped = torch.einsum("i,i...->...", factors, g) / options.samples
            parameters[name] = parameters[name] - 0.5 * (clipped + options.noise * torch.randn_like(clipped))
        if step % 6 == 0 or step == options.steps - 1:
            losses = func.vmap(sample_loss, in_dims=(None, 0, 0))(parameters, x, y)
            print(f"step {step}: loss {losses.mean().item():.4f} largest gradient {norms.max().item():.3f}")


if __name__ == "__main__":
    main()
