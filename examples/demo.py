"""Trains a small network to read handwritten-looking digits, and shows what autograd did on the way.

The data ships beside this file. Everything below is written as for PyTorch; `import torch` would do as well.
Pictures of the recorded graph and of the loss are written to demo_output/.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy

import pullback as torch
from pullback import Tensor, nn
from pullback.utils.graph_picture import graph_tree, save_svg

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data" / "digits.npz"
OUTPUT = ROOT / "demo_output"
EPOCHS, BATCH_SIZE, LEARNING_RATE = 12, 50, 0.05


class DigitReader(nn.Module):
    """Three linear layers with rectifiers between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(144, 64)
        self.second = nn.Linear(64, 32)
        self.last = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        hidden = torch.relu(self.first(images.flatten(1)))
        hidden = torch.relu(self.second(hidden))
        return self.last(hidden)


class ProgressBar:
    """One line per epoch, redrawn in place while the epoch runs if a person is watching."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._is_watched = sys.stdout.isatty()

    def show(self, epoch: int, step: int, text: str) -> None:
        """Draw the bar after `step` of the epoch's steps."""
        done = 24 * step // self._steps
        line = f"epoch {epoch:2d}/{EPOCHS} [{'█' * done}{'·' * (24 - done)}] {text}"
        is_complete = step == self._steps
        if self._is_watched:
            print(f"\r{line}", end="\n" if is_complete else "", flush=True)
        elif is_complete:
            print(line)


def load(part: str) -> tuple[Tensor, Tensor]:
    """Load the images of one part of the data, scaled to [0, 1], and their labels."""
    with numpy.load(DATA) as arrays:
        images = torch.from_numpy(arrays[f"{part}_images"]).float() / 255
        return images, torch.from_numpy(arrays[f"{part}_labels"]).long()


def accuracy(model: DigitReader, images: Tensor, labels: Tensor) -> float:
    """The share of images that the model reads correctly."""
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def gradient_norms(model: DigitReader) -> dict[str, float]:
    """The norm of each parameter's gradient after a backward pass."""
    return {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}


def print_gradients(model: DigitReader, first: dict[str, float], last: dict[str, float]) -> None:
    """Print a table of gradient norms per layer, at the first step and at the last."""
    print(f"\n{'parameter':<16}{'shape':<12}{'|gradient| first':>18}{'last':>10}{'|weight|':>12}")
    for name, parameter in model.named_parameters():
        shape = "x".join(map(str, parameter.shape))
        weight = parameter.detach().norm().item()
        print(f"{name:<16}{shape:<12}{first[name]:>18.4f}{last[name]:>10.4f}{weight:>12.3f}")


def save_loss_curve(losses: list[float], path: Path) -> None:
    """Draw the loss of every step as an SVG line."""
    width, height, top = 640, 240, max(losses)
    points = " ".join(
        f"{40 + step * (width - 50) / len(losses):.1f},{10 + (height - 40) * (1 - loss / top):.1f}"
        for step, loss in enumerate(losses)
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<path d="M40,10 V{height - 30} H{width - 10}" fill="none" stroke="#9ca3af"/>'
        f'<polyline points="{points}" fill="none" stroke="#3b82f6"/>'
        f'<text x="4" y="16">{top:.2f}</text><text x="22" y="{height - 30}">0</text>'
        f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">loss over {len(losses)} steps</text></svg>\n',
        encoding="utf-8",
    )


def train(model: DigitReader) -> tuple[list[float], dict[str, float], dict[str, float]]:
    """Train the model; return the loss of every step, and the gradient norms of the first and of the last."""
    images, labels = load("training")
    test_images, test_labels = load("test")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    steps = len(images) // BATCH_SIZE
    bar = ProgressBar(steps)
    losses: list[float] = []
    first: dict[str, float] = {}
    for epoch in range(1, EPOCHS + 1):
        order = torch.randperm(len(images))
        for step in range(steps):
            batch = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
            loss = criterion(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            first = first or gradient_norms(model)
            optimizer.step()
            losses.append(loss.item())
            bar.show(epoch, step, f"loss {losses[-1]:.4f}")
        mean = sum(losses[-steps:]) / steps
        bar.show(epoch, steps, f"loss {mean:.4f}   test accuracy {accuracy(model, test_images, test_labels):6.1%}")
    return losses, first, gradient_norms(model)


def main() -> None:
    """Train, report, draw."""
    torch.manual_seed(0)
    model = DigitReader()
    images, labels = load("test")
    print(f"{model}\n{sum(p.numel() for p in model.parameters())} parameters, test images {tuple(images.shape)}\n")
    started = time.perf_counter()
    losses, first, last = train(model)
    print(f"\ntrained for {len(losses)} steps in {time.perf_counter() - started:.1f} s")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; test accuracy {accuracy(model, images, labels):.1%}")
    print_gradients(model, first, last)

    loss = nn.functional.cross_entropy(model(images), labels)
    print(f"\nthe graph behind the loss, as recorded:\n{graph_tree(loss, model)}")
    OUTPUT.mkdir(exist_ok=True)
    save_svg(loss, OUTPUT / "graph.svg", model)
    save_loss_curve(losses, OUTPUT / "loss.svg")
    print(f"\npictures written: {OUTPUT / 'graph.svg'}, {OUTPUT / 'loss.svg'}")


if __name__ == "__main__":
    main()
