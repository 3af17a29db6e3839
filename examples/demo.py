"""Trains a small network to read handwritten-looking digits, and shows what autograd did on the way.

The data ships beside this file. Everything is written as for PyTorch; where that is installed, the same file is run with
it in a second process, and the two are compared. Pictures are written to demo_output/.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy

LIBRARY = os.environ.get("DEMO_LIBRARY", "pullback")
torch: Any = importlib.import_module(LIBRARY)
nn = torch.nn

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data" / "digits.npz"
OUTPUT = ROOT / "demo_output"
EPOCHS, BATCH_SIZE, LEARNING_RATE = 12, 50, 0.05


class DigitReader(nn.Module):  # type: ignore[misc, name-defined]  # whichever library's Module it is
    """Three linear layers with rectifiers between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(144, 64)
        self.second = nn.Linear(64, 32)
        self.last = nn.Linear(32, 10)

    def forward(self, images: Any) -> Any:
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
            print(line, flush=True)


def load(part: str) -> tuple[Any, Any]:
    """Load the images of one part of the data, scaled to [0, 1], and their labels."""
    with numpy.load(DATA) as arrays:
        images = torch.from_numpy(arrays[f"{part}_images"]).float() / 255
        return images, torch.from_numpy(arrays[f"{part}_labels"]).long()


def accuracy(model: DigitReader, images: Any, labels: Any) -> float:
    """The share of images that the model reads correctly."""
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def gradient_norms(model: DigitReader) -> dict[str, float]:
    """The norm of each parameter's gradient after a backward pass."""
    return {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}


class Training:
    """Trains a model and keeps what is shown of it."""

    def __init__(self, model: DigitReader, bar: ProgressBar | None) -> None:
        self.model = model
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        self.seconds = 0.0
        self.first_gradients: dict[str, float] = {}
        self._bar = bar

    def run(self) -> None:
        """Train for all epochs."""
        images, labels = load("training")
        test = load("test")
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE, momentum=0.9)
        steps = len(images) // BATCH_SIZE
        self.accuracies.append(accuracy(self.model, *test))
        for epoch in range(1, EPOCHS + 1):
            started = time.process_time()
            order = torch.randperm(len(images))
            for step in range(steps):
                batch = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
                loss = criterion(self.model(images[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                self.first_gradients = self.first_gradients or gradient_norms(self.model)
                optimizer.step()
                self.losses.append(loss.item())
                if self._bar is not None:
                    self._bar.show(epoch, step, f"loss {self.losses[-1]:.4f}")
            self.seconds += time.process_time() - started
            self.accuracies.append(accuracy(self.model, *test))
            if self._bar is not None:
                mean = sum(self.losses[-steps:]) / steps
                self._bar.show(epoch, steps, f"loss {mean:.4f}   test accuracy {self.accuracies[-1]:6.1%}")


def print_gradients(training: Training) -> None:
    """Print a table of gradient norms per layer, at the first step and at the last."""
    first, last = training.first_gradients, gradient_norms(training.model)
    print(f"\n{'parameter':<16}{'shape':<12}{'|gradient| first':>18}{'last':>10}{'|weight|':>12}")
    for name, parameter in training.model.named_parameters():
        shape = "x".join(map(str, parameter.shape))
        weight = parameter.detach().norm().item()
        print(f"{name:<16}{shape:<12}{first[name]:>18.4f}{last[name]:>10.4f}{weight:>12.3f}")


# The picture.


def draw_curves(training: Training, x: int, y: int, width: int, height: int) -> str:
    """The loss of every step and the accuracy after every epoch, each with its axis."""
    losses, accuracies = training.losses, training.accuracies
    top = max(1.0, -(-max(losses) // 0.5) * 0.5)
    steps, epochs = len(losses), len(accuracies) - 1

    def place(share: float, value: float) -> str:
        return f"{x + share * width:.1f},{y + height * (1 - value):.1f}"

    parts = [f'<text x="{x}" y="{y - 14}" class="head">loss and accuracy</text>']
    for part in range(5):
        level = y + height * (1 - part / 4)
        parts.append(f'<path d="M{x},{level:.1f} h{width}" class="grid"/>')
        parts.append(
            f'<text x="{x - 8}" y="{level + 4:.1f}" class="blue" text-anchor="end">{top * part / 4:.2f}</text>'
        )
        parts.append(f'<text x="{x + width + 8}" y="{level + 4:.1f}" class="green">{part * 25}%</text>')
    for epoch in range(0, epochs + 1, 3):
        parts.append(
            f'<text x="{x + width * epoch / epochs:.1f}" y="{y + height + 18}" text-anchor="middle">{epoch}</text>'
        )
    parts.append(f'<text x="{x + width / 2}" y="{y + height + 36}" text-anchor="middle">epoch</text>')
    curve = " ".join(place((step + 1) / steps, loss / top) for step, loss in enumerate(losses))
    dots = [place(epoch / epochs, share) for epoch, share in enumerate(accuracies)]
    parts.append(f'<polyline points="{curve}" fill="none" stroke="#2563eb" stroke-width="1.2"/>')
    parts.append(f'<polyline points="{" ".join(dots)}" fill="none" stroke="#15803d" stroke-width="2"/>')
    parts += ['<circle cx="{}" cy="{}" r="3" fill="#15803d"/>'.format(*dot.split(",")) for dot in dots]
    parts.append(
        f'<text x="{x + width - 6}" y="{y + height - 14}" class="blue" text-anchor="end">loss of each step</text>'
    )
    parts.append(f'<text x="{x + width - 6}" y="{y + 28}" class="green" text-anchor="end">test accuracy</text>')
    return "\n".join(parts)


def draw_digits(training: Training, x: int, y: int, columns: int, rows: int) -> str:
    """Test images with what the model reads in them: what it gets wrong first, with the right answer."""
    images, labels = load("test")
    with torch.no_grad():
        guesses = training.model(images).argmax(1)
    wrong = (guesses != labels).nonzero().flatten().tolist()
    right = (guesses == labels).nonzero().flatten().tolist()
    shown = [*wrong[:columns], *right][: columns * rows]
    title = f"digits as read; {len(wrong)} of {len(labels)} wrong, some of them first"
    parts = [f'<text x="{x}" y="{y - 14}" class="head">{title}</text>']
    for place, index in enumerate(shown):
        left, top = x + 62 * (place % columns), y + 74 * (place // columns)
        parts.append(draw_image(images[index], left, top))
        guess, label = int(guesses[index]), int(labels[index])
        said = f"{guess}" if guess == label else f"{guess}, is {label}"
        colour = "green" if guess == label else "red"
        parts.append(f'<text x="{left + 24}" y="{top + 62}" text-anchor="middle" class="{colour}">{said}</text>')
    return "\n".join(parts)


def draw_image(image: Any, left: int, top: int) -> str:
    """One image of 12 by 12 pixels, four units each; light pixels are left out."""
    parts = [f'<rect x="{left}" y="{top}" width="48" height="48" fill="#f1f5f9"/>']
    for row, line in enumerate(image.tolist()):
        for column, ink in enumerate(line):
            if ink > 0.08:
                parts.append(
                    f'<path d="M{left + 4 * column},{top + 4 * row}h4v4h-4z" fill="#0f172a" fill-opacity="{ink:.2f}"/>'
                )
    return "".join(parts)


def save_picture(training: Training, path: Path) -> None:
    """Draw the curves, the digits and the graph behind the loss side by side as one SVG file."""
    from pullback.utils.graph_picture import read_graph, svg_text

    images, labels = load("test")
    loss = nn.functional.cross_entropy(training.model(images), labels)
    graph = svg_text(read_graph(loss, training.model)).replace("<svg ", '<svg x="744" y="52" ', 1)
    width, height = (float(graph.partition(f'{side}="')[2].partition('"')[0]) for side in ("width", "height"))
    style = (
        "text{font-size:12px;fill:#334155}.head{font-size:14px;font-weight:bold;fill:#0f172a}.grid{stroke:#e2e8f0}"
        ".blue{fill:#2563eb}.green{fill:#15803d}.red{fill:#b91c1c}"
    )
    title = f"{len(training.losses)} steps, test accuracy {training.accuracies[-1]:.1%}"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{768 + width:.0f}" height="{max(height + 76, 660):.0f}" '
        f'font-family="sans-serif"><style>{style}</style><rect width="100%" height="100%" fill="white"/>\n'
        f"{draw_curves(training, 56, 52, 590, 220)}\n{draw_digits(training, 56, 360, 10, 4)}\n"
        f'<text x="744" y="38" class="head">the graph behind the loss</text>\n{graph}\n'
        f'<text x="56" y="18" fill="#64748b">{html.escape(title)}</text></svg>\n',
        encoding="utf-8",
    )


# PyTorch.


def compare_with_pytorch(training: Training) -> str:
    """Run this file with PyTorch in a process of its own, and say how the two trainings compare."""
    if importlib.util.find_spec("torch") is None or LIBRARY != "pullback":
        return "PyTorch is not installed here: nothing to compare with."
    settings = {**os.environ, "DEMO_LIBRARY": "torch", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure"]
    child = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if child.returncode != 0:
        return f"PyTorch is installed, but this program failed with it: {child.stderr.strip().splitlines()[-1:]}"
    other = json.loads(child.stdout)
    apart = max(abs(a - b) for a, b in zip(training.losses, other["losses"], strict=True))
    rows = [
        ("", "pullback", f"PyTorch {other['version']}"),
        ("last loss", f"{training.losses[-1]:.6f}", f"{other['losses'][-1]:.6f}"),
        ("test accuracy", f"{training.accuracies[-1]:.1%}", f"{other['accuracy']:.1%}"),
        ("processor seconds", f"{training.seconds:.2f}", f"{other['seconds']:.2f}"),
    ]
    lines = [f"{name:<22}{ours:>12}  {theirs}" for name, ours, theirs in rows]
    return "\n".join([*lines, f"the losses of {len(training.losses)} steps differ by at most {apart:.1e}"])


def measure() -> None:
    """Train quietly and print what happened, for the process that compares."""
    torch.manual_seed(0)
    training = Training(DigitReader(), None)
    training.run()
    facts = {"losses": training.losses, "accuracy": training.accuracies[-1], "seconds": training.seconds}
    print(json.dumps({**facts, "version": torch.__version__}))


def main() -> None:
    """Train, report, draw, compare, and say where to go on."""
    from pullback.utils.graph_page import graph_page
    from pullback.utils.graph_picture import graph_tree

    torch.manual_seed(0)
    model = DigitReader()
    images, labels = load("test")
    print(f"{model}\n{sum(p.numel() for p in model.parameters())} parameters, test images {tuple(images.shape)}\n")
    training = Training(model, ProgressBar(len(load("training")[0]) // BATCH_SIZE))
    training.run()
    print(f"\ntrained for {len(training.losses)} steps in {training.seconds:.1f} s of processor time")
    print(f"loss {training.losses[0]:.4f} -> {training.losses[-1]:.4f}; test accuracy {training.accuracies[-1]:.1%}")
    print_gradients(training)

    loss = nn.functional.cross_entropy(model(images), labels)
    print(f"\nthe graph behind the loss, as recorded:\n{graph_tree(loss, model)}")
    OUTPUT.mkdir(exist_ok=True)
    save_picture(training, OUTPUT / "demo.svg")
    graph_page(loss, model, title="the loss of the demo").save(OUTPUT / "graph.html")
    print(f"\n{compare_with_pytorch(training)}")
    print(f"""
what to look at: {OUTPUT / "demo.svg"}: loss, accuracy, digits as read, the graph
                 {OUTPUT / "graph.html"}: the graph to click through; play the backward pass in it
what to do next: pullback run train.py       your own PyTorch program on pullback
                 pullback view train.py      its first backward pass in the browser
                 docs/                       what differs from PyTorch, how fast it is, how it is built""")


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
