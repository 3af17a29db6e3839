"""A convolutional network reads digits: convolutions, batch normalisation, pooling.

`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy

import pullback as torch

nn = torch.nn
DATA = Path(__file__).resolve().parent / "data" / "digits.npz"


class ConvolutionalNetwork(nn.Module):
    """Two convolutions, each followed by normalisation, a rectifier and pooling; then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, kernel_size=3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.scores = nn.Linear(16 * 3 * 3, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return ten scores for each image of shape (1, 12, 12)."""
        return self.scores(self.features(images).flatten(1))


def load(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Load images of one part of the data as (count, 1, 12, 12), scaled to [0, 1], and their labels."""
    with numpy.load(DATA) as arrays:
        images = torch.from_numpy(arrays[f"{part}_images"]).float() / 255
        return images.view(-1, 1, 12, 12), torch.from_numpy(arrays[f"{part}_labels"]).long()


def main() -> None:
    """Train on random batches and test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    images, labels = load("training")
    model = ConvolutionalNetwork()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    for step in range(options.steps):
        batch = torch.randperm(len(images))[: options.batch_size]
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")

    model.eval()
    test_images, test_labels = load("test")
    with torch.no_grad():
        is_right = model(test_images).argmax(1) == test_labels
    print(f"test accuracy {is_right.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
