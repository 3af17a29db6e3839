"""The samples that every operation's derivative is checked on: one entry per form of call."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator, bool], Any]


@dataclass(frozen=True)
class Sample:
    """A call to check. `call` gets one Tensor per entry of `inputs`, all of which require grad.

    `second_order` and `forward` say whether these are checked too (they are, unless the operation has none);
    `complex` adds the same check on complex inputs; `atol` loosens the comparison where an operation is ill-conditioned.
    """

    name: str
    call: Callable[..., Any]
    inputs: tuple[Maker, ...]
    second_order: bool = True
    forward: bool = True
    complex: bool = False
    atol: float = 1e-6
    tags: tuple[str, ...] = field(default=())

    def arrays(self, *, complex: bool = False) -> list[Any]:
        """The inputs, the same on every run."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [make(rng, complex) for make in self.inputs]


def real_and_complex(samples: Iterable[Sample]) -> dict[str, dict[str, Any]]:
    """The samples as cases of a test, on complex inputs too where they say so."""
    cases: dict[str, dict[str, Any]] = {}
    for complex in (False, True):
        for sample in samples:
            if sample.complex or not complex:
                name = f"{sample.name}-complex" if complex else sample.name
                cases[name if name not in cases else f"{name} ({len(cases)})"] = {"sample": sample, "complex": complex}
    return cases


def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Maker:
    """Normally distributed values."""

    def make(rng: np.random.Generator, complex: bool) -> Any:
        values = rng.normal(size=shape) * scale + shift
        return values + 1j * rng.normal(size=shape) * scale if complex else values

    return make


def uniform(low: float, high: float, *shape: int) -> Maker:
    """Values between two bounds (also for the imaginary part)."""

    def make(rng: np.random.Generator, complex: bool) -> Any:
        values = rng.uniform(low, high, size=shape)
        return values + 1j * rng.uniform(low, high, size=shape) if complex else values

    return make


def away_from(point: float, gap: float, *shape: int) -> Maker:
    """Normal values kept at a distance from a kink."""

    def make(rng: np.random.Generator, complex: bool) -> Any:
        values = rng.normal(size=shape)
        values = point + np.sign(values - point) * (np.abs(values - point) + gap)
        return values + 1j * rng.normal(size=shape) if complex else values

    return make


def distinct(*shape: int) -> Maker:
    """A permutation of well separated values: no ties."""

    def make(rng: np.random.Generator, complex: bool) -> Any:
        count = int(np.prod(shape))
        return (rng.permutation(count) * 0.37 - count * 0.17).reshape(shape)

    return make


def transposed(maker: Maker) -> Maker:
    """The same values in a non-contiguous array."""
    return lambda rng, complex: np.asfortranarray(maker(rng, complex))
