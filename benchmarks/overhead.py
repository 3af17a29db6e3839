"""What one recorded operation and one backward node cost, beside PyTorch where it is installed.

Both run in this process, their turns interleaved; the ratio is of the minima, which other load distorts least.
Run: python -m benchmarks.overhead [--repeats 15] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pullback

Workload = Callable[[Any], Callable[[], Any]]


def recorded_multiply(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8)

    def run() -> None:
        for _ in range(400):
            x * y

    return run


def unrecorded_multiply(torch: Any) -> Callable[[], Any]:
    x, y = torch.ones(8), torch.ones(8)

    def run() -> None:
        for _ in range(400):
            x * y

    return run


def chain(torch: Any, size: tuple[int, ...], backward: bool) -> Callable[[], Any]:
    a, b = torch.full(size, 0.99), torch.full(size, 0.01)
    x = torch.ones(size, requires_grad=True)

    def run() -> None:
        h = x
        for _ in range(200):
            h = h * a + b
        if backward:
            h.sum().backward()
            x.grad = None

    return run


WORKLOADS: dict[str, tuple[Workload, int]] = {
    "x * y, 8 floats": (unrecorded_multiply, 400),
    "x * y recorded, 8 floats": (recorded_multiply, 400),
    "chain of 200 x*a+b, forward, 8 floats": (lambda t: chain(t, (8,), False), 400),
    "chain of 200 x*a+b, forward and backward, 8 floats": (lambda t: chain(t, (8,), True), 400),
    "chain of 200 x*a+b, forward and backward, scalars": (lambda t: chain(t, (), True), 400),
}


def measure(repeats: int) -> list[dict[str, Any]]:
    """Seconds per operation of each workload for pullback and, where installed, torch."""
    modules: dict[str, Any] = {"pullback": pullback}
    if importlib.util.find_spec("torch") is not None:
        modules["torch"] = importlib.import_module("torch")
        modules["torch"].set_num_threads(1)
    rows = []
    for name, (make, operations) in WORKLOADS.items():
        runs = {key: make(module) for key, module in modules.items()}
        for run in runs.values():
            run()
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(repeats):
            for key, run in runs.items():
                start = time.perf_counter()
                run()
                best[key] = min(best[key], (time.perf_counter() - start) / operations)
        rows.append({"workload": name, **best})
    return rows


def main() -> None:
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = measure(options.repeats)
    print(f"{'per operation':52} {'pullback':>10} {'torch':>10} {'ratio':>6}")
    for row in rows:
        torch_time = row.get("torch")
        other = f"{torch_time * 1e6:8.2f}us {row['pullback'] / torch_time:6.2f}" if torch_time else "         -      -"
        print(f"{row['workload']:52} {row['pullback'] * 1e6:8.2f}us {other}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
