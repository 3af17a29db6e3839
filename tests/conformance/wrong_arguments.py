"""Compare what wrong arguments raise: `python -m tests.conformance.wrong_arguments [--values] [--words] [operation ..]`.

Every argument of a sample of each operation is replaced by something that does not fit: a str, None, a list, a number, a
tensor of another dtype or shape; arguments are left out, added and misnamed. PyTorch's error and ours must have one type.
`--values` keeps types and changes values: tensors with fewer dimensions, of other sizes, empty; numbers and sizes that are
negative, zero or too large; repeated dimensions; unknown words; `out=` and `dtype=` that do not fit.
`--method` and `--in_place` call these forms instead of the function. Errors of one type that share no three words in a
row are counted apart, as "worded", and shown with `--words`. The last line has the counts. Each operation runs
in a process of its own, since PyTorch crashes on some.
"""

from __future__ import annotations

import builtins
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .entries import Sample, database
from .processes import compare_each
from .translation import Copier, our_function

SECONDS = 30  # for one operation
FORMS = ("function", "method", "in_place")
Difference = tuple[str, str, str, str]
"""The kind ("differ" or "worded"), what was wrong, PyTorch's outcome, ours."""


def wrong_values(value: Any) -> Iterator[Any]:
    """What does not fit in the place of `value`."""
    yield from ("x", None, object())
    if isinstance(value, torch.Tensor):
        yield from (1.5, 2, [1.0, 2.0], value.detach()[None, None, None])
        yield from (value.detach().to(d) for d in (torch.int64, torch.bool, torch.complex64, torch.float16))
    elif isinstance(value, (bool, int, float)):
        yield from (1.5, 100, -100, (1, 2), torch.ones(2))
    elif isinstance(value, (tuple, list)):
        yield from (1.5, [1.5] * len(value), ["a"] * len(value), [*value, *value, 0], torch.ones(2))


def unfit_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Values of the type of `value` that may not fit in its place, and what is wrong with them."""
    if isinstance(value, torch.Tensor):
        given = value.detach()
        yield "flat", given.reshape(-1)
        yield "0-dim", given.new_ones(())
        yield "no elements", given.new_ones((0,))
        if given.ndim:
            yield "one dimension less", given[0] if given.shape[0] else given.sum(0)
            yield "no rows", given[:0]
            yield "one column more", torch.cat([given, given.narrow(-1, 0, min(1, given.shape[-1]))], -1)
            yield "one row more", torch.cat([given, given[:1]], 0)
        if not given.is_floating_point() and not given.is_complex():
            yield "large", torch.full_like(given, 1000 if given.dtype != torch.bool else 1)
            yield "negative", torch.full_like(given, -1000 if given.dtype != torch.bool else 1)
            yield "int32", given.int()
    elif isinstance(value, bool):
        return
    elif isinstance(value, (int, float)):
        yield from ((str(n), type(value)(n)) for n in (0, -1, -2, 3, 7, 1000))
    elif isinstance(value, str):
        yield from ((repr(text), text) for text in ("", "nonsense"))
    elif isinstance(value, (tuple, list)) and all(type(v) is int for v in value):
        yield from ((f"all {n}", type(value)([n] * len(value))) for n in (0, 1, -1, -2, 7, 1000))
        yield "empty", type(value)()
        yield "one more", type(value)([*value, 1])
        yield "one less", type(value)(value[:-1])
    elif isinstance(value, (tuple, list)) and value and all(isinstance(v, torch.Tensor) for v in value):
        yield "empty", type(value)()
        for what, wrong in unfit_values(value[0]):
            yield f"first {what}", type(value)([wrong, *value[1:]])


def unfit_calls(sample: Sample) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Calls like the sample with one value that may not fit."""
    arguments, options = list(sample.arguments), dict(sample.options)
    for i, value in enumerate(arguments):
        for what, wrong in unfit_values(value):
            yield f"argument {i}: {what}", [*arguments[:i], wrong, *arguments[i + 1 :]], options
    for name, value in options.items():
        for what, wrong in unfit_values(value):
            yield f"{name}: {what}", arguments, {**options, name: wrong}
    for wrong in (torch.empty(0, dtype=torch.bool), torch.empty(0, requires_grad=True), "x"):
        yield f"out: {getattr(wrong, 'dtype', wrong)}", arguments, {**options, "out": wrong}
    for wrong in (torch.bool, torch.complex64, torch.int32, "float32"):
        yield f"dtype: {wrong}", arguments, {**options, "dtype": wrong}


def wrong_calls(sample: Sample) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Calls like the sample with one thing wrong."""
    arguments, options = list(sample.arguments), dict(sample.options)
    for i, value in enumerate(arguments):
        for wrong in wrong_values(value):
            yield f"argument {i}: {type(wrong).__name__}", [*arguments[:i], wrong, *arguments[i + 1 :]], options
        yield f"{i} arguments", arguments[:i], options
    for name, value in options.items():
        for wrong in wrong_values(value):
            yield f"{name}: {type(wrong).__name__}", arguments, {**options, name: wrong}
    yield "eight more", [*arguments, *[1] * 8], options
    yield "unknown keyword", arguments, {**options, "nonsense": 1}


def outcome(function: Callable[..., Any], to_ours: bool, arguments: list[Any], options: dict[str, Any]) -> Any:
    """The exception that a call raises, or None."""
    copier = Copier(to_ours)
    try:
        result = function(*[copier.tree(a) for a in arguments], **{k: copier.tree(v) for k, v in options.items()})
    except Exception as error:
        return error
    return TypeError("unsupported operand type(s)") if result is NotImplemented else None


def builtin_type(error: BaseException) -> type[BaseException]:
    """The first of an exception's classes that Python has."""
    return next(c for c in type(error).__mro__ if c.__module__ == builtins.__name__)


def shares_words(theirs: BaseException, actual: BaseException) -> bool:
    """Whether three words in a row of the first line of PyTorch's message are in ours, numbers aside."""
    words = re.findall(r"[a-z_]+", (str(theirs).splitlines() or [""])[0].lower())
    ours = re.findall(r"[a-z_]+", str(actual).lower())
    length = min(3, len(words))
    parts = {tuple(ours[i : i + length]) for i in range(len(ours))}
    return any(tuple(words[i : i + length]) in parts for i in range(len(words) - length + 1))


def difference(theirs: BaseException | None, actual: BaseException | None) -> str | None:
    """The kind of a difference between two outcomes."""
    if theirs is None or actual is None:
        return None if theirs is actual else "differ"
    if not isinstance(actual, builtin_type(theirs)):
        return "differ"
    return None if shares_words(theirs, actual) else "worded"


def compare(index: int, form: str = "function", calls: Any = wrong_calls) -> tuple[int, list[Difference]]:
    """How many wrong calls of an entry of the database were made, and those after which the two libraries differ."""
    warnings.simplefilter("ignore")
    entry = database()[index]
    function = entry.theirs if form == "function" else getattr(entry, form)
    ours, made, differences = entry.ours() if form == "function" else our_function(function), 0, []
    samples = list(entry.samples(entry.dtypes[0], False))[:40]
    for sample in {id(s): s for s in (*samples[:1], *sorted(samples, key=_size)[-1:])}.values():
        for what, arguments, options in calls(sample):
            if form != "function" and not (arguments and isinstance(arguments[0], torch.Tensor)):
                continue
            theirs = outcome(function, False, arguments, options)
            actual = outcome(ours, True, arguments, options)
            made += 1
            if kind := difference(theirs, actual):
                differences.append((kind, what, repr(theirs)[:160], repr(actual)[:160]))
    return made, differences


def _size(sample: Sample) -> int:
    return len(sample.arguments) + len(sample.options)


def main(names: list[str]) -> int:
    """Compare the operations named, or all of them."""
    form = next((form for form in FORMS if f"--{form}" in names), "function")
    calls = unfit_calls if "--values" in names else wrong_calls
    shown = ("differ", "worded") if "--words" in names else ("differ",)
    names = [name for name in names if not name.startswith("--")]
    chosen = [
        (index, entry.name)
        for index, entry in enumerate(database())
        if entry.dtypes
        and (form == "function" or getattr(entry, form) is not None)
        and (not names or entry.name in names)
    ]
    return compare_each(chosen, compare, (form, calls), shown, SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
