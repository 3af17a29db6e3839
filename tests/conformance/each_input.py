"""Differentiate every operation in each of its tensors alone: `python -m tests.conformance.each_input [operation ...]`.

Samples mark the inputs that are usually differentiated. Here every tensor of real or complex numbers has its turn, with
`autograd.grad`, `func.grad` and `func.jvp`: weights of losses, running statistics, boundaries. Where PyTorch gives a
derivative we must give it, and where it refuses we must refuse with its words.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .checks import Inapplicable, Side, _replace, both
from .comparison import Measure, Mismatch, compare, tensors_in
from .entries import Entry, Sample, choose, database
from .exceptions import NOT_COMPARED

SECONDS = 60  # for one operation
SAMPLES = 4
LARGEST = 400  # elements of the inputs of a sample
Difference = tuple[str, str, str]
LIMITS = (
    "forward AD with",
    "Cannot access data pointer of Tensor that doesn't have storage",  # a split at positions that a tensor holds
    "Trying to set a forward gradient that has a different size",  # a random number whose parameters are broadcast
)
"""Words with which PyTorch refuses what it could not do, not what is wrong."""


def _total(results: Any) -> Any:
    """One real number that depends on every result."""
    parts = [t for t in results if t.is_floating_point() or t.is_complex()]
    parts = [t.abs() if t.is_complex() else t for t in parts]
    return sum([(part * part.detach().cos()).sum() for part in parts]) if parts else None


def _called(side: Side, place: int, value: Any) -> Any:
    """The results with `value` in place of one tensor."""
    former = side.arguments, side.options
    by = {id(t): value if i == place else t.detach().clone() for i, t in enumerate(side.tensors)}
    side.arguments, side.options = _replace(former[0], by), _replace(former[1], by)
    try:
        return tensors_in(side.processed(side.call()))
    finally:
        side.arguments, side.options = former


def _gradient(side: Side, place: int) -> Any:
    value = side.tensors[place].detach().clone().requires_grad_()
    total = _total(_called(side, place, value))
    if total is None or not total.requires_grad:
        return "no history"
    return side.package.autograd.grad(total, value, allow_unused=True)[0]


def _functional_gradient(side: Side, place: int) -> Any:
    return side.package.func.grad(lambda value: _total(_called(side, place, value)))(side.tensors[place].detach())


def _tangent(side: Side, place: int) -> Any:
    value = side.tensors[place].detach()

    def chosen(value: Any) -> Any:
        return [t for t in _called(side, place, value) if t.is_floating_point() or t.is_complex()]

    return side.package.func.jvp(chosen, (value,), (value * 0.5,))[1]


KINDS: dict[str, Callable[[Side, int], Any]] = {
    "autograd.grad": _gradient,
    "func.grad": _functional_gradient,
    "func.jvp": _tangent,
}


def _outcome(action: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return action(), None
    except Exception as error:
        return None, error


def _key(error: Exception) -> str:
    """The words that two messages must share: all up to the first value or sentence end."""
    return re.split(r"[.\[(:]", str(error))[0][:60]


def unlike(sides: tuple[Side, Side], place: int, kind: str, measure: Measure) -> str | None:
    """How the derivatives in one tensor differ."""
    expected, refusal = _outcome(lambda: KINDS[kind](sides[0], place))
    actual, our_refusal = _outcome(lambda: KINDS[kind](sides[1], place))
    if refusal is not None:
        if our_refusal is None and any(words in str(refusal) for words in LIMITS):
            return None  # more is differentiated than in PyTorch
        if our_refusal is None:
            return f"must be refused: {str(refusal)[:150]}"
        same = _key(refusal) in str(our_refusal)
        return None if same else f"refused with {str(our_refusal)[:120]}, not {str(refusal)[:120]}"
    if our_refusal is not None:
        return f"refused: {type(our_refusal).__name__} {str(our_refusal)[:150]}"
    if isinstance(expected, str) or isinstance(actual, str):
        return None if type(expected) is type(actual) else f"expected {expected!r:.40}, got {actual!r:.40}"
    if (expected is None) != (actual is None):
        return f"expected {'None' if expected is None else 'a gradient'}"
    try:
        compare(expected, actual, measure, "derivative")
    except Mismatch as mismatch:
        return str(mismatch)
    return None


def compare_sample(entry: Entry, ours: Callable[..., Any], sample: Sample) -> list[str]:
    """How the derivatives of one sample differ, for each of its tensors."""
    sides = both(entry, ours, sample)
    if sum(t.numel() for t in sides[0].tensors) > LARGEST:
        raise Inapplicable("too much")
    measure = Measure(scaled=True, slack=10 * entry.measure.slack)
    found = []
    for place, tensor in enumerate(sides[0].tensors):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        for kind in KINDS:
            words = unlike(sides, place, kind, measure)
            if words:
                found.append(f"{kind} of input {place}: {words}")
    return found


def compare_each_input(entry: Entry) -> tuple[int, list[Difference]]:
    """How many samples of an entry were differentiated, and how the libraries differ."""
    made, differences = 0, []
    small = [s for s in list(entry.samples(torch.float64, True))[:60] if s.arguments]
    small = [s for s in small if sum(t.numel() for t in tensors_in([s.arguments, s.options])) <= LARGEST]
    for sample in choose(small, SAMPLES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                words = compare_sample(entry, entry.ours(), sample)
            except Inapplicable:
                continue
        made += 1
        shapes = [tuple(t.shape) for t in tensors_in([sample.arguments, sample.options])]
        differences += [("differ", f"{shapes} {list(sample.options)}", w) for w in words]
    return made, differences


def compare_entry(index: int) -> tuple[int, list[Difference]]:
    """The same for a place in the database."""
    torch.set_num_threads(1)
    return compare_each_input(database()[index])


def main(names: list[str]) -> int:
    """Compare the operations named, or all of them."""
    from .processes import compare_each

    chosen = [
        (index, entry.name)
        for index, entry in enumerate(database())
        if torch.float64 in entry.differentiable
        and entry.measure.values
        and (entry.name, "each-input") not in NOT_COMPARED
        and (not names or entry.name in names)
    ]
    return compare_each(chosen, compare_entry, (), ("differ",), SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
