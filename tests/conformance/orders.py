"""Compare the first five derivatives of every operation: `python -m tests.conformance.orders [operation ...]`.

A sample's results are multiplied by random numbers and summed, and the sum is differentiated; the gradients are treated so
in their turn. What PyTorch gives we must give: the values, and whether each gradient has a history that can be
differentiated again, even one that happens to be constant. `--weights`: with respect to the random numbers too.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .checks import Inapplicable, Side, both, theirs_or_inapplicable
from .comparison import Measure, Mismatch, compare, tensors_in
from .entries import Entry, Sample, choose, database
from .exceptions import NOT_COMPARED
from .translation import values_of

SECONDS = 90  # for one operation
SAMPLES = 3
ORDERS = 5
LARGEST = 60  # elements of the inputs of a sample, where an operation has samples so small: a fifth derivative is long
LARGEST_OF_ALL = 1200
Difference = tuple[str, str, str]


def derivatives(side: Side, with_weights: bool, count: int = ORDERS) -> list[list[Any]]:
    """The gradients of each order; it ends where none has a history, or where PyTorch has no further one."""
    values = [t for t in tensors_in(side.processed(side.call())) if t.requires_grad]
    orders: list[list[Any]] = []
    inputs = list(side.differentiable)
    for order in range(count):
        if not values:
            break
        weights = [side.constant(value, 10 * order + place) for place, value in enumerate(values)]
        if with_weights:
            inputs += [weight.requires_grad_() for weight in weights]
        try:
            gradients = side.package.autograd.grad(values, inputs, weights, create_graph=True, allow_unused=True)
        except (RuntimeError, NotImplementedError):
            if side.is_ours or not orders:
                raise
            break
        orders.append(list(gradients))
        values = [g for g in gradients if g is not None and g.requires_grad]
    return orders


def unlike(expected: list[list[Any]], actual: list[list[Any]], slack: float) -> str | None:
    """The first difference of the derivatives of two libraries."""
    measure = Measure(scaled=True, slack=10 * slack)
    for order, (theirs, ours) in enumerate(zip(expected, actual, strict=False), 1):
        for place, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            where = f"derivative {order} of input {place}"
            if their is not None and not np.isfinite(values_of(their)).all():
                return None  # what follows is not a number either
            if (their is None) != (our is None):
                return f"{where}: expected {'None' if their is None else 'a gradient'}"
            if their is None:
                continue
            try:
                compare(their, our, measure, where)
            except Mismatch as mismatch:
                return str(mismatch)
            if their.requires_grad != our.requires_grad:
                return f"{where}: expected {'a' if their.requires_grad else 'no'} history"
    return None if len(expected) == len(actual) else f"expected {len(expected)} derivatives, got {len(actual)}"


def compare_sample(entry: Entry, ours: Callable[..., Any], sample: Sample, with_weights: bool) -> str | None:
    """How the derivatives of one sample differ."""
    their_side, our_side = both(entry, ours, sample)
    if not their_side.differentiable:
        raise Inapplicable("nothing to differentiate")
    expected = theirs_or_inapplicable(lambda: derivatives(their_side, with_weights))
    try:
        return unlike(expected, derivatives(our_side, with_weights, len(expected)), entry.measure.slack)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"


def compare_entry(index: int, dtype: torch.dtype, count: int, with_weights: bool) -> tuple[int, list[Difference]]:
    """How many samples of an entry of the database were differentiated, and how the libraries differ."""
    torch.set_num_threads(1)
    return compare_orders(database()[index], dtype=dtype, count=count, with_weights=with_weights)


def compare_orders(
    entry: Entry,
    plant: Callable[[Any], Any] = lambda form: form,
    dtype: torch.dtype = torch.float64,
    count: int = SAMPLES,
    with_weights: bool = False,
) -> tuple[int, list[Difference]]:
    """The same for an entry; `plant` changes our side."""
    made, differences = 0, []
    samples = [s for s in list(entry.samples(dtype, True))[:60] if s.arguments]
    small = [s for s in samples if _size(s) <= LARGEST] or [s for s in samples if _size(s) <= LARGEST_OF_ALL]
    for sample in choose(small, count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                words = compare_sample(entry, plant(entry.ours()), sample, with_weights)
            except Inapplicable:
                continue
        made += 1
        if words:
            shapes = [tuple(t.shape) for t in tensors_in(sample.arguments)]
            differences.append(
                ("differ", f"{shapes} {sample.arguments[1:]!r:.60} {sample.options!r:.80}".replace("\n", " "), words)
            )
    return made, differences


def _size(sample: Sample) -> int:
    return sum(t.numel() for t in tensors_in([sample.arguments, sample.options]))


def main() -> int:
    """Compare the operations named, or all of them."""
    from .processes import compare_each

    parser = argparse.ArgumentParser(prog="python -m tests.conformance.orders", description=__doc__)
    parser.add_argument("names", nargs="*", help="of operations; all without any")
    parser.add_argument("--count", type=int, default=SAMPLES, help="how many samples of an operation are tried")
    parser.add_argument("--dtype", default="float64", help="of the inputs: complex128")
    parser.add_argument("--weights", action="store_true", help="differentiate with respect to the weights too")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    chosen = [
        (index, entry.name)
        for index, entry in enumerate(database())
        if dtype in entry.differentiable
        and entry.measure.values
        and (entry.name, "orders") not in NOT_COMPARED
        and (not arguments.names or entry.name in arguments.names)
    ]
    return compare_each(chosen, compare_entry, (dtype, arguments.count, arguments.weights), ("differ",), SECONDS)


if __name__ == "__main__":
    sys.exit(main())
