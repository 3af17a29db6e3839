"""Compare what wrong arguments raise: `python -m tests.conformance.wrong_arguments [--form] [--words] [operation ...]`.

Every argument of a sample of each operation is replaced by something that does not fit: a str, None, a list, a number, a
tensor of another dtype or shape; arguments are left out, added and misnamed. PyTorch's error and ours must have one type.
`--method` and `--in_place` call these forms instead of the function. Errors of one type whose first lines share no three
words in a row are counted apart, as "worded", and shown with `--words`. The last line has the counts. Each operation runs
in a process of its own, since PyTorch crashes on some.
"""

from __future__ import annotations

import builtins
import multiprocessing
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .entries import Sample, database
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
        function(*[copier.tree(a) for a in arguments], **{k: copier.tree(v) for k, v in options.items()})
    except Exception as error:
        return error
    return None


def builtin_type(error: BaseException) -> type[BaseException]:
    """The first of an exception's classes that Python has."""
    return next(c for c in type(error).__mro__ if c.__module__ == builtins.__name__)


def shares_words(theirs: BaseException, actual: BaseException) -> bool:
    """Whether three words in a row of the first line of PyTorch's message are in that of ours, numbers aside."""
    words, ours = (re.findall(r"[a-z_]+", (str(e).splitlines() or [""])[0].lower()) for e in (theirs, actual))
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


def compare(index: int, form: str = "function") -> tuple[int, list[Difference]]:
    """How many wrong calls of an entry of the database were made, and those after which the two libraries differ."""
    warnings.simplefilter("ignore")
    entry = database()[index]
    function = entry.theirs if form == "function" else getattr(entry, form)
    ours, made, differences = entry.ours() if form == "function" else our_function(function), 0, []
    samples = list(entry.samples(entry.dtypes[0], False))[:40]
    for sample in {id(s): s for s in (*samples[:1], *sorted(samples, key=_size)[-1:])}.values():
        for what, arguments, options in wrong_calls(sample):
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
    shown = ("differ", "worded") if "--words" in names else ("differ",)
    names = [name for name in names if not name.startswith("--")]
    counts: Counter[str] = Counter()
    for index, entry in enumerate(database()):
        exists = form == "function" or getattr(entry, form) is not None
        if not entry.dtypes or not exists or (names and entry.name not in names):
            continue
        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                made, differences = pool.apply_async(compare, (index, form)).get(SECONDS)
            except Exception as error:
                made, differences = 0, [("differ", "all", repr(error), "")]
        counts.update({"calls": made, "operations": 1, "differ": 0, "worded": 0})
        for kind, what, theirs, ours in differences:
            counts[kind] += 1
            if kind in shown:
                print(f"{entry.name}: {what}: {theirs} | {ours}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return int(counts["differ"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
