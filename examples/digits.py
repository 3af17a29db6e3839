"""Trains a small network to read digits, with a DataLoader, a scheduler and a saved checkpoint.

The data ships beside this file. `import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy

import pullback as torch

nn = torch.nn
DATA = Path(__file__).resolve().parent / "data" / "digits.npz"


def load(part: str) -> torch.utils.data.TensorDataset:
    """Load the images of one part of the data, scaled to [0, 1], with their labels."""
    with numpy.load(DATA) as arrays:
        images = torch.from_numpy(arrays[f"{part}_images"]).float() / 255
        return torch.utils.data.TensorDataset(images.flatten(1), torch.from_numpy(arrays[f"{part}_labels"]).long())


def accuracy(model: nn.Module, dataset: torch.utils.data.TensorDataset) -> float:
    """The share of images that the model reads correctly."""
    images, labels = dataset.tensors
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main() -> None:
    """Train, test, and reload the trained weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    train, test = load("training"), load("test")
    loader = torch.utils.data.DataLoader(train, batch_size=options.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(144, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)

    for epoch in range(options.epochs):
        model.train()
        total = 0.0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        scheduler.step()
        print(f"epoch {epoch}: loss {total / len(train):.5f}")
    print(f"test accuracy {accuracy(model, test):.4f}")

    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file))
    print(f"test accuracy after reloading {accuracy(model, test):.4f}")


if __name__ == "__main__":
    main()
