"""Many small cases as few tests: pytest takes a millisecond or more to collect, set up and report each test.

`@each_case({"sum": {"name": "sum"}, ...})` does what `pytest.mark.parametrize` does, in tests of up to 40 neighbours each. All
cases of a test run, and its error holds those of every case that fails, under the case's name.
`PULLBACK_CASE="softmax" pytest tests/func` runs the cases alone whose names hold that text.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

_WANTED = os.environ.get("PULLBACK_CASE", "")
Cases = Mapping[str, Mapping[str, Any]]


def named(argument: str, values: Iterable[Any], name: Callable[[Any], str] = str) -> dict[str, dict[str, Any]]:
    """A case for each value of one argument."""
    found: dict[str, dict[str, Any]] = {}
    for value in values:
        given = name(value)
        found[given if given not in found else f"{given} ({len(found)})"] = {argument: value}
    return found


def each_case(
    cases: Cases, differing: Mapping[str, str] = {}, per_test: int = 40
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with the arguments of every case. Those of `differing` must fail: it says why they do."""
    chosen = [name for name in cases if _WANTED in name]
    groups = [chosen[i : i + per_test] for i in range(0, len(chosen), per_test)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(case_names: list[str], **fixtures: Any) -> None:
            check_each(lambda name: test(**cases[name], **fixtures), case_names, differing)

        signature = inspect.signature(test)
        taken = set().union(*cases.values()) if cases else set()
        fixtures = [p.replace(kind=p.KEYWORD_ONLY) for n, p in signature.parameters.items() if n not in taken]
        first = inspect.Parameter("case_names", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = signature.replace(parameters=[first, *fixtures])  # type: ignore[attr-defined]
        run.__name__, run.__qualname__ = test.__name__, test.__qualname__
        run.__module__, run.__doc__ = test.__module__, test.__doc__
        run.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        ids = [names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}" for names in groups]
        return pytest.mark.parametrize("case_names", groups, ids=ids)(run)

    return decorate


def check_each(check: Callable[[str], None], names: Iterable[str], differing: Mapping[str, str] = {}) -> None:
    """Run all checks; raise what failed, and what did not although it was to differ. Skip if every one skips."""
    failures: list[Exception] = []
    skipped, all_names = [], list(names)
    for name in all_names:
        try:
            check(name)
        except pytest.skip.Exception as reason:
            skipped.append(f"{name}: {reason}")
        except pytest.fail.Exception as error:
            failures.append(AssertionError(f"{name}: {error}"))
        except Exception as error:
            if name not in differing:
                error.add_note(f"case: {name}")
                failures.append(error)
        else:
            if name in differing:
                failures.append(AssertionError(f"{name} was to differ, and does not: {differing[name]}"))
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(all_names)} cases fail", failures)
    if skipped and len(skipped) == len(all_names):
        pytest.skip(skipped[0])
