"""The samples under vmap: mapped along any dimension, some inputs shared, nested, in odd layouts, empty, differentiated.

`python -m tests.conformance.vmapping [--count 3] [words of families or names]` prints what differs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import pullback

from .checks import Inapplicable, Side, _replace, _reversed
from .comparison import Mismatch, compare, tensors_in
from .entries import Entry, Sample
from .exceptions import NOT_COMPARED, VMAP_LIMITS
from .variations import (
    _compare_refusals,
    _compare_strides,
    _empty_first,
    _empty_last,
    _outcome,
    _transposed,
    _with_gaps,
    _words,
    arguments_for,
    compare_chosen,
)

SIZE = 2


@dataclass(frozen=True)
class Situation:
    """How a sample is mapped: where the examples of each tensor lie, what is done with the function, how examples lie."""

    dims: Callable[[int, int], int | None] = lambda position, ndim: 0
    transform: Callable[[Any, Any], Any] | None = None
    vary: Callable[[Any, Any], Any] | None = None
    nested: bool = False
    strides: bool = True


def _gradient(package: Any, function: Any) -> Any:
    """The gradient of one real number that depends on every result."""

    def total(*inputs: Any) -> Any:
        parts = [t.abs() if t.is_complex() else t for t in function(*inputs) if t.is_floating_point() or t.is_complex()]
        return sum((part * part.detach().cos()).sum() for part in parts)

    return lambda *inputs: package.func.grad(total, tuple(_differentiable(inputs)))(*inputs)


def _tangent(package: Any, function: Any) -> Any:
    """The tangents of all results along the inputs themselves."""

    def pushed(*inputs: Any) -> Any:
        chosen = _differentiable(inputs)

        def of_chosen(*values: Any) -> Any:
            given = dict(zip(chosen, values, strict=True))
            results = function(*[given.get(i, x) for i, x in enumerate(inputs)])
            return [t for t in results if t.is_floating_point() or t.is_complex()]

        values = tuple(inputs[i] for i in chosen)
        return package.func.jvp(of_chosen, values, tuple(v * 0.5 for v in values))[1]

    return pushed


def _differentiable(inputs: Any) -> list[int]:
    return [i for i, x in enumerate(inputs) if x.is_floating_point() or x.is_complex()]


SITUATIONS: dict[str, Situation] = {
    "along 0": Situation(),
    "along 1": Situation(dims=lambda position, ndim: min(1, ndim)),
    "along -1": Situation(dims=lambda position, ndim: ndim),
    "first input only": Situation(dims=lambda position, ndim: None if position else 0),
    "all but the first": Situation(dims=lambda position, ndim: 0 if position else None),
    "first along -1, others shared": Situation(dims=lambda position, ndim: None if position else ndim),
    "nested": Situation(nested=True),
    "transposed examples": Situation(vary=_transposed),
    "examples with gaps": Situation(vary=_with_gaps),
    "first dimension empty": Situation(vary=_empty_first),
    "last dimension empty": Situation(vary=_empty_last),
    "gradient": Situation(transform=_gradient, strides=False),
    "gradient, first along -1": Situation(
        dims=lambda position, ndim: None if position else ndim, transform=_gradient, strides=False
    ),
    "tangent": Situation(transform=_tangent, strides=False),
}


def check_vmapping(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Values, dtypes, strides and refusals of the sample under vmap in every situation."""
    differences: dict[str, str] = {}
    for name, situation in SITUATIONS.items():
        if (entry.name, f"vmap: {name}") in NOT_COMPARED:
            continue
        try:
            _check(entry, ours, sample, situation)
        except Inapplicable:
            continue
        except Mismatch as difference:
            differences.setdefault(str(difference), name)
    if differences:
        raise Mismatch("; ".join(f"{name}: {difference}" for difference, name in differences.items()))


def _check(entry: Entry, ours: Callable[..., Any], sample: Sample, situation: Situation) -> None:
    try:
        sides = [_side(torch, entry.theirs, sample, situation), _side(pullback, ours, sample, situation)]
    except Exception as error:
        raise Inapplicable(str(error)) from error
    with torch.no_grad(), pullback.no_grad():
        expected, refusal = _outcome(lambda: _mapped(sides[0], situation))
        actual, our_refusal = _outcome(lambda: _mapped(sides[1], situation))
    if refusal is not None:
        if any(words in str(refusal) for words in VMAP_LIMITS):
            raise Inapplicable(str(refusal))
        return _compare_refusals(refusal, our_refusal)
    if our_refusal is not None:
        raise Mismatch(f"refused: {_words(our_refusal)}")
    if sample.process is not None or entry.has_ties:
        return None
    compare(expected, actual, entry.measure)
    return _compare_strides(expected, actual) if situation.strides else None


def _side(package: Any, function: Any, sample: Sample, situation: Situation) -> Side:
    side = Side(package, function, sample)
    if not side.tensors:
        raise Inapplicable("no tensor to batch")
    if situation.vary is not None:
        made = {id(t): situation.vary(package, t.detach()) for t in side.tensors}
        side.arguments, side.options = _replace(side.arguments, made), _replace(side.options, made)
        side.tensors = [made[id(t)] for t in side.tensors]
    return side


def _mapped(side: Side, situation: Situation) -> Any:
    package = side.package
    tensors = {id(t): t.detach() for t in side.tensors}
    arguments, options = side.arguments, side.options

    def function(*examples: Any) -> Any:
        by = dict(zip(tensors, examples, strict=True))
        side.arguments, side.options = _replace(arguments, by), _replace(options, by)
        return tensors_in(side.processed(side.call()))

    call = function if situation.transform is None else situation.transform(package, function)
    dims = tuple(situation.dims(position, t.ndim) for position, t in enumerate(tensors.values()))
    if all(dim is None for dim in dims):
        raise Inapplicable("nothing is mapped")
    batches = [
        t if dim is None else package.stack([t, _reversed(t)], dim)
        for t, dim in zip(tensors.values(), dims, strict=True)
    ]
    if not situation.nested:
        return package.func.vmap(call, in_dims=dims)(*batches)
    twice = [package.stack([b, b]) for b in batches]
    return package.func.vmap(package.func.vmap(call))(*twice)


def main() -> int:
    """Compare the chosen entries."""
    return compare_chosen(check_vmapping, arguments_for("vmapping", __doc__, 3).parse_args())


if __name__ == "__main__":
    sys.exit(main())
