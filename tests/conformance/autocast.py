"""Compare operations under autocast: `python -m tests.conformance.autocast [operation ...]`.

The first samples of each operation run in blocks of both lower precisions, on float32 and on lower inputs. Dtypes must be
equal, values close. A line for each operation that differs; the last line counts.
"""

from __future__ import annotations

import os

os.environ["CONFORMANCE_DTYPES"] = "float32,float16,bfloat16"

import itertools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

import pullback

from .entries import Entry, Sample, database
from .translation import Copier

LOWER = ("bfloat16", "float16")
SAMPLES = 3
RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "empty", "rrelu", "lowrank", "exponential", "cauchy")


def leaves(value: Any) -> Iterator[Any]:
    """The tensors and numbers of a nested result."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def outcome(entry: Entry, sample: Sample, precision: str, is_ours: bool) -> Any:
    """Dtypes and values of a call inside of the block; an exception's name alone, since kernels differ in what they lack."""
    package = pullback if is_ours else torch
    copier = Copier(is_ours)
    arguments = [copier.tree(a) for a in sample.arguments]
    options = {k: copier.tree(v) for k, v in sample.options.items()}
    function = entry.ours() if is_ours else entry.theirs
    try:
        with package.autocast("cpu", dtype=getattr(package, precision)):
            result = function(*arguments, **options)
    except Exception as error:
        return type(error).__name__
    return [(str(getattr(x, "dtype", type(x))).replace("pullback", "torch"), x) for x in leaves(result)]


def difference(entry: Entry, sample: Sample, precision: str) -> str | None:
    """What differs, or None."""
    theirs, ours = outcome(entry, sample, precision, False), outcome(entry, sample, precision, True)
    if isinstance(theirs, str) or isinstance(ours, str):
        return None if isinstance(theirs, str) else f"{[d for d, _ in theirs]} against {ours}"
    if [d for d, _ in theirs] != [d for d, _ in ours]:
        return f"{[d for d, _ in theirs]} against {[d for d, _ in ours]}"
    if any(word in entry.name for word in RANDOM):
        return None
    for (_, expected), (_, actual) in zip(theirs, ours, strict=True):
        if isinstance(expected, torch.Tensor) and expected.dtype in (torch.float32, torch.bfloat16, torch.float16):
            wanted, got = (
                expected.detach().double(),
                torch.tensor(actual.detach().double().tolist(), dtype=torch.float64),
            )
            scale = wanted.abs().nan_to_num(0, 0, 0).max().item() if wanted.numel() else 0.0
            if not torch.allclose(got.reshape(wanted.shape), wanted, 2e-2, 1e-2 * scale + 1e-6, equal_nan=True):
                return f"values differ: {wanted.flatten()[:3].tolist()} against {got.flatten()[:3].tolist()}"
    return None


def main(names: list[str]) -> int:
    """Compare the operations named, or all; the status is 1 if one differs."""
    warnings.simplefilter("ignore")
    differing = compared = 0
    for entry in database():
        if names and entry.name not in names:
            continue
        for precision, given in itertools.product(LOWER, ("float32", "bfloat16")):
            dtype = getattr(torch, given)
            if dtype not in entry.dtypes:
                continue
            for sample in list(entry.samples(dtype, False))[:SAMPLES]:
                compared += 1
                found = difference(entry, sample, precision)
                if found:
                    differing += 1
                    print(f"{entry.name} of {given} under {precision}: {found}", flush=True)
    print(f"{compared} calls, {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
