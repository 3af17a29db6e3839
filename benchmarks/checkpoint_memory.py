"""Peak memory of a deep network with and without activation checkpointing.

Run: python -m benchmarks.checkpoint_memory [--layers 64] [--width 256] [--batch 256]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import pullback as torch
from pullback.utils.checkpoint import checkpoint


def block(x: Any, weight: Any) -> Any:
    """Two products and two activations: what a checkpointed region saves and computes again."""
    return (torch.tanh(x @ weight) @ weight).relu()


def run(layers: int, width: int, batch: int, mode: str) -> tuple[float, float]:
    """Megabytes at the peak of one forward and backward, and its seconds."""
    torch.manual_seed(0)
    weights = [(torch.randn(width, width) / width**0.5).requires_grad_() for _ in range(layers)]
    data = torch.randn(batch, width)
    tracemalloc.start()
    start = time.perf_counter()
    x = data
    for weight in weights:
        x = block(x, weight) if mode == "none" else checkpoint(block, x, weight, use_reentrant=mode == "reentrant")
    x.pow(2).mean().backward()
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak, seconds


def main() -> None:
    """Print one line per variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    base = None
    for mode in ("none", "non-reentrant", "reentrant"):
        peak, seconds = run(options.layers, options.width, options.batch, mode)
        base = base or peak
        print(f"{mode:14} peak {peak:8.1f} MB ({peak / base:.2f})   {seconds:.2f} s")


if __name__ == "__main__":
    main()
