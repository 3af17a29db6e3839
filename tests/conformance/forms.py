"""Compare the forms of every operation: `python -m tests.conformance.forms [--form] [--words] [operation ...]`.

In-place, `out=`, method and function forms are called in many situations (form_situations.py): other dtypes, numbers,
broadcasting, leaves, views, shared memory, tensors of another shape. What PyTorch returns and modifies we must return and
modify: values, dtypes, strides, versions, history, the identity of what comes back, the warning about a resize; what it
refuses we must refuse, with an error of its type. `--in_place`, `--out`, `--method` and `--function` choose a form. Errors
of one type in other words are counted apart and shown with `--words`. The last line has the counts.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

import pullback

from .comparison import Measure, Mismatch, compare
from .entries import Entry, Sample, choose, database
from .form_situations import CALLS, IN_PLACE, OUT, Call, Inapplicable, Situation
from .processes import compare_each
from .translation import Copier, our_function
from .wrong_arguments import difference

SECONDS = 60  # for one operation
SAMPLES = 3
FORMS: dict[str, dict[str, Situation]] = {"in_place": IN_PLACE, "out": OUT, "method": CALLS, "function": CALLS}
Difference = tuple[str, str, str]
"""The kind ("differ" or "worded"), the situation, what differs."""


def facts_of(tensor: Any) -> tuple[Any, ...]:
    """What is seen of a tensor beside its values."""
    strides = tuple(stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    try:
        history = type(tensor.grad_fn).__name__, tensor.is_leaf
    except RuntimeError:  # of a view whose base was modified where nothing is recorded
        history = ("refused", False)
    return tensor.numel() and strides, tensor._version, tensor.requires_grad, history, tensor._is_view()


FACTS = ("strides", "version", "requires_grad", "grad_fn and is_leaf", "is a view")


def observe(library: Any, form: Callable[..., Any], situation: Situation, sample: Sample) -> tuple[Any, Any]:
    """What a call returns and leaves behind, or the error that it raises."""
    copier = Copier(library is pullback)
    arguments = [copier.tree(a) for a in sample.arguments]
    call = Call(library, form, arguments, {k: copier.tree(v) for k, v in sample.options.items()})
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = situation(call)
        except Inapplicable:
            raise
        except Exception as error:
            return None, error
    resized = any("resized" in str(warning.message) for warning in caught)
    watched = {name: tensor for name, tensor in call.watched.items() if isinstance(tensor, library.Tensor)}
    return (result, watched, resized), None


def unlike(expected: Any, actual: Any, measure: Measure) -> str | None:
    """The first difference between what two calls returned and left behind."""
    try:
        compare(expected[0], actual[0], measure)
    except Mismatch as mismatch:
        return str(mismatch)
    for name, tensor in expected[1].items():
        for fact, theirs, ours in zip(FACTS, facts_of(tensor), facts_of(actual[1][name]), strict=True):
            if theirs != ours:
                return f"{fact} of {name}: expected {theirs}, got {ours}"
    return f"warning of a resize: expected {expected[2]}" if expected[2] != actual[2] else None


def compare_situation(
    entry: Entry, forms: tuple[Any, Any], situation: Situation, sample: Sample
) -> tuple[str, str] | None:
    """How the two libraries differ in a situation: the kind and the words, or None."""
    expected, theirs = observe(torch, forms[0], situation, sample)
    actual, ours = observe(pullback, forms[1], situation, sample)
    if theirs is not None or ours is not None:
        kind = difference(theirs, ours)
        return (kind, f"{theirs!r:.150} | {ours!r:.150}") if kind else None
    free = sample.process is not None or entry.has_ties
    words = unlike(expected, actual, Measure(values=False) if free else entry.measure)
    return ("differ", words) if words else None


def forms_of(entry: Entry, form: str) -> tuple[Any, Any] | None:
    """PyTorch's function and ours for a form, if there is one."""
    if form in ("function", "out"):
        return (entry.theirs, entry.ours()) if form == "function" or entry.has_out else None
    theirs = getattr(entry, form)
    return None if theirs is None else (theirs, our_function(theirs))


def compare_entry(index: int, forms: tuple[str, ...]) -> tuple[int, list[Difference]]:
    """How many calls of an entry of the database were made, and those after which the two libraries differ."""
    torch.set_num_threads(1)
    return compare_forms(database()[index], forms)


def compare_forms(entry: Entry, forms: tuple[str, ...], plant: Callable[[Any], Any] = lambda form: form) -> Any:
    """The same for an entry; `plant` changes our side."""
    made, differences = 0, []
    samples = [s for s in list(entry.samples(entry.dtypes[0], False))[:60] if s.arguments]
    for sample in choose(samples, SAMPLES):
        for form in forms:
            pair = forms_of(entry, form)
            if pair is None:
                continue
            for name, situation in FORMS[form].items():
                try:
                    found = compare_situation(entry, (pair[0], plant(pair[1])), situation, sample)
                except Inapplicable:
                    continue
                made += 1
                if found:
                    differences.append((found[0], f"{form}, {name}", found[1]))
    return made, differences


def main(names: list[str]) -> int:
    """Compare the operations named, or all of them."""
    forms = tuple(form for form in FORMS if f"--{form}" in names) or tuple(FORMS)
    shown = ("differ", "worded") if "--words" in names else ("differ",)
    names = [name for name in names if not name.startswith("--")]
    chosen = [
        (index, entry.name)
        for index, entry in enumerate(database())
        if entry.dtypes and (not names or entry.name in names)
    ]
    return compare_each(chosen, compare_entry, (forms,), shown, SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
