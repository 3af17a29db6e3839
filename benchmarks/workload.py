"""What a workload is: one program that runs on whichever module it is given, PyTorch or pullback.

`make(torch)` prepares inputs and returns `run`; each call of `run` does the whole work once and returns the gradients
that the two frameworks must agree on. Inputs come from NumPy's generator or from `manual_seed`, so both see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy

Run = Callable[[], Iterable[Any]]


@dataclass(frozen=True)
class Workload:
    """A program to time on both frameworks, its goal as a ratio to PyTorch, and how closely gradients must agree."""

    name: str
    make: Callable[[Any], Run]
    goal: float
    tolerance: float = 1e-3
    quick: bool = True
    measures: str = "time"
    small: bool = False
    """Whether it costs calls rather than arithmetic: then instructions can be counted instead."""


def random_tensor(torch: Any, seed: int, *size: int, scale: float = 1.0, requires_grad: bool = False) -> Any:
    """A float32 tensor of normal numbers that depend on `seed` alone."""
    values = numpy.random.default_rng(seed).standard_normal(size) * scale
    return torch.tensor(values.astype(numpy.float32)).requires_grad_(requires_grad)


def random_labels(torch: Any, seed: int, below: int, *size: int) -> Any:
    """An int64 tensor of numbers in [0, below)."""
    return torch.tensor(numpy.random.default_rng(seed).integers(0, below, size))


def gradients_of(leaves: Iterable[Any]) -> list[Any]:
    """Take the gradients out of the leaves, so that the next run starts without."""
    gradients = []
    for leaf in leaves:
        gradients.append(leaf.grad)
        leaf.grad = None
    return gradients
