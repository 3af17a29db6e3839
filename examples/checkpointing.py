"""Gradient checkpointing: trains the same deep network with and without it, and measures what the graph keeps.

A checkpointed block remembers its input only and runs again in backward: less memory, a second forward.
`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse

import pullback as torch
from pullback.utils.checkpoint import checkpoint

nn = torch.nn


class SavedBytes:
    """Counts the bytes of all distinct tensors that operations save for backward, parameters aside."""

    def __init__(self, model: nn.Module) -> None:
        self._seen = {p.data_ptr() for p in model.parameters()}
        self._kept: list[torch.Tensor] = []
        self.total = 0

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a tensor when it is saved; keep it so that its address is not reused."""
        if tensor.data_ptr() not in self._seen:
            self._seen.add(tensor.data_ptr())
            self._kept.append(tensor.detach())
            self.total += tensor.numel() * tensor.element_size()
        return tensor

    def unpack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Hand a saved tensor back."""
        return tensor


class DeepNetwork(nn.Module):
    """Blocks of two linear layers, each added to its input; checkpointed if asked."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        block = [
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(depth)
        ]
        self.blocks = nn.ModuleList(block)
        self.out = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, is_checkpointed: bool) -> torch.Tensor:
        """Return one number for each row of x."""
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if is_checkpointed else block(x))
        return self.out(x)


def train(is_checkpointed: bool, options: argparse.Namespace) -> tuple[list[float], int]:
    """The losses of a short training, and the bytes saved for backward in its last step."""
    torch.manual_seed(options.seed)
    model = DeepNetwork(options.width, options.depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    x = torch.randn(options.batch, options.width)
    y = torch.sin(x.sum(1, keepdim=True))
    losses = []
    for _ in range(options.steps):
        saved = SavedBytes(model)
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
            loss = nn.functional.mse_loss(model(x, is_checkpointed), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, saved.total


def main() -> None:
    """Train both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    plain, plain_bytes = train(False, options)
    checkpointed, checkpointed_bytes = train(True, options)
    print(f"loss {plain[0]:.5f} -> {plain[-1]:.5f}")
    print(f"largest difference of losses {max(abs(a - b) for a, b in zip(plain, checkpointed, strict=True)):.1e}")
    print(f"saved for backward: {plain_bytes} bytes, {checkpointed_bytes} bytes with checkpointing")
    print(f"memory saved: {1 - checkpointed_bytes / plain_bytes:.0%}")


if __name__ == "__main__":
    main()
